//! The file that describes a fleet.
//!
//! It is read strictly: what it names and nobody knows is an error, as is what cannot be. Durations are those of the real
//! world; `shorten` says by which factor they are shortened.

mod error;
mod phases;
mod settings;
mod span;
mod vendor;

pub use error::FileError;
pub(crate) use error::line_of;
pub use phases::{Phase, Phases};
pub use settings::{Agents, Certificates, FleetFile, LOGIN, Lives, MOST_MACHINES, Network};
pub use span::Span;
pub use vendor::Vendor;
