//! Tasks of this conductor: each has the lease of its node, and saves to the store.

mod certificates;
mod claim;
mod diagnosis;
mod held_task;
mod history;
mod node_lease;
mod renewal;
mod reservation;

pub(crate) use held_task::HeldTask;
pub(crate) use renewal::renew_while_used;
