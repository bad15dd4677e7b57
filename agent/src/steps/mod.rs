//! What runs the steps of cleaning, deploying and servicing: the hardware [`managers`], what the agent does for them
//! ([`host`]), and the signed statements about what they erased ([`erase_certificates`]).

pub mod erase_certificates;
pub mod host;
pub mod managers;
