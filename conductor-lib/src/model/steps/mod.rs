//! The steps of an operation, and its plan.

pub mod step;
pub mod step_plan;
