//! What the engine does, in figures: metrics are made of them.

use crate::conductor::Conductor;
use crate::evidence::state_times::StateTime;
use crate::limits::OperationFigures;
use crate::workers::WorkerFigures;
use farrier_conductor::model::ProvisionState;
use std::collections::BTreeMap;

/// What the engine does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figures {
    /// Workers, and their passes.
    pub workers: WorkerFigures,
    /// Operations of each kind that has a limit, as far as workers have seen them.
    pub operations: Vec<OperationFigures>,
    /// Leases that this process has.
    pub leases: usize,
    /// Leases that it has renewed, each time.
    pub renewed_leases: u64,
    /// Leases that it has lost to other conductors, or with their nodes.
    pub lost_leases: u64,
    /// The states that nodes have left by writes of this process, with how long the nodes were in them.
    pub state_times: BTreeMap<ProvisionState, StateTime>,
}

impl Conductor {
    /// What the engine does now, and has done since it started. [`NodeStore::waited`](crate::store::NodeStore::waited)
    /// has the waits of writers.
    pub fn figures(&self) -> Figures {
        let (leases, renewed_leases, lost_leases) = self.services().own_leases.counts();
        let (workers, operations) = (self.workers().figures(), self.services().limits.figures());
        let state_times = self.services().state_times.so_far();
        Figures { workers, operations, leases, renewed_leases, lost_leases, state_times }
    }
}
