//! What is kept of what happened: events, boots, consoles, logs, the certificates of erasures, and why machines stayed
//! silent.

pub mod boot_trace;
pub mod console_log;
pub mod diagnosis;
pub mod erasing;
pub mod estate;
pub mod events;
pub(crate) mod log_files;
pub mod state_times;
pub mod timeline;

pub use log_files::{KeptLog, KeptLogError};
