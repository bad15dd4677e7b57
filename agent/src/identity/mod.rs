//! By what conductor and agent know each other: token and certificate of this boot ([`session`]), [`tls`], and the
//! address for the conductor ([`advertise`]).

pub mod advertise;
pub mod session;
pub mod tls;
