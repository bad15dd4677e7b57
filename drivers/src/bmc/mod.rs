//! What drivers of BMCs have in common, whatever these speak: how often one is spoken to ([`pace`]), and when one is believed
//! that refuses a password ([`refusals`]).

pub mod pace;
pub(crate) mod refusals;
