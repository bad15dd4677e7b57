//! Whether a program keeps the protocol, for those who write one.

use super::conversation::{ConversationError, Reason, Request};
use super::judge;
use super::manager::ExternalManager;
use crate::manager::HardwareManager;
use crate::reserved;
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time for a program to answer an unknown request.
const PATIENCE: Duration = Duration::from_secs(10);

/// A rule and whether the program keeps it.
#[derive(Debug)]
pub struct Check {
    /// The rule.
    pub rule: &'static str,
    /// Why it is not kept.
    pub fault: Option<String>,
}

/// Tries a program. No step of it is run.
pub fn check(program: &Path) -> Vec<Check> {
    let check = |rule, outcome: Result<(), String>| Check { rule, fault: outcome.err() };
    let mut checks = vec![check("the file belongs to root and is executable", judge(program))];
    let first = ExternalManager::load(program);
    let told = first.as_ref().map(drop).map_err(ToString::to_string);
    checks.push(check("describe, evaluate and list_steps are answered", told));
    let Ok(manager) = first else { return checks };
    checks.push(check("no step has a reserved name", free_names(&manager)));
    checks.push(check("the answers are the same every time", same_again(program, &manager)));
    checks.push(check("an unknown request is answered with an error", refuses_unknown(program)));
    checks
}

fn free_names(manager: &ExternalManager) -> Result<(), String> {
    let taken: Vec<_> =
        manager.steps().iter().map(|step| step.step).filter(|step| reserved::is_reserved(step)).collect();
    if taken.is_empty() { Ok(()) } else { Err(format!("reserved: {}", taken.join(", "))) }
}

/// Steps are listed once per start of the agent and run later, maybe after the next start.
fn same_again(program: &Path, manager: &ExternalManager) -> Result<(), String> {
    let again = ExternalManager::load(program).map_err(|error| error.to_string())?;
    let told = |manager: &ExternalManager| {
        let steps: Vec<_> = manager.steps().iter().map(|step| (step.step, step.priorities)).collect();
        (manager.class_name(), manager.name(), manager.version(), manager.evaluate(), steps)
    };
    if told(manager) == told(&again) { Ok(()) } else { Err("the second time they were others".to_owned()) }
}

fn refuses_unknown(program: &Path) -> Result<(), String> {
    let name = "no_such_request";
    let request = Request { program, name, content: json!({}), silence: PATIENCE, is_total: true };
    let started = Instant::now();
    match request.ask(&mut |_| {}) {
        Err(ConversationError { reason: Reason::Failed { .. }, .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(answer) => Err(format!("it answered {answer} after {:?}", started.elapsed())),
    }
}
