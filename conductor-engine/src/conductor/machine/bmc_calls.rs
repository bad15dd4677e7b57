//! What operators ask the BMC of a machine for: its lights, its sensors, the versions of its firmware.

use crate::conductor::Machines;
use crate::conductor::machine::driver_calls::in_time;
use crate::error::Error;
use farrier_conductor::Error as TaskError;
use farrier_conductor::interfaces::{FirmwareVersion, Indicator, IndicatorState, InterfaceError};
use farrier_conductor::model::InterfaceKind::{self, Management};
use farrier_conductor::model::Node;
use serde_json::{Map, Value};

impl Machines {
    /// The lights of the machine of a node.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Interface`](Error::Task).
    pub async fn indicators(&self, id: &str) -> Result<Vec<Indicator>, Error> {
        self.indicators_of(&self.0.driven(id).await?).await
    }

    async fn indicators_of(&self, node: &Node) -> Result<Vec<Indicator>, Error> {
        let management = self.0.services().hardware.management(node)?;
        in_time(node, Management, "get_supported_indicators", management.get_supported_indicators(node)).await
    }

    /// What a light of the machine of a node does.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Task) where there is no such light, and as [`Self::indicators`].
    pub async fn indicator_state(
        &self,
        id: &str,
        component: &str,
        name: &str,
    ) -> Result<IndicatorState, Error> {
        let node = self.0.driven(id).await?;
        let indicator = chosen(self.indicators_of(&node).await?, component, name)?;
        let management = self.0.services().hardware.management(&node)?;
        in_time(&node, Management, "get_indicator_state", management.get_indicator_state(&node, &indicator))
            .await
    }

    /// Switches an indicator of the machine of a node.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Task) where there is no such light, or it cannot do that; [`Interface`](Error::Task),
    /// [`Error::Store`] when a conductor works on the node.
    pub async fn set_indicator_state(
        &self,
        id: &str,
        component: &str,
        name: &str,
        state: IndicatorState,
    ) -> Result<(), Error> {
        let task = self.0.driven_task(id).await?;
        let indicator = chosen(self.indicators_of(&task.node).await?, component, name)?;
        if !indicator.states.contains(&state) {
            let reason =
                format!("{state} is nothing that {name} of {component} does; it does: {}", words(&indicator));
            return Err(Error::invalid("state", reason));
        }
        let management = self.0.services().hardware.management(&task.node)?;
        task.hold().await?;
        in_time(
            &task.node,
            Management,
            "set_indicator_state",
            management.set_indicator_state(&task.node, &indicator, state),
        )
        .await?;
        task.leave().await
    }

    /// The versions of the firmware of a node's machine; none where its BMC does not tell.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Interface`](Error::Task).
    pub async fn firmware_versions(&self, id: &str) -> Result<Vec<FirmwareVersion>, Error> {
        let node = self.0.driven(id).await?;
        let management = self.0.services().hardware.management(&node)?;
        match in_time(&node, Management, "get_firmware_versions", management.get_firmware_versions(&node))
            .await
        {
            Err(Error::Task(TaskError::Interface(InterfaceError::Unsupported {
                kind: InterfaceKind::Management,
                ..
            }))) => Ok(Vec::new()),
            told => told,
        }
    }

    /// What the sensors of a node's machine say, by their kind and name.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Interface`](Error::Task).
    pub async fn sensors(&self, id: &str) -> Result<Map<String, Value>, Error> {
        let node = self.0.driven(id).await?;
        let management = self.0.services().hardware.management(&node)?;
        in_time(&node, Management, "get_sensors_data", management.get_sensors_data(&node)).await
    }
}

fn chosen(indicators: Vec<Indicator>, component: &str, name: &str) -> Result<Indicator, Error> {
    let known: Vec<_> = indicators.iter().map(|one| format!("{}/{}", one.component, one.name)).collect();
    let found = indicators.into_iter().find(|one| one.component == component && one.name == name);
    let reason = || format!("the machine has no light {component}/{name}; it has: {}", known.join(", "));
    found.ok_or_else(|| Error::invalid("indicator", reason()))
}

fn words(indicator: &Indicator) -> String {
    let words: Vec<_> = indicator.states.iter().map(ToString::to_string).collect();
    if words.is_empty() { "any state".to_owned() } else { words.join(", ") }
}
