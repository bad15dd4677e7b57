//! What `farrier-agent` prints when it is asked by hand: the [`plan`] of a deployment, the [`inventory`], what a
//! hardware [`manager`] answers, the [`mod@reference`] pages, and the line about a [`failure`].

pub mod failure;
pub mod inventory;
pub mod manager;
pub mod plan;
pub mod reference;
