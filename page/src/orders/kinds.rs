//! The orders of the page: what each is called, needs, does to a machine, and asks of the conductor.

use super::effect::{self, Effect};
use farrier_conductor::Settings;
use farrier_conductor::model::{Activity, Event, InstanceInfo, Node, PowerAction, PowerState};
use farrier_engine::Order;
use farrier_engine::records::{Deployment, Forbidden};
use serde_json::{Value, json};

/// An order.
#[derive(Debug)]
pub(crate) struct OrderKind {
    /// Its name in paths.
    pub(crate) name: &'static str,
    /// What its button says.
    pub(crate) label: &'static str,
    pub(crate) what: What,
    pub(crate) inputs: &'static [Input],
    effect: fn(&Node, &Settings) -> Effect,
    make: fn(&Texts<'_>) -> Result<Ordered, String>,
}

/// The texts of a form by the names of its inputs.
type Texts<'a> = dyn Fn(&str) -> &'a str + 'a;

/// When a node can have an order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum What {
    /// When its state allows a verb of the provision interface.
    Verb(Event),
    /// When its power can change so.
    Power(PowerAction),
    /// When its maintenance can begin or end.
    Maintenance(bool),
}

/// A field of the form of an order.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) kind: InputKind,
    pub(crate) is_required: bool,
}

/// How a field is filled in.
#[derive(Debug)]
pub(crate) enum InputKind {
    Text,
    Password,
    /// One of some texts, each with what it means.
    Choice(&'static [(&'static str, &'static str)]),
}

/// Steps of a cleaning by hand, each of them of every agent.
const ERASE_STEPS: &[(&str, &str)] = &[
    ("erase_devices_metadata", "partition tables and signatures are removed."),
    ("erase_devices", "all sectors are erased."),
    (
        "erase_devices_express",
        "the drives erase themselves where they can; of others, the metadata are removed.",
    ),
];

const fn input(name: &'static str, label: &'static str, kind: InputKind, is_required: bool) -> Input {
    Input { name, label, kind, is_required }
}

const IMAGE: &[Input] = &[
    input("image_source", "URL of the image (empty: that of the record)", InputKind::Text, false),
    input("image_checksum", "Checksum, such as sha256:… (empty: that of the record)", InputKind::Text, false),
];
const PASSWORD: &[Input] = &[input("password", "Password of the user rescue", InputKind::Password, true)];
const STEP: &[Input] = &[input("step", "Step", InputKind::Choice(ERASE_STEPS), true)];
const REASON: &[Input] = &[input("reason", "Reason", InputKind::Text, false)];

/// An entry of the table, whose order has no arguments.
macro_rules! plain {
    ($name:literal, $label:literal, $what:expr, $effect:path, $order:expr) => {
        OrderKind {
            name: $name,
            label: $label,
            what: $what,
            inputs: &[],
            effect: $effect,
            make: |_| Ok(Ordered::Order($order)),
        }
    };
}

/// A change of power.
macro_rules! power {
    ($name:literal, $label:literal, $action:ident, $effect:path) => {
        plain!($name, $label, What::Power(PowerAction::$action), $effect, Order::power(PowerAction::$action))
    };
}

/// All of them, in the order of the page.
pub(crate) const KINDS: &[OrderKind] = &[
    plain!("manage", "Manage", What::Verb(Event::Manage), effect::manage, Order::Manage),
    plain!("inspect", "Inspect", What::Verb(Event::Inspect), effect::inspect, Order::Inspect),
    plain!("provide", "Provide", What::Verb(Event::Provide), effect::provide, Order::Provide),
    OrderKind {
        name: "deploy",
        label: "Deploy",
        what: What::Verb(Event::Deploy),
        inputs: IMAGE,
        effect: effect::deploy,
        make: deployment,
    },
    plain!("retry", "Retry", What::Verb(Event::Retry), effect::retry, Order::Retry),
    plain!("unhold", "Unhold", What::Verb(Event::Unhold), effect::unhold, Order::Unhold),
    plain!("abort", "Abort", What::Verb(Event::Abort), effect::abort, Order::Abort),
    OrderKind {
        name: "rescue",
        label: "Rescue",
        what: What::Verb(Event::Rescue),
        inputs: PASSWORD,
        effect: effect::rescue,
        make: |text| Ok(Ordered::Order(Order::rescue(text("password")))),
    },
    plain!("unrescue", "Unrescue", What::Verb(Event::Unrescue), effect::unrescue, Order::Unrescue),
    plain!("adopt", "Adopt", What::Verb(Event::Adopt), effect::adopt, Order::Adopt),
    OrderKind {
        name: "clean",
        label: "Clean",
        what: What::Verb(Event::Clean),
        inputs: STEP,
        effect: effect::clean,
        make: |text| {
            Ok(Ordered::Order(Order::clean(&[json!({"interface": "deploy", "step": text("step")})])))
        },
    },
    plain!(
        "rebuild",
        "Rebuild",
        What::Verb(Event::Rebuild),
        effect::rebuild,
        Order::Rebuild(Deployment::default())
    ),
    plain!("undeploy", "Undeploy", What::Verb(Event::Delete), effect::undeploy, Order::Undeploy),
    power!("power-on", "Power on", On, effect::power_on),
    power!("soft-power-off", "Soft power off", SoftOff, effect::soft_power_off),
    power!("soft-reboot", "Soft reboot", SoftReboot, effect::soft_reboot),
    power!("power-off", "Power off", Off, effect::power_off),
    power!("reboot", "Reboot", Reboot, effect::reboot),
    OrderKind {
        name: "maintenance",
        label: "Begin maintenance",
        what: What::Maintenance(true),
        inputs: REASON,
        effect: effect::begin_maintenance,
        make: |text| {
            let reason = Some(text("reason")).filter(|reason| !reason.is_empty());
            Ok(Ordered::Maintenance(true, reason.map(str::to_owned)))
        },
    },
    OrderKind {
        name: "end-maintenance",
        label: "End maintenance",
        what: What::Maintenance(false),
        inputs: &[],
        effect: effect::end_maintenance,
        make: |_| Ok(Ordered::Maintenance(false, None)),
    },
];

/// An order with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ordered {
    Order(Order),
    Maintenance(bool, Option<String>),
}

impl OrderKind {
    /// The one with this name.
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Whether the state of a node allows it. Flags of the node may still forbid it.
    pub(crate) fn is_offered(&self, node: &Node) -> bool {
        match self.what {
            What::Verb(event) => node.provision_state.takes_verb(event) && node.reservation.is_none(),
            What::Power(PowerAction::On) => !is_worked_on(node) && node.power_state != Some(PowerState::On),
            What::Power(_) => !is_worked_on(node) && node.power_state != Some(PowerState::Off),
            What::Maintenance(begins) => node.maintenance != begins && node.reservation.is_none(),
        }
    }

    /// Why a flag of a node forbids it.
    pub(crate) fn forbidden(&self, node: &Node) -> Option<String> {
        match self.what {
            What::Verb(event) => Forbidden::check(node, event).err().map(|forbidden| forbidden.to_string()),
            What::Power(_) | What::Maintenance(_) => None,
        }
    }

    /// What it does to the machine of a node, and above all to its disks.
    pub(crate) fn effect(&self, node: &Node, settings: &Settings) -> Effect {
        (self.effect)(node, settings)
    }

    /// The order with its arguments, which `text` gives by the names of the inputs.
    ///
    /// # Errors
    ///
    /// What is missing, as a sentence.
    pub(crate) fn ordered<'a>(&self, text: impl Fn(&str) -> &'a str + 'a) -> Result<Ordered, String> {
        for input in self.inputs {
            let given = text(input.name);
            if input.is_required && given.is_empty() {
                return Err(format!("{} is missing.", input.label));
            }
            if let InputKind::Choice(choices) = &input.kind
                && !choices.iter().any(|(choice, _)| *choice == given)
            {
                return Err(format!("{} has a value that it cannot have.", input.label));
            }
        }
        (self.make)(&text)
    }
}

/// Whether a conductor works on a node.
pub(crate) fn is_worked_on(node: &Node) -> bool {
    node.provision_state.activity() == Activity::Work || node.reservation.is_some()
}

/// A deployment of the image that the form names, or else of the record.
fn deployment(text: &Texts<'_>) -> Result<Ordered, String> {
    let order = match (text("image_source"), text("image_checksum")) {
        ("", "") => Order::Deploy(Deployment::default()),
        ("", _) => return Err("A checksum needs the URL of its image.".to_owned()),
        (source, checksum) => Order::deploy(instance_info(source, checksum)),
    };
    Ok(Ordered::Order(order))
}

/// An instance of an image.
fn instance_info(source: &str, checksum: &str) -> InstanceInfo {
    let mut info = InstanceInfo::default();
    info.insert("image_source".to_owned(), source.into());
    if !checksum.is_empty() {
        info.insert("image_checksum".to_owned(), Value::from(checksum));
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::{NewNode, ProvisionState};
    use std::collections::BTreeSet;
    use time::OffsetDateTime;

    fn node(state: ProvisionState) -> Node {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        node.provision_state = state;
        node
    }

    fn offered(node: &Node) -> Vec<&'static str> {
        KINDS.iter().filter(|kind| kind.is_offered(node)).map(|kind| kind.name).collect()
    }

    #[test]
    fn every_verb_of_operators_but_service_is_an_order_and_has_one_name() {
        let verbs: BTreeSet<_> = KINDS
            .iter()
            .filter_map(|kind| match kind.what {
                What::Verb(event) => Some(event),
                What::Power(_) | What::Maintenance(_) => None,
            })
            .collect();
        let missing: Vec<_> = Event::ALL[..14].iter().filter(|event| !verbs.contains(event)).collect();
        assert_eq!(missing, [&Event::Service]);
        assert!(
            PowerAction::ALL.iter().all(|action| KINDS.iter().any(|kind| kind.what == What::Power(*action)))
        );
        let names: BTreeSet<_> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
    }

    #[test]
    fn a_node_is_offered_what_its_state_allows() {
        for (state, expected) in [
            (ProvisionState::Enroll, "manage"),
            (ProvisionState::Available, "manage deploy"),
            (ProvisionState::Active, "rescue rebuild undeploy"),
            (ProvisionState::DeployWait, "abort undeploy"),
            (ProvisionState::DeployFailed, "deploy retry rebuild undeploy"),
            (ProvisionState::CleanHold, "unhold abort"),
        ] {
            let power = "power-on soft-power-off soft-reboot power-off reboot maintenance";
            assert_eq!(offered(&node(state)).join(" "), format!("{expected} {power}"), "{state}");
        }
        assert_eq!(offered(&node(ProvisionState::Deploying)), ["maintenance"]);
        let mut on = node(ProvisionState::Enroll);
        (on.power_state, on.maintenance) = (Some(PowerState::On), true);
        let expected = ["manage", "soft-power-off", "soft-reboot", "power-off", "reboot", "end-maintenance"];
        assert_eq!(offered(&on), expected);
        on.power_state = Some(PowerState::Off);
        assert_eq!(offered(&on), ["manage", "power-on", "end-maintenance"]);
        on.reservation = Some("c1".into());
        assert!(offered(&on).is_empty());
    }

    #[test]
    fn an_order_has_its_arguments_or_says_what_is_missing() {
        let with = |name: &str, fields: &[(&str, &'static str)]| {
            let kind = OrderKind::named(name).unwrap();
            kind.ordered(|field| {
                fields.iter().find(|(name, _)| *name == field).map_or("", |(_, value)| value)
            })
        };
        assert_eq!(with("rescue", &[]).unwrap_err(), "Password of the user rescue is missing.");
        assert!(with("clean", &[("step", "rm_rf")]).unwrap_err().contains("cannot have"));
        assert!(with("deploy", &[("image_checksum", "sha256:0")]).is_err());
        assert_eq!(with("deploy", &[]).unwrap(), Ordered::Order(Order::Deploy(Deployment::default())));
        let Ordered::Order(Order::Deploy(deployment)) =
            with("deploy", &[("image_source", "http://h/i"), ("image_checksum", "sha256:0")]).unwrap()
        else {
            panic!("a deployment")
        };
        let info = json!({"image_source": "http://h/i", "image_checksum": "sha256:0"});
        assert_eq!(json!(deployment.instance_info), info);
        let reason = Some("fan".to_owned());
        assert_eq!(with("maintenance", &[("reason", "fan")]).unwrap(), Ordered::Maintenance(true, reason));
        assert_eq!(with("end-maintenance", &[]).unwrap(), Ordered::Maintenance(false, None));
        for kind in KINDS.iter().filter(|kind| kind.inputs.is_empty()) {
            assert!(kind.ordered(|_| "").is_ok(), "{}", kind.name);
        }
    }
}
