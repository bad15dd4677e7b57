//! The power interface `redfish` (section 9.4).
//!
//! An order counts as carried out when the machine says so, and not when the BMC took it: some take orders and forget them,
//! and one that restarts in the middle has forgotten everything. While the machine stays as it was, the order is repeated.

use super::client::bmcs::Bmcs;
use super::client::connection::{self, Description};
use super::client::error::RedfishError;
use super::client::resource::Resource;
use super::management::Lasting;
use super::quirks::Quirk;
use super::system::System;
use async_trait::async_trait;
use farrier_conductor::interfaces::{Interface, InterfaceError, PowerInterface, Properties};
use farrier_conductor::model::{Node, PowerState};
use serde_json::json;
use tokio::time::{Instant, sleep};

/// Switches machines by their BMCs.
#[derive(Debug)]
pub struct RedfishPower {
    bmcs: Bmcs,
    lasting: Lasting,
}

/// What a machine says of its power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Power {
    On,
    Off,
    /// On its way.
    PoweringOn,
    PoweringOff,
}

impl Power {
    fn read(system: &Resource) -> Option<Self> {
        Some(match system.text("/PowerState")?.to_ascii_lowercase().as_str() {
            "on" | "paused" => Self::On,
            "off" => Self::Off,
            "poweringon" => Self::PoweringOn,
            "poweringoff" => Self::PoweringOff,
            _ => return None,
        })
    }

    /// Where it is, or will be.
    fn state(self) -> PowerState {
        match self {
            Self::On | Self::PoweringOn => PowerState::On,
            Self::Off | Self::PoweringOff => PowerState::Off,
        }
    }

    /// Whether it is there.
    fn is(self, wanted: PowerState) -> bool {
        matches!((self, wanted), (Self::On, PowerState::On) | (Self::Off, PowerState::Off))
    }
}

impl RedfishPower {
    /// Switches the machines of these BMCs. What `lasting` says is restored whenever one is powered on.
    pub fn new(bmcs: Bmcs, lasting: Lasting) -> Self {
        Self { bmcs, lasting }
    }

    /// Repeats a power order until the machine is on or off.
    async fn drive(&self, system: &System, wanted: PowerState) -> Result<(), RedfishError> {
        let settings = self.bmcs.settings();
        let (start, mut ordered_at, mut refusal) = (Instant::now(), None::<Instant>, None);
        loop {
            let seen = system.read().await;
            let power = seen.as_ref().ok().and_then(Power::read);
            if power.is_some_and(|power| power.is(wanted)) {
                return Ok(());
            }
            match (refusal.take(), seen) {
                // One that is on its way was told so, whatever the answer was.
                (Some(error), _)
                    if RedfishError::is_final(&error)
                        && power.is_none_or(|power| power.state() != wanted) =>
                {
                    return Err(error);
                }
                // What was ordered may be done, whatever one reading says.
                (_, Err(error))
                    if error.is_final() && (ordered_at.is_none() || error.is_about_password()) =>
                {
                    return Err(error);
                }
                (before, seen) if start.elapsed() >= settings.power_wait => {
                    let late = || not_done(system, wanted, power, settings.power_wait);
                    return Err(before.or(seen.err()).unwrap_or_else(late));
                }
                (before, seen) => {
                    refusal = before;
                    let is_other_way = power.is_some_and(|power| power.is(other(wanted)));
                    let is_due = ordered_at.is_none_or(|at| at.elapsed() >= settings.power_retry);
                    if let (true, true, Ok(seen)) = (is_other_way, is_due, &seen) {
                        refusal = reset(system, seen, kinds(wanted))
                            .await
                            .err()
                            .map(|error| conflict(system, error));
                        ordered_at = Some(Instant::now());
                    }
                }
            }
            sleep(settings.power_poll).await;
        }
    }

    async fn reset_as(&self, node: &Node, kinds: &[&str]) -> Result<(), InterfaceError> {
        let system = self.bmcs.system(node)?;
        let seen = system.read().await?;
        Ok(reset(&system, &seen, kinds).await?)
    }
}

/// A conflict is a temporary refusal, if the caller retries.
fn conflict(system: &System, error: RedfishError) -> RedfishError {
    let is_conflict =
        error.refusal().is_some_and(|refusal| refusal.status() == reqwest::StatusCode::CONFLICT);
    match is_conflict && !system.bmc.minds(Quirk::ConflictingPowerOn) {
        true => system.lacks(&error.to_string(), "try again"),
        false => error,
    }
}

fn other(state: PowerState) -> PowerState {
    match state {
        PowerState::On => PowerState::Off,
        PowerState::Off => PowerState::On,
    }
}

/// Kinds of a reset that lead to a state, the best first.
fn kinds(wanted: PowerState) -> &'static [&'static str] {
    match wanted {
        PowerState::On => &["On", "ForceOn"],
        PowerState::Off => &["ForceOff"],
    }
}

/// Asks for the first kind of a reset that the machine has; one that does not say what it has gets the first.
async fn reset(system: &System, seen: &Resource, kinds: &[&str]) -> Result<(), RedfishError> {
    let Some(target) = seen.action("ComputerSystem.Reset") else {
        return Err(system.lacks("a machine that cannot be reset", "look at the rights of the user"));
    };
    let action = seen.at("/Actions/#ComputerSystem.Reset");
    let allowed = system.bmc.allowable(action, "ResetType", kinds).await?;
    let kind = kinds.iter().find(|kind| allowed.is_empty() || allowed.iter().any(|one| one == **kind));
    let Some(kind) = kind else {
        let what = format!("a machine that has no {}, but {}", kinds.join(" or "), allowed.join(", "));
        return Err(system.lacks(&what, "use another power action"));
    };
    system.bmc.post(target, Some(&json!({"ResetType": kind}))).await
}

fn not_done(
    system: &System,
    wanted: PowerState,
    power: Option<Power>,
    limit: std::time::Duration,
) -> RedfishError {
    RedfishError::NotDone {
        bmc: system.bmc.label(),
        order: wanted.to_string(),
        says: power.map_or_else(|| "nothing of its power".to_owned(), |power| format!("{power:?}")),
        limit,
    }
}

#[async_trait]
impl Interface for RedfishPower {
    fn get_properties(&self) -> Properties {
        connection::KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        Description::read(node).map(drop)
    }
}

#[async_trait]
impl PowerInterface for RedfishPower {
    async fn power_state(&self, node: &Node) -> Result<PowerState, InterfaceError> {
        let system = self.bmcs.system(node)?;
        let power = Power::read(&system.read().await?);
        let unknown = || system.lacks("a machine that does not tell its power", "look at the BMC");
        Ok(power.ok_or_else(unknown)?.state())
    }

    async fn power_on(&self, node: &Node) -> Result<(), InterfaceError> {
        let system = self.bmcs.system(node)?;
        if Power::read(&system.read().await?) == Some(Power::Off) {
            self.lasting.restore(&system, node).await?;
        }
        Ok(self.drive(&system, PowerState::On).await?)
    }

    async fn power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        Ok(self.drive(&self.bmcs.system(node)?, PowerState::Off).await?)
    }

    fn supports_reset(&self, _node: &Node) -> bool {
        true
    }

    async fn reset(&self, node: &Node) -> Result<(), InterfaceError> {
        self.reset_as(node, &["ForceRestart", "PowerCycle"]).await
    }

    fn supports_soft_power_off(&self, _node: &Node) -> bool {
        true
    }

    async fn soft_power_off(&self, node: &Node) -> Result<(), InterfaceError> {
        self.reset_as(node, &["GracefulShutdown", "PushPowerButton"]).await
    }

    async fn forget(&self, node: &Node) -> Result<(), InterfaceError> {
        self.lasting.forget(node);
        Ok(())
    }

    async fn shut_down(&self) {
        self.bmcs.leave().await;
    }
}
