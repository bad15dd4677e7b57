//! Allocations: any node that matches a request.

use crate::client::{LOOK_INTERVAL, NodeApi};
use crate::failure::{NO_NODE_FREE, coded};
use farrier_engine::records::AllocationState;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// A request for a node.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Wanted {
    pub(crate) resource_class: String,
    pub(crate) traits: Vec<String>,
    /// Names or UUIDs of the nodes that come into question; any where there are none.
    pub(crate) candidate_nodes: Vec<String>,
}

/// An allocation as the REST interface shows it.
#[derive(Debug, Deserialize)]
pub(crate) struct AllocationRecord {
    pub(crate) uuid: String,
    pub(crate) state: AllocationState,
    pub(crate) node_uuid: Option<String>,
    pub(crate) last_error: Option<String>,
}

impl NodeApi {
    /// Allocates a node that matches the request, and waits for it. A failed allocation is deleted.
    pub(crate) async fn allocate(
        &self,
        wanted: &Wanted,
        deadline: Option<Instant>,
    ) -> anyhow::Result<AllocationRecord> {
        let mut allocation: AllocationRecord =
            self.read(Method::POST, &["allocations"], Some(wanted)).await?;
        while allocation.state == AllocationState::Allocating {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.free(&allocation).await?;
                return Err(coded(
                    NO_NODE_FREE,
                    "no matching node became free in time; candidates may be locked: retry, or see `farrier watch`",
                ));
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
            allocation = self.read(Method::GET, &["allocations", &allocation.uuid], None::<&()>).await?;
        }
        if allocation.state == AllocationState::Error {
            self.free(&allocation).await?;
            let text = allocation.last_error.unwrap_or_else(|| "no node matches the request".to_owned());
            return Err(coded(NO_NODE_FREE, text));
        }
        Ok(allocation)
    }

    /// Ends an allocation, and frees its node.
    pub(crate) async fn free(&self, allocation: &AllocationRecord) -> anyhow::Result<()> {
        self.send(Method::DELETE, &["allocations", &allocation.uuid], None::<&()>).await.map(drop)
    }
}
