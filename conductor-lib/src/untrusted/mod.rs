//! What comes from outside, read within limits: JSON, archives of logs, and logs.

pub mod archive;
pub mod json;
pub mod log;
