//! What begins with an entry of a history: the life of a node is made of these.

use farrier_conductor::model::ProvisionState;
use serde::{Deserialize, Serialize};

/// What begins with an entry of a history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Beginning {
    /// A provision state.
    State {
        /// The one that ended.
        from: ProvisionState,
        /// The one that began.
        state: ProvisionState,
    },
    /// A step of an operation.
    Step {
        /// The step, with its interface.
        step: String,
        /// Its number, from 1 on.
        number: Option<usize>,
        /// How many steps there are.
        of: usize,
    },
}
