//! Images, and the servers that they come from.

pub mod instance;
pub mod registry;
pub mod server;
