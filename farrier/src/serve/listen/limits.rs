//! What clients may take of a listener: time, places and memory.

use std::time::Duration;

/// Bounds for the clients of a listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at a time, so requests too: HTTP/1.1 has one of them under way on each.
    pub(crate) connections: usize,
    /// Time for a TLS handshake, for the head of a request, and for a body beside what its bytes earn.
    pub(crate) patience: Duration,
    /// Requests of the node API that are answered at a time; a client has an eighth of them at most.
    pub(crate) requests: usize,
    /// Bytes of the head of a request, and of a buffer.
    pub(crate) head: usize,
    /// Bytes a second by which a body earns more time.
    pub(crate) body_rate: u32,
    /// Bytes of a body that always fit.
    pub(crate) small_body: usize,
    /// Bytes of all bodies together, beside these.
    pub(crate) bodies: usize,
    /// Time for answers that are under way when the listener closes.
    pub(crate) grace: Duration,
}

impl Limits {
    /// For agents: many, with small bodies. A heartbeat is about two KiB, and logs of an inspection are some MiB.
    pub(crate) const RAMDISK: Self = Self {
        connections: 512,
        requests: 128,
        patience: Duration::from_secs(30),
        head: 32 << 10,
        body_rate: 64 << 10,
        small_body: 64 << 10,
        bodies: 128 << 20,
        grace: Duration::from_secs(5),
    };

    /// For operators: some, whose config drives have up to 96 MiB. They are known before their bodies are read.
    pub(crate) const OPERATORS: Self =
        Self { connections: 256, requests: 256, bodies: 512 << 20, ..Self::RAMDISK };
}
