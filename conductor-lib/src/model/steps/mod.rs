//! The steps of an operation, and its plan.

pub(crate) mod step;
pub(crate) mod step_plan;
