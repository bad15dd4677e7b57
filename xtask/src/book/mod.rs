//! The book: pages made from declarations and from measurements, and their plots.

#[cfg(test)]
mod claims;
#[cfg(test)]
mod examples;
pub mod page;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod pictures;
pub mod plot;
pub mod reference;
