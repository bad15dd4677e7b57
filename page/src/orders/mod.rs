//! The orders that a node can have: what each does, its form, and what happens when the form is sent.

mod effect;
pub(crate) mod form;
pub(crate) mod give;
mod kinds;
pub(crate) mod many;
mod seen;

pub(crate) use kinds::OrderKind;
