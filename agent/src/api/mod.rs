//! The REST interface of the agent (section 1).

pub mod description;
pub mod routes;
pub mod server;
