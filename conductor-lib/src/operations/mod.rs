//! What is done to a node under its lease, from an order or a wait to the state that it rests in.
//!
//! Each takes the task and ends it. [`Error::Store`](crate::error::Error::Store) says that the store failed and
//! nothing else: the node stays as it is recorded, and whoever takes it up next begins there.

mod failure;
mod forget;
pub(crate) mod power;
mod undeploy;

pub(crate) use failure::fail;
pub(crate) use forget::forget;
pub(crate) use power::set_power;
pub(crate) use undeploy::undeploy;
