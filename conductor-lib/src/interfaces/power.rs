//! Power (section 9.1).

use super::base::{Interface, InterfaceError};
use crate::agent::{AgentClient, AgentError};
use crate::model::InterfaceKind::Power;
use crate::model::{Node, PowerState};
use async_trait::async_trait;
use time::OffsetDateTime;

/// What an operator has to do to a machine that nothing else can switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandWork {
    /// What: an order, without a capital letter and an end.
    pub what: String,
    /// Since when.
    pub since: OffsetDateTime,
}

/// Switches a machine by the agent that runs on it (section 4.6): it can be rebooted, and nothing else.
#[async_trait]
pub trait InBandPower: Send + Sync {
    /// Orders the agent to reboot its machine, and returns when the agent has the order. The conductor sees to the
    /// rest: it waits until the agent is gone, and forgets it then and not before (pitfall 13.6).
    ///
    /// # Errors
    ///
    /// Any [`AgentError`].
    async fn order_reboot(&self, agent: &AgentClient) -> Result<(), AgentError>;
}

/// Switches a machine on and off.
///
/// Calls that change a machine never overlap: the conductor holds the node's lease around each. Its power state is
/// read at any time.
///
/// ```
/// use async_trait::async_trait;
/// use farrier_conductor::interfaces::{Interface, InterfaceError, PowerInterface};
/// use farrier_conductor::model::{Node, PowerState};
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// /// One outlet of a power strip.
/// #[derive(Default)]
/// struct Outlet(AtomicBool);
///
/// impl Interface for Outlet {}
///
/// #[async_trait]
/// impl PowerInterface for Outlet {
///     async fn power_state(&self, _node: &Node) -> Result<PowerState, InterfaceError> {
///         Ok(if self.0.load(Ordering::SeqCst) { PowerState::On } else { PowerState::Off })
///     }
///
///     async fn power_on(&self, _node: &Node) -> Result<(), InterfaceError> {
///         self.0.store(true, Ordering::SeqCst);
///         Ok(())
///     }
///
///     async fn power_off(&self, _node: &Node) -> Result<(), InterfaceError> {
///         self.0.store(false, Ordering::SeqCst);
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait PowerInterface: Interface {
    /// The power state that the machine reports now.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Driver`] when the machine cannot be asked.
    async fn power_state(&self, node: &Node) -> Result<PowerState, InterfaceError>;

    /// Powers the machine on; nothing happens when it is on.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn power_on(&self, node: &Node) -> Result<(), InterfaceError>;

    /// Powers the machine off at once and returns when it is off; nothing happens when it is off.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Driver`] when the machine stays on.
    async fn power_off(&self, node: &Node) -> Result<(), InterfaceError>;

    /// Powers the machine off and on.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn reboot(&self, node: &Node) -> Result<(), InterfaceError> {
        self.power_off(node).await?;
        self.power_on(node).await
    }

    /// Whether the machine can be reset without being powered off, from what its boot device is then.
    fn supports_reset(&self, _node: &Node) -> bool {
        false
    }

    /// Resets the machine without powering it off.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Unsupported`] where it cannot be.
    async fn reset(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Power, "reset")
    }

    /// Whether the machine's system can be asked to shut down.
    fn supports_soft_power_off(&self, _node: &Node) -> bool {
        false
    }

    /// Asks the machine's system to shut down, as its power button does, and does not wait until it has.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Unsupported`] where it cannot be asked.
    async fn soft_power_off(&self, _node: &Node) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Power, "soft power off")
    }

    /// Whether the power state sync should read the power state.
    fn supports_power_sync(&self, _node: &Node) -> bool {
        true
    }

    /// How the machine is switched by its agent, where nothing else can. Then it is never powered on or off.
    fn in_band(&self) -> Option<&dyn InBandPower> {
        None
    }

    /// What an operator has to do to the machine themselves; nothing where its BMC does, or where it is done.
    fn hand_work(&self, _node: &Node) -> Option<HandWork> {
        None
    }

    /// Forgets what the driver keeps about a node that is being deleted.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Driver`] when something could not be removed.
    async fn forget(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    /// Ends what must not outlive the conductor.
    async fn shut_down(&self) {}
}
