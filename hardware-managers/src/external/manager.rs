//! A program as a hardware manager.

use super::conversation::{ConversationError, Reason, Request};
use super::message::{Description, Evaluation, ListedStep, Progress, StepList};
use crate::error::StepError;
use crate::manager::{Argument, HardwareManager, StepCall, StepDeclaration, Support};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::step::Phase;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// How long a question may take that does no work.
const QUESTION: Duration = Duration::from_secs(30);
/// The longest silence that a step may ask for: a day.
const LONGEST_SILENCE: u64 = 24 * 3600;

/// A program with its description, its support and its steps.
///
/// Its answers are kept for the life of the process, like the declarations of the built-in managers.
#[derive(Clone, Copy)]
pub struct ExternalManager {
    program: &'static Path,
    class_name: &'static str,
    name: &'static str,
    version: &'static str,
    support: Support,
    steps: &'static [StepDeclaration],
}

impl ExternalManager {
    /// Asks a program everything it has to tell.
    ///
    /// # Errors
    ///
    /// [`ConversationError`] at the first answer that is not good.
    pub fn load(program: &Path) -> Result<Self, ConversationError> {
        let description: Description = ask(program, "describe")?;
        let Evaluation { support } = ask(program, "evaluate")?;
        let support = match support {
            0 => Support::None,
            1 => Support::Generic,
            2 => Support::Mainline,
            level => Support::ServiceProvider(level),
        };
        // A program for other machines need not know what it would do here.
        let listed = if support == Support::None { Vec::new() } else { list(program)? };
        let program: &'static Path = Box::leak(program.to_owned().into_boxed_path());
        let steps: Vec<_> = listed.into_iter().map(|step| declare(program, step)).collect();
        Ok(Self {
            program,
            class_name: description.class_name.leak(),
            name: description.name.leak(),
            version: description.version.leak(),
            support,
            steps: steps.leak(),
        })
    }
}

impl HardwareManager for ExternalManager {
    fn class_name(&self) -> &'static str {
        self.class_name
    }

    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> &'static str {
        self.version
    }

    fn evaluate(&self) -> Support {
        self.support
    }

    fn steps(&self) -> &'static [StepDeclaration] {
        self.steps
    }

    fn origin(&self) -> Option<&Path> {
        Some(self.program)
    }
}

/// The steps of a program, each name once.
fn list(program: &Path) -> Result<Vec<ListedStep>, ConversationError> {
    const LIST: &str = "list_steps";
    let StepList { steps } = ask(program, LIST)?;
    let mut names = BTreeSet::new();
    for step in &steps {
        let why = match step {
            _ if step.step.is_empty() => "a step has no name".to_owned(),
            _ if !names.insert(&step.step) => format!("step {} stands twice", step.step),
            _ if step.priorities.is_empty() => format!("step {} is in no phase", step.step),
            _ if !(1..=LONGEST_SILENCE).contains(&step.silence_seconds) => {
                format!("silence_seconds of step {} must be 1 to {LONGEST_SILENCE}", step.step)
            }
            _ => continue,
        };
        return Err(ConversationError::garbage(program, LIST, &json!({"step": step.step}), why));
    }
    Ok(steps)
}

fn ask<T: DeserializeOwned>(program: &Path, name: &'static str) -> Result<T, ConversationError> {
    let request = Request { program, name, content: json!({}), silence: QUESTION, is_total: true };
    let answer = request.ask(&mut |_| {})?;
    serde_json::from_value(answer.clone())
        .map_err(|error| ConversationError::garbage(program, name, &answer, error.to_string()))
}

fn declare(program: &'static Path, listed: ListedStep) -> StepDeclaration {
    let silence = Duration::from_secs(listed.silence_seconds);
    let priorities: Vec<_> =
        listed.priorities.into_iter().map(|(phase, priority)| (Phase::from(phase), priority)).collect();
    let arguments: Vec<_> = listed
        .arguments
        .into_iter()
        .map(|(name, info)| Argument {
            name: name.leak(),
            description: info.description.leak(),
            required: info.required,
        })
        .collect();
    StepDeclaration {
        step: listed.step.leak(),
        interface: listed.interface.leak(),
        priorities: priorities.leak(),
        reboot_requested: listed.reboot_requested,
        abortable: if listed.abortable { Phase::ALL } else { &[] },
        arguments: arguments.leak(),
        run: Box::leak(Box::new(move |call: &StepCall<'_>| run(program, silence, call))),
    }
}

fn run(program: &Path, silence: Duration, call: &StepCall<'_>) -> Result<Value, StepError> {
    let content = json!({
        "phase": call.phase.name(),
        "step": call.step,
        "node": call.record,
        "ports": call.ports,
        "arguments": call.arguments,
    });
    let request = Request { program, name: "run_step", content, silence, is_total: false };
    let mut report = |progress: Progress| {
        let text = progress.text.unwrap_or_default();
        tracing::info!(step = call.step, percent = progress.percent, "{text}");
    };
    request.ask(&mut report).map_err(|error| match error.reason {
        Reason::Incompatible { .. } => StepError::Incompatible { reasons: error.to_string() },
        _ => StepError::Failed(CommandError::new(ErrorKind::of_phase(call.phase), error.to_string())),
    })
}
