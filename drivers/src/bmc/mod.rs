//! What drivers of BMCs have in common, whatever these speak: how often one is spoken to ([`pace`]).

pub mod pace;
