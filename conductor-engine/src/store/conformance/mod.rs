//! Checks of what every store must do. [`conformance`] runs all of them against a store.

#![allow(clippy::unwrap_used, reason = "a check that cannot go on fails")]

mod agents;
mod boot_traces;
mod catalogue;
mod conductors;
mod diagnosis;
mod evidence;
mod leases;
mod nodes;

use super::{NodeStore, Store, Terms};
use farrier_conductor::model::{AgentSession, NewNode, Node};
use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use time::{Duration, OffsetDateTime};

/// A check that runs.
type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One thing that every store must do, by its name.
pub struct Check {
    /// What the store does, in words.
    pub name: &'static str,
    run: fn(Arc<dyn Store>) -> Running,
}

/// A store that does not do what every store must do.
#[derive(Debug, thiserror::Error)]
#[error("the store fails {} of {checks} checks:\n{}", .failed.len(), .failed.join("\n"))]
pub struct Unfit {
    /// How many checks there are.
    pub checks: usize,
    /// The checks that failed, each with its reason.
    pub failed: Vec<String>,
}

macro_rules! checks {
    ($($room:ident::$check:ident,)*) => {
        /// All that every store must do.
        pub const CHECKS: &[Check] =
            &[$(Check { name: stringify!($check), run: |store| Box::pin($room::$check(store)) },)*];
    };
}

checks! {
    leases::leases_that_have_not_ended_are_told_with_their_holders,
    leases::a_lease_has_one_holder_until_it_ends_or_expires,
    leases::whoever_was_overtaken_writes_nothing,
    leases::e06_a_lease_that_has_ended_is_worth_nothing,
    leases::a_lease_that_expired_and_was_not_taken_goes_on,
    leases::l04_all_leases_of_a_conductor_are_renewed_at_once,
    leases::a_conductor_that_starts_again_overtakes_itself,
    leases::e13_a_lease_tells_whether_the_one_before_was_ended,
    leases::nodes_that_are_not_at_rest_or_ordered_are_found_when_nobody_attends_to_them,
    agents::heartbeats_and_orders_are_published_as_changes,
    agents::f40_a_heartbeat_is_written_down_whoever_works_on_the_node,
    agents::what_is_learned_does_not_undo_what_was_said_meanwhile,
    agents::a_token_is_issued_once_and_never_while_somebody_works_on_the_node,
    nodes::nodes_are_read_with_their_ports_in_order,
    nodes::names_and_addresses_are_unique_and_a_refused_node_leaves_nothing,
    nodes::k01_a_node_is_not_written_with_two_ports_of_one_uuid,
    nodes::e07_a_text_with_nul_is_refused_as_such_and_nothing_is_written,
    nodes::an_instance_belongs_to_one_node,
    nodes::nodes_without_a_name_are_many_and_their_ports_come_and_go,
    nodes::what_is_kept_of_a_node_is_all_of_it,
    nodes::lists_are_filtered_sorted_and_gone_through_in_parts,
    nodes::l03_nodes_are_found_by_traits_and_addresses_of_their_bmcs,
    nodes::nodes_are_found_by_the_beginning_of_what_names_them,
    nodes::nodes_are_counted_by_shard,
    nodes::k41_a_list_has_the_columns_that_it_asks_for,
    nodes::l01_a_revision_changes_with_everything_that_a_worker_looks_at,
    nodes::a_node_goes_with_everything_that_belongs_to_it,
    evidence::a_history_is_written_with_the_change_that_it_tells_of_or_not_at_all,
    evidence::the_oldest_entries_of_a_history_are_forgotten_and_those_of_others_stay,
    evidence::a_disk_has_one_certificate_of_each_step,
    diagnosis::a_diagnosis_is_kept_until_it_is_removed_or_followed_by_another,
    catalogue::a_resource_is_written_as_it_was_before_or_not_at_all,
    catalogue::what_belongs_to_a_node_is_found_by_it_and_goes_with_it,
    conductors::e08_a_conductor_is_seen_by_its_counter_until_it_ends_in_order,
    conductors::e08_a_name_has_one_process_until_that_is_silent,
    conductors::n28_the_times_of_a_conductor_are_by_the_clock_of_the_store,
    boot_traces::a_trace_is_kept_from_its_beginning_to_its_end_whoever_serves_the_machine,
}

/// Runs all checks, each on an empty store that `make` makes.
///
/// ```
/// use farrier_engine::store::conformance::conformance;
/// use farrier_engine::store::memory::MemoryStore;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let fits = conformance(async || MemoryStore::default()).await;
/// assert!(fits.is_ok(), "{}", fits.unwrap_err());
/// # }
/// ```
///
/// # Errors
///
/// [`Unfit`] with each check that failed.
pub async fn conformance<T: Store + 'static>(make: impl AsyncFn() -> T) -> Result<(), Unfit> {
    let mut failed = Vec::new();
    for check in CHECKS {
        let store: Arc<dyn Store> = Arc::new(make().await);
        // A task of its own, whose panic is the reason.
        if let Err(error) = tokio::spawn((check.run)(store)).await {
            let reason =
                error.try_into_panic().map_or_else(|error| error.to_string(), |panic| reason(&*panic));
            failed.push(format!("{}: {reason}", check.name));
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(Unfit { checks: CHECKS.len(), failed }) }
}

fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

const SECOND: Duration = Duration::SECOND;

fn node(name: &str, ports: &[&str]) -> Node {
    let ports = ports.iter().map(|text| text.parse().unwrap()).collect();
    let new = NewNode { name: Some(name.into()), driver: "fake".into(), ports, ..NewNode::default() };
    Node::enrol(new, OffsetDateTime::UNIX_EPOCH)
}

/// Adds a node to a store.
async fn with_node(store: &(impl NodeStore + ?Sized)) -> Node {
    let node = node("first", &["52:54:00:00:00:01"]);
    store.create(&node).await.unwrap();
    node
}

/// A lease of a minute from `seconds` after the epoch.
fn terms(holder: &str, seconds: i64) -> Terms<'_> {
    let now = OffsetDateTime::UNIX_EPOCH + SECOND * seconds as f64;
    Terms { holder, now, expires_at: now + Duration::MINUTE }
}

fn session(token: &str) -> AgentSession {
    AgentSession { agent_secret_token: Some(token.into()), ..AgentSession::default() }
}
