//! The deploy interfaces that there are, and what they read of a node.

pub mod direct;
pub mod image;
pub mod layout;

pub use direct::Direct;
