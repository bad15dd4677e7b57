//! Waits until an order is carried out, and shows on a terminal how far it is.

use crate::client::record::NodeRecord;
use crate::client::{LOOK_INTERVAL, NodeApi};
use crate::failure::STILL_RUNNING;
use clap::Args;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::time::Instant;

/// Options for waiting.
#[derive(Debug, Default, Args)]
pub(crate) struct Waiting {
    /// Return as soon as the conductor accepts the request.
    #[arg(long, global = true, conflicts_with = "wait")]
    no_wait: bool,
    /// Seconds to wait for the operation, which continues after that [default: no limit].
    #[arg(long, global = true, value_name = "SECONDS")]
    wait: Option<u64>,
}

/// The operation did not end in time, and continues.
#[derive(Debug, thiserror::Error)]
#[error("node {node} is {state} after {seconds} s; `farrier explain {node}` shows why [{STILL_RUNNING}]")]
pub(crate) struct GaveUp {
    node: String,
    state: String,
    seconds: u64,
}

impl Waiting {
    /// The node once no conductor works on it; nothing when it is gone, or without a wait.
    pub(crate) async fn settled(&self, api: &NodeApi, node: &str) -> anyhow::Result<Option<NodeRecord>> {
        self.until(api, node, |_| true).await
    }

    /// The node once its operation is over, or held; nothing when it is gone, or is not waited for.
    pub(crate) async fn rested(&self, api: &NodeApi, node: &str) -> anyhow::Result<Option<NodeRecord>> {
        self.until(api, node, NodeRecord::rests).await
    }

    async fn until(
        &self,
        api: &NodeApi,
        node: &str,
        wanted: impl Fn(&NodeRecord) -> bool,
    ) -> anyhow::Result<Option<NodeRecord>> {
        if self.no_wait {
            return Ok(None);
        }
        let begin = Instant::now();
        let deadline = self.wait.map(|seconds| begin + Duration::from_secs(seconds));
        let mut progress = Progress::new(begin);
        loop {
            let Some(found) = api.look(node).await? else { return Ok(None) };
            if found.reservation.is_none() && wanted(&found) {
                return Ok(Some(found));
            }
            progress.print(&found);
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let state = found.provision_state.to_string();
                let seconds = self.wait.unwrap_or_default();
                return Err(GaveUp { node: node.to_owned(), state, seconds }.into());
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
    }
}

/// What a terminal shows: a line for each state and step.
struct Progress {
    begin: Instant,
    is_shown: bool,
    last: String,
}

impl Progress {
    fn new(begin: Instant) -> Self {
        Self { begin, is_shown: std::io::stderr().is_terminal(), last: String::new() }
    }

    fn print(&mut self, node: &NodeRecord) {
        let step = node.step().map(|step| format!(": {step}")).unwrap_or_default();
        let now = format!("{}{step}", node.provision_state);
        if self.is_shown && now != self.last {
            eprintln!("[{:6.1} s] {now}", self.begin.elapsed().as_secs_f64());
            self.last = now;
        }
    }
}
