//! What is wrong with the steps that somebody asks for.

use crate::model::StepId;

/// Why a step cannot run. All faults of a request are reported together (section 3.4).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepFault {
    /// It is not written as steps are.
    #[error("step {number} {reason}")]
    Unreadable {
        /// Its place in the request, from 1 on.
        number: usize,
        /// What is wrong.
        reason: String,
    },
    /// The node has no such step.
    #[error("step {id} is unknown; the node has: {}", list(.known))]
    Unknown {
        /// The step.
        id: StepId,
        /// Those that there are.
        known: Vec<String>,
    },
    /// It is there twice.
    #[error("step {0} is asked for twice")]
    Duplicate(StepId),
    /// It may not run on this conductor.
    #[error("step {0} is disallowed on this conductor")]
    Disallowed(StepId),
    /// It has no such argument.
    #[error("step {id} has no argument {argument:?}; it has: {}", list(.known))]
    UnexpectedArgument {
        /// The step.
        id: StepId,
        /// The argument.
        argument: String,
        /// Those that it has.
        known: Vec<String>,
    },
    /// An argument is missing.
    #[error("step {id} needs the argument {argument:?}: {description}")]
    MissingArgument {
        /// The step.
        id: StepId,
        /// The argument.
        argument: String,
        /// What it is for.
        description: String,
    },
    /// An argument has a value that cannot be used.
    #[error("step {id}: {reason}")]
    Unusable {
        /// The step.
        id: StepId,
        /// What is wrong with it.
        reason: String,
    },
    /// The ramdisk is not to run.
    #[error("step {0} needs the ramdisk, which is disabled for this operation")]
    NeedsRamdisk(StepId),
    /// It runs in the agent, which is not there then.
    #[error("step {id} runs in the agent; give it a priority from {first} down to {last}")]
    NoAgent {
        /// The step.
        id: StepId,
        /// The highest priority at which the agent is there.
        first: i64,
        /// The lowest one.
        last: i64,
    },
    /// The core step has another priority.
    #[error("step {id} keeps its priority of {priority}; it can only be disabled, with 0")]
    CorePriority {
        /// The step.
        id: StepId,
        /// Its own priority.
        priority: i64,
    },
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
