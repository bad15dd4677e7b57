//! What `farrier-agent` prints when it is asked by hand: the [`plan`] of a deployment, the [`inventory`], what a
//! hardware [`manager`] answers, and the [`mod@reference`] pages.

pub mod inventory;
pub mod manager;
pub mod plan;
pub mod reference;
