//! Hardware types: which interfaces go with which machines, and which of them a node has (section 10).
//!
//! Names alone decide: `composition` checks at the start that what is declared can work, `resolution` finds the
//! name of a node's interface; those of Ironic that there are not say what to use instead (`not_offered`).
//! `registry` has the implementations, which `validation` asks what is missing.

mod composition;
mod declaration;
mod not_offered;
mod registry;
mod resolution;
mod steps;
mod validation;

pub use composition::{HardwareFault, ImpossibleHardware};
pub use declaration::HardwareType;
pub use resolution::Unresolved;
pub use validation::Validity;

pub use composition::{Composition, Declared};
pub use registry::{Hardware, Interfaces, NodeBoot, Registered};
