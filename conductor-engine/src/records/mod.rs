//! What an engine keeps beside nodes: orders, history, allocations, and what operators define.

mod allocation;
mod beginning;
pub(crate) mod history;
mod order;
mod pending_order;
mod permission;
mod resource;

pub use allocation::{Allocation, AllocationState};
pub use beginning::Beginning;
pub use history::{HISTORY_LIMIT, HistoryEntry, HistoryKind, Severity};
pub use order::{Deployment, Order, OrderedSteps, StepsOrder};
pub use pending_order::{PendingOrder, Verb};
pub use permission::Forbidden;
pub use resource::{Resource, ResourceKind};

#[cfg(test)]
pub(crate) mod tests {
    use farrier_conductor::model::{NewNode, Node};
    use time::OffsetDateTime;

    pub(crate) fn node() -> Node {
        let new = NewNode {
            name: Some("n1".into()),
            driver: "fake".into(),
            ports: vec!["52:54:00:00:00:01".parse().unwrap()],
            ..NewNode::default()
        };
        Node::enrol(new, OffsetDateTime::UNIX_EPOCH)
    }
}
