//! What a task does for an inspection.

use super::{Task, Unsaved, callback_url};
use crate::agent::token;
use crate::error::Error;
use crate::hardware_type::Unresolved;
use crate::interfaces::base::InterfaceError;
use crate::interfaces::network::NetworkKind;
use crate::model::{InspectionData, InterfaceKind};
use crate::task::change::InspectionChange;
use farrier_protocol::lookup::MASKED;

/// What of an inspection is to be saved.
pub(super) enum UnsavedInspection {
    Nothing,
    Received(InspectionData),
    Told(InspectionData),
}

impl UnsavedInspection {
    pub(super) fn change(&self) -> InspectionChange<'_> {
        match self {
            Self::Nothing => InspectionChange::Keep,
            Self::Received(data) => InspectionChange::Receive(data),
            Self::Told(data) => InspectionChange::Put(data),
        }
    }
}

impl Task {
    /// Keeps the data of an inspection, which counts once saved.
    pub fn note_inspection(&mut self, data: InspectionData) {
        self.inspection = UnsavedInspection::Told(data);
    }

    /// Keeps what the ramdisk posted until the inspection is done, which counts once saved.
    pub fn receive_inspection(&mut self, data: InspectionData) {
        self.inspection = UnsavedInspection::Received(data);
    }

    /// The conductor's URL as the machine reaches it.
    pub fn callback_url(&self) -> String {
        callback_url(&self.node, self.host.hardware(), self.settings())
    }

    /// The token of the agent that runs now, which is issued where it has none, and counts once saved; its mask where
    /// the agent has it already.
    pub fn issue_token(&mut self) -> String {
        if self.session.agent_secret_token.is_some() {
            return MASKED.to_owned();
        }
        let token = token::new();
        self.session.agent_secret_token = Some(token.clone());
        self.unsaved = Unsaved::All;
        token
    }

    /// Whether the conductor boots the ramdisk for an inspection; else somebody else does, where that is allowed.
    ///
    /// # Errors
    ///
    /// [`Error::Unresolved`], [`Error::Interface`] when the machine cannot be booted.
    pub(crate) async fn boots_for_inspection(&self) -> Result<bool, Error> {
        let is_required = self.settings().inspection.require_managed_boot;
        let Some(boot) = self.host.hardware().boot(&self.node)? else {
            let hardware_type = self.node.driver.clone();
            let none = Unresolved::None { kind: InterfaceKind::Boot, hardware_type };
            return if is_required { Err(none.into()) } else { Ok(false) };
        };
        let validates = boot.boot.validate_inspection(&self.node);
        match self.ask(InterfaceKind::Boot, "validate_inspection", validates).await {
            Ok(()) => {
                let network = self.network()?;
                let validates = network.validate_network(&self.node, NetworkKind::Inspection);
                self.ask(InterfaceKind::Network, "validate_network", validates).await?;
                Ok(true)
            }
            Err(Error::Interface(InterfaceError::Unsupported { .. })) if !is_required => Ok(false),
            Err(error) => Err(error),
        }
    }
}
