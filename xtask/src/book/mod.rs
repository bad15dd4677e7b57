//! The book: pages made from declarations and from measurements, and their plots.

#[cfg(test)]
mod claims;
pub mod page;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod pictures;
pub mod plot;
pub mod reference;
