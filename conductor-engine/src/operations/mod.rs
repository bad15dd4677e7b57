//! What is done to a node under its lease, from an order or a wait to the state that it rests in.
//!
//! Each takes the task and ends it, or gives it back when more is to be done.
//! [`Error::Store`](crate::error::Error::Store) says that the store failed and nothing else: the node stays as it is
//! recorded, and the worker that takes it up next begins there.

mod adopt;
mod clean;
mod failure;
mod forget;
pub(crate) mod inspect;
mod power;
mod rescue;
mod undeploy;
mod verify;

use crate::error::Error;
use std::sync::Arc;

pub(crate) use adopt::adopt;
pub(crate) use clean::order_cleaning;
pub(crate) use failure::{abort, abort_at_rest, clean_up, fail, withdraw};
pub(crate) use forget::forget;
pub(crate) use power::set_power;
pub(crate) use rescue::{finalize_rescue, rescue, unrescue};
pub(crate) use undeploy::undeploy;
pub(crate) use verify::verify;

/// An interface of a node, or why the node has none.
pub(crate) type Resolved<I> = Result<Arc<I>, Error>;

/// How often an operation is taken up again because a conductor stopped, or an answer was lost; more often, it may be
/// what causes that.
pub(crate) const ATTEMPTS: u64 = 3;
