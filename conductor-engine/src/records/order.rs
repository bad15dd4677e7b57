//! What operators order of a node.

use farrier_conductor::model::{InstanceInfo, PowerAction};
use serde_json::Value;
use std::time::Duration;

/// What an operator orders of a node: the verbs of Ironic's provision and power interfaces, with their arguments (section
/// 1.2), and two of Farrier.
///
/// ```
/// use farrier_engine::{Conductor, Error, Order};
/// use serde_json::json;
///
/// # async fn orders(conductor: Conductor) -> Result<(), Error> {
/// conductor.order("n1", Order::clean(&[json!({"interface": "deploy", "step": "erase_devices"})])).await?;
/// conductor.order("n1", Order::Abort).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// An instance is deployed.
    Deploy(Deployment),
    /// The instance is deployed again.
    Rebuild(Deployment),
    /// The instance is removed: the machine is powered off, and its disk stays as it is until it is cleaned.
    Undeploy,
    /// The machine is verified to be under control, or taken out of the hands of users.
    Manage,
    /// The machine is cleaned for the next instance. Where automated cleaning is off, its node is available at once.
    Provide,
    /// Clean steps run, in their order.
    Clean(StepsOrder),
    /// Service steps run under the instance, in their order.
    Service(StepsOrder),
    /// A machine that runs its instance already is taken over. What `instance_info` says of the instance, if anything, must
    /// be what could have been deployed.
    Adopt,
    /// The machine is inspected.
    Inspect,
    /// The machine boots a rescue system, which is entered as `rescue` with this password. Only the hash of the password is
    /// kept, until the rescue system has it.
    Rescue {
        /// The password.
        password: String,
    },
    /// The instance of a machine that was rescued, or was to be, runs again.
    Unrescue,
    /// The operation that waits, or is held, ends: at once, or when the current step ends that must not be interrupted.
    Abort,
    /// The operation that is held continues.
    Unhold,
    /// An operation that failed resumes at the step that failed, or begins again where the agent that ran it is gone.
    /// Ironic has no such verb.
    Retry,
    /// The power of the machine changes.
    Power {
        /// How.
        action: PowerAction,
        /// Within another time than the setting for it, in whole seconds.
        timeout: Option<Duration>,
    },
    /// A node without an instance is deleted, and its machine powered off.
    Delete,
}

/// What is deployed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Deployment {
    /// What the instance is, with its config drive; that of the node's record where there is none.
    pub instance_info: Option<InstanceInfo>,
    /// The config drive: base64 of gzip, or its URL. The node keeps the one that it has where none is given, here or in
    /// `instance_info`, unless that is given without.
    pub config_drive: Option<String>,
    /// Deploy steps beside those that run by themselves, or in their place (section 3.1). Where there are none, those of the
    /// deploy templates whose names the instance wants as traits.
    pub steps: Vec<Value>,
}

/// Steps that are ordered.
#[derive(Debug, Clone, PartialEq)]
pub struct StepsOrder {
    /// The steps.
    pub steps: OrderedSteps,
    /// Whether they run without the ramdisk.
    pub disable_ramdisk: bool,
}

/// Where the steps of an order are.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderedSteps {
    /// In the order.
    Given(Vec<Value>),
    /// In the runbook with this name or identity. The node must have the name of the runbook as a trait.
    Runbook(String),
}

impl Order {
    /// An instance is deployed as `instance_info` says.
    pub fn deploy(instance_info: InstanceInfo) -> Self {
        Self::Deploy(Deployment { instance_info: Some(instance_info), ..Deployment::default() })
    }

    /// An instance is deployed as `instance_info` says, with these deploy steps.
    pub fn deploy_with_steps(instance_info: InstanceInfo, steps: &[Value]) -> Self {
        let instance_info = Some(instance_info);
        Self::Deploy(Deployment { instance_info, steps: steps.to_vec(), ..Deployment::default() })
    }

    /// These clean steps run in the ramdisk.
    pub fn clean(steps: &[Value]) -> Self {
        Self::Clean(StepsOrder::given(steps))
    }

    /// These service steps run, in the ramdisk where one of them needs it.
    pub fn service(steps: &[Value]) -> Self {
        Self::Service(StepsOrder::given(steps))
    }

    /// The power of the machine changes within the time that is set for it.
    pub fn power(action: PowerAction) -> Self {
        Self::Power { action, timeout: None }
    }

    /// A rescue with this password.
    pub fn rescue(password: impl Into<String>) -> Self {
        Self::Rescue { password: password.into() }
    }
}

impl StepsOrder {
    /// These steps, in the ramdisk.
    pub fn given(steps: &[Value]) -> Self {
        Self { steps: OrderedSteps::Given(steps.to_vec()), disable_ramdisk: false }
    }
}
