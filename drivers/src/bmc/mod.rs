//! What drivers of BMCs have in common, whatever these speak: how often one is spoken to ([`pace`]), and how what must
//! not be told is kept ([`secret`]).

pub mod pace;
pub mod secret;
