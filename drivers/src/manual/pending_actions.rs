//! What an operator has to do to a machine, in a small file for each node, so that no restart forgets it.

use farrier_conductor::interfaces::{HandWork, InterfaceError};
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{BootDevice, Node, PowerState};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use uuid::Uuid;

/// The folder below the state directory.
const FOLDER: &str = "manual";

/// The file of a pending action cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be used for the orders to operators: {source}; check that it may be written")]
pub(super) struct PendingActionsError {
    /// The file.
    path: PathBuf,
    /// What the system says.
    source: io::Error,
}

impl From<PendingActionsError> for InterfaceError {
    fn from(error: PendingActionsError) -> Self {
        Self::driver(error)
    }
}

/// The pending actions of all nodes. Clones are the same ones.
#[derive(Debug, Clone)]
pub(super) struct PendingActions(PathBuf);

/// What an operator has to do to the machine of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PendingAction {
    /// The wanted power state.
    pub(super) power: Option<PowerState>,
    /// The boot device, and whether it is persistent.
    pub(super) device: Option<(BootDevice, bool)>,
}

impl PendingAction {
    /// The instruction for the operator; nothing where there is nothing to do.
    pub(super) fn instruction(self) -> Option<String> {
        let device = self.device.map(|(device, persistent)| match persistent {
            true => format!("have it start from {device} from now on"),
            false => format!("have it start from {device} this time"),
        });
        match (self.power?, device) {
            (PowerState::Off, _) => Some("power the machine off".to_owned()),
            // What runs on it, if anything does, is not what is wanted.
            (PowerState::On, None) => Some("power the machine on, or off and on".to_owned()),
            (PowerState::On, Some(device)) => {
                Some(format!("power the machine on, or off and on, and {device}"))
            }
        }
    }
}

impl PendingActions {
    /// Those in a state directory.
    pub(super) fn below(state_dir: &Path) -> Self {
        Self(state_dir.join(FOLDER))
    }

    /// The pending action of a node; none where that cannot be read.
    pub(super) fn of(&self, node: Uuid) -> PendingAction {
        self.read(node).map_or_else(PendingAction::default, |(action, _)| action)
    }

    /// The same for an operator.
    pub(super) fn hand_work(&self, node: Uuid) -> Option<HandWork> {
        let (action, since) = self.read(node)?;
        Some(HandWork { what: action.instruction()?, since })
    }

    /// Changes the pending action of a node.
    ///
    /// # Errors
    ///
    /// [`PendingActionsError`].
    pub(super) fn change(
        &self,
        node: &Node,
        change: impl FnOnce(&mut PendingAction),
    ) -> Result<(), PendingActionsError> {
        let mut action = self.of(node.uuid);
        change(&mut action);
        if let Some(instruction) = action.instruction() {
            tracing::info!(node = %node.label(), "an operator must act: {instruction}");
        }
        let file = self.file(node.uuid);
        let written = json!({
            "power": action.power, "device": action.device, "since": SystemClock.now().unix_timestamp(),
        });
        let new = file.with_extension("new");
        fs::create_dir_all(&self.0)
            .and_then(|()| fs::write(&new, written.to_string()))
            .and_then(|()| fs::rename(&new, &file))
            .map_err(|source| PendingActionsError { path: file, source })
    }

    /// Forgets a node.
    ///
    /// # Errors
    ///
    /// [`PendingActionsError`].
    pub(super) fn forget(&self, node: Uuid) -> Result<(), PendingActionsError> {
        let path = self.file(node);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != ErrorKind::NotFound => Err(PendingActionsError { path, source }),
            _ => Ok(()),
        }
    }

    fn read(&self, node: Uuid) -> Option<(PendingAction, OffsetDateTime)> {
        let written: Value = serde_json::from_slice(&fs::read(self.file(node)).ok()?).ok()?;
        let power = serde_json::from_value(written["power"].clone()).ok()?;
        let device = serde_json::from_value(written["device"].clone()).ok()?;
        let since = OffsetDateTime::from_unix_timestamp(written["since"].as_i64()?).ok()?;
        Some((PendingAction { power, device }, since))
    }

    fn file(&self, node: Uuid) -> PathBuf {
        self.0.join(format!("{node}.json"))
    }
}
