//! What a client may take of the agent: time, places and bytes.
//!
//! Whoever can reach the port must not be able to keep the conductor out, or to fill the memory of
//! a machine that may have no more than 256 MiB.

use std::time::Duration;

/// Bounds for clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time for the TLS handshake, for the head of a request, and between two requests.
    pub patience: Duration,
    /// Connections at a time; a conductor has one or two.
    pub connections: usize,
    /// Time for the body of a request. Only who has the token gets so far.
    pub body_time: Duration,
    /// Bytes of a body.
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(10),
            connections: 64,
            body_time: Duration::from_secs(300),
            // A config drive of 64 MiB, packed, as base64 text.
            body_bytes: 88 << 20,
        }
    }
}
