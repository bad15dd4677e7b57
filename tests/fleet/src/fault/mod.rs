//! The fault model: which classes of faults there are, which of them a life gets, and how one takes effect.

mod armed;
mod class;
mod plan;

pub use armed::Armed;
pub use class::{Class, Kind};
pub use plan::{Fault, Rate, plan};
