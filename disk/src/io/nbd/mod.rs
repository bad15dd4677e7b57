//! The client of a network block device (NBD), as far as one is needed that writes a disk: the fixed newstyle
//! handshake, and requests with simple replies.
//!
//! What a server says is believed only as far as it is what was asked for. A connection on which anything else came, or
//! nothing in time, is never used again: nobody knows what the bytes on it belong to.

mod connection;
mod handshake;
mod line;

pub(super) use connection::Connection;
pub(super) use handshake::{Feature, Offer};

#[cfg(test)]
pub(super) mod server;
#[cfg(test)]
mod tests;
