//! Conductors that end: killed, and stopped as they should be.

mod killed;
mod stopped;
