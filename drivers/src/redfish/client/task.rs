//! What a BMC does by and by: it answers 202 with a task monitor, which is asked until the task has ended (DSP0266,
//! asynchronous operations).

use super::bmc::{Bmc, Taken};
use super::error::RedfishError;
use super::exchange::{Ask, Reply};
use super::message::is_for_next_start;
use reqwest::{Method, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Longest pause between two questions about a task, whatever the BMC asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// States of a running task.
const GOES_ON: &[&str] = &["New", "Starting", "Running", "Suspended", "Service", "Stopping"];

/// States of a task that waits for the machine's next start, where it is a change that does so for some seconds.
const AWAITS_START: &[&str] = &["Pending", "Scheduled"];

/// How a change was taken, as the answer to it says.
fn taken(begun: &Ask<'_>, reply: &Reply) -> Taken {
    match begun.method == Method::PATCH && is_for_next_start(&reply.body) {
        true => Taken::AtNextStart,
        false => Taken::Now,
    }
}

impl Bmc {
    /// Waits until what was accepted is done. A monitor that is gone has done its work.
    ///
    /// # Errors
    ///
    /// [`RedfishError::TaskFailed`], [`RedfishError::TaskEndless`], and those of asking.
    pub(in crate::redfish) async fn complete(
        &self,
        begun: &Ask<'_>,
        reply: Reply,
    ) -> Result<Taken, RedfishError> {
        let taken = taken(begun, &reply);
        if reply.status != StatusCode::ACCEPTED {
            return Ok(taken);
        }
        let in_body = || reply.body["@odata.id"].as_str().filter(|_| state(&reply.body).is_some());
        let Some(monitor) = reply.location().or_else(|| in_body().map(str::to_owned)) else {
            return Ok(taken);
        };
        let limit = self.settings.task_timeout;
        let (start, end) = (Instant::now(), Instant::now() + limit);
        let mut pause = reply.retry_after();
        loop {
            sleep(pause.unwrap_or(self.settings.task_poll).min(LONGEST_PAUSE)).await;
            let reply = match self.request(&Ask::new(Method::GET, &monitor)).await {
                Ok(reply) => reply,
                Err(error) if super::bmc::has_status(&error, StatusCode::NOT_FOUND) => return Ok(taken),
                Err(error) => return Err(error),
            };
            match state(&reply.body) {
                Some(state)
                    if AWAITS_START.contains(&state)
                        && begun.method == Method::PATCH
                        && start.elapsed() >= self.settings.refusal_pause =>
                {
                    return Ok(Taken::AtNextStart);
                }
                Some(state) if GOES_ON.contains(&state) || AWAITS_START.contains(&state) => {}
                Some("Completed") => return Ok(taken),
                Some(state) => return Err(self.task_failed(begun, state, &reply.body)),
                None if reply.status != StatusCode::ACCEPTED => return Ok(taken),
                None => {}
            }
            if Instant::now() >= end {
                let (bmc, request) = (self.label(), begun.line());
                return Err(RedfishError::TaskEndless { bmc, request, monitor, limit });
            }
            pause = reply.retry_after();
        }
    }

    fn task_failed(&self, begun: &Ask<'_>, state: &str, task: &Value) -> RedfishError {
        let messages = task["Messages"].as_array().into_iter().flatten();
        let said: Vec<_> = messages.filter_map(|message| message["Message"].as_str()).collect();
        let said: String = said.join(" ").chars().filter(|character| !character.is_control()).collect();
        let reason =
            self.login.as_ref().map_or_else(|| said.clone(), |login| login.password.taken_out_of(&said));
        let reason = match reason.is_empty() {
            true => "it says no more".to_owned(),
            false => reason.chars().take(400).collect(),
        };
        RedfishError::TaskFailed { bmc: self.label(), request: begun.line(), state: state.to_owned(), reason }
    }
}

fn state(task: &Value) -> Option<&str> {
    task["TaskState"].as_str()
}
