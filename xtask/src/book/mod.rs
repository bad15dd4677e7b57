//! The book: pages made from declarations and from measurements, and their plots.

pub mod page;
#[cfg(test)]
mod paths;
pub mod plot;
pub mod reference;
