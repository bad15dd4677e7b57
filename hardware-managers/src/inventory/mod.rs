//! What the machine is made of (sections 9.3 and 9.6).

pub mod nics;
