//! Conductors with everything that they lead, and whoever gives them orders.

pub mod baremetal_life;
pub mod farrier;
pub mod first_pass;
pub mod ironic;
pub mod lab;
pub mod node_api;
pub mod office;
pub mod operator;
