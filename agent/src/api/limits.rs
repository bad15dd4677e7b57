//! What a client may take of the agent: time, places and bytes.
//!
//! Whoever can reach the port must not be able to keep the conductor out, or to fill the memory of
//! a machine that may have no more than 256 MiB. Without the token that is a share of each connection:
//! its buffers in the kernel, a TLS session, and the head of a request, some 200 KiB together at worst, so
//! less than 16 MiB for all of them. With the token it is the [allowance](crate::commands::allowance).

use std::time::Duration;

/// Bounds for clients.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time for the TLS handshake, for the head of a request, between two requests, for any progress of a
    /// body, and for any of an answer.
    pub patience: Duration,
    /// Connections at a time; a conductor has one or two.
    pub connections: usize,
    /// Bytes of the head of a request.
    pub head_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// Bytes of a buffer between HTTP, TLS and the kernel.
    pub buffer_bytes: usize,
    /// Bytes a second that a body has on average at least, once its patience is over.
    pub body_rate: u32,
    /// Bytes of a body, whatever the memory.
    pub body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(10),
            connections: 64,
            head_bytes: 8 << 10,
            headers: 64,
            buffer_bytes: 16 << 10,
            body_rate: 256 << 10,
            // A config drive of 64 MiB, packed, as base64 text.
            body_bytes: 88 << 20,
        }
    }
}
