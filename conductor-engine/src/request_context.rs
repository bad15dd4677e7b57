//! For whom something is done: the history of a node names who ordered what.

use tokio::task_local;

task_local! {
    static CALLER: String;
}

/// Runs something on behalf of a user, whose name is in the history of the nodes that are changed by it. What
/// follows from an order later is the conductor's own work.
pub async fn on_behalf_of<F: Future>(name: &str, work: F) -> F::Output {
    CALLER.scope(name.to_owned(), work).await
}

/// On whose behalf this runs, where somebody said so.
pub(crate) fn name() -> Option<String> {
    CALLER.try_with(Clone::clone).ok()
}
