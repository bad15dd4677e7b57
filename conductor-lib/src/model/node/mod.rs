//! The node record (section 1.7).

pub mod instance_uuid;
pub mod interfaces;
pub mod port;
pub mod port_group;
pub mod switched_deploy;
pub mod traits;

use crate::model::agent_session::AgentSession;
use crate::model::mac_address::MacAddress;
use crate::model::node::instance_uuid::InstanceUuid;
use crate::model::node::interfaces::{InterfaceKind, NodeInterfaces};
use crate::model::node::port::Port;
use crate::model::node::port_group::PortGroup;
use crate::model::split_code;
use crate::model::states::faults::Fault;
use crate::model::states::transitions::Event;
use crate::model::states::{Activity, Family, PowerState, ProvisionState};
use crate::model::steps::step::{PlannedStep, StepKind};
use crate::model::steps::step_plan::StepPlan;
use crate::model::typed_maps::capabilities::BootMode;
use crate::model::typed_maps::driver_info::DriverInfo;
use crate::model::typed_maps::driver_internal_info::DriverInternalInfo;
use crate::model::typed_maps::instance_info::InstanceInfo;
use crate::model::typed_maps::mask::{mask, masked_text};
use crate::model::typed_maps::properties::Properties;
use crate::model::typed_maps::typed_map::BadValue;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;
use uuid::Uuid;

/// Longest `last_error`, in characters.
const LAST_ERROR_LIMIT: usize = 4096;

/// Where the life of a node begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InitialState {
    /// Known, and not yet proven to be controllable, as the REST interface has it from version 1.11 on.
    Enroll,
    /// Ready to be deployed.
    #[default]
    Available,
}

/// What an operator gives to enrol a node.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct NewNode {
    /// Unique name, where it gets one.
    #[serde(default)]
    pub name: Option<String>,
    /// Where its life begins.
    #[serde(skip)]
    pub initial_state: InitialState,
    /// Name of its hardware type.
    pub driver: String,
    /// Its interfaces, where they differ from the defaults of the hardware type.
    #[serde(flatten)]
    pub interfaces: NodeInterfaces,
    /// How the driver reaches the machine, and what it boots.
    #[serde(default)]
    pub driver_info: DriverInfo,
    /// Hardware properties; root device hints live here.
    #[serde(default)]
    pub properties: Properties,
    /// Hardware addresses; the first is the one the machine boots from.
    #[serde(default)]
    pub ports: Vec<MacAddress>,
    /// Whether the machine is cleaned before it becomes available; where nothing is said, the conductor's setting.
    #[serde(default)]
    pub automated_clean: Option<bool>,
}

/// A machine and everything the conductor knows about it, but for its agent and its config drive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Identity.
    pub uuid: Uuid,
    /// Unique name, where it has one.
    #[serde(default)]
    pub name: Option<String>,
    /// What operators wrote about it.
    #[serde(default)]
    pub description: Option<String>,
    /// Name of its hardware type.
    pub driver: String,
    /// Its interfaces.
    #[serde(flatten)]
    pub interfaces: NodeInterfaces,
    /// The conductors that lead it: those of this group, or those without a group where it is an empty text.
    #[serde(default)]
    pub conductor_group: String,
    /// What kind of machine schedulers take it for.
    #[serde(default)]
    pub resource_class: Option<String>,
    /// What else schedulers may ask for.
    #[serde(default)]
    pub traits: Vec<String>,
    /// The project that owns it.
    #[serde(default)]
    pub owner: Option<String>,
    /// The project that has it on loan.
    #[serde(default)]
    pub lessee: Option<String>,
    /// The part of a large site that it belongs to, for those who look after one part alone.
    #[serde(default)]
    pub shard: Option<String>,
    /// What its machine stands in.
    #[serde(default)]
    pub chassis_uuid: Option<Uuid>,
    /// The node whose machine this one is a part of.
    #[serde(default)]
    pub parent_node: Option<Uuid>,

    /// How the driver reaches the machine, and what it boots.
    pub driver_info: DriverInfo,
    /// The conductor's own notes.
    pub driver_internal_info: DriverInternalInfo,
    /// The instance that is deployed, or will be.
    pub instance_info: InstanceInfo,
    /// Identity of the instance, where its user gave one.
    #[serde(default)]
    pub instance_uuid: InstanceUuid,
    /// Name of the instance, for people.
    #[serde(default)]
    pub instance_name: Option<String>,
    /// The allocation that has taken the node.
    #[serde(default)]
    pub allocation_uuid: Option<Uuid>,
    /// Hardware properties; root device hints live here.
    pub properties: Properties,
    /// What operators keep.
    #[serde(default)]
    pub extra: Map<String, Value>,
    /// The networks of the ramdisk, where it gets no addresses by DHCP.
    #[serde(default)]
    pub network_data: Map<String, Value>,
    /// The RAID volumes that there are, and those that the operator wants.
    #[serde(default)]
    pub raid_config: Map<String, Value>,
    /// The RAID volumes that the operator wants.
    #[serde(default)]
    pub target_raid_config: Map<String, Value>,
    /// Network cards; the first is the one the machine boots from.
    #[serde(with = "port::addresses")]
    pub ports: Vec<Port>,
    /// The groups of its ports, for those who change its networks: resources of their own, which are stored elsewhere.
    #[serde(skip)]
    pub port_groups: Vec<PortGroup>,

    /// Where the node is in its life.
    pub provision_state: ProvisionState,
    /// State in which the current operation should end.
    pub target_provision_state: Option<ProvisionState>,
    /// When the state began.
    #[serde(with = "time::serde::rfc3339")]
    pub provision_updated_at: OffsetDateTime,
    /// Last known power state.
    pub power_state: Option<PowerState>,
    /// The power state that an operator ordered and that is not reached yet.
    #[serde(default)]
    pub target_power_state: Option<PowerState>,
    /// How the machine starts, as it said last: `bios` or `uefi`.
    #[serde(default)]
    pub boot_mode: Option<String>,
    /// Whether the machine starts only what is signed, as it said last.
    #[serde(default)]
    pub secure_boot: Option<bool>,
    /// Whether its serial console is open to its users.
    #[serde(default)]
    pub console_enabled: bool,
    /// How the machine is, as its BMC said last: `OK`, `Warning` or `Critical`.
    #[serde(default)]
    pub health: Option<String>,
    /// Why the last operation failed; at most 4096 characters.
    pub last_error: Option<String>,
    /// The clean step that is running.
    #[serde(default)]
    pub clean_step: Option<PlannedStep>,
    /// The deploy step that is running.
    pub deploy_step: Option<PlannedStep>,
    /// The service step that is running.
    #[serde(default)]
    pub service_step: Option<PlannedStep>,
    /// Whether the machine is cleaned before it becomes available; where nothing is said, the conductor's setting.
    #[serde(default)]
    pub automated_clean: Option<bool>,
    /// Whether the machine must never be powered off.
    #[serde(default)]
    pub disable_power_off: bool,
    /// When the last inspection was ordered.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub inspection_started_at: Option<OffsetDateTime>,
    /// When it was done; nothing while it is under way, and when it failed.
    #[serde(default, with = "time::serde::rfc3339::option")]
    pub inspection_finished_at: Option<OffsetDateTime>,

    /// Whether the conductor leaves the machine alone.
    #[serde(default)]
    pub maintenance: bool,
    /// Why it does.
    #[serde(default)]
    pub maintenance_reason: Option<String>,
    /// What made the conductor do so by itself.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// Whether the instance is not to be lost.
    #[serde(default)]
    pub protected: bool,
    /// Why.
    #[serde(default)]
    pub protected_reason: Option<String>,
    /// Whether the machine gets no further instance.
    #[serde(default)]
    pub retired: bool,
    /// Why.
    #[serde(default)]
    pub retired_reason: Option<String>,

    /// The conductor that works on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// When the node was enrolled.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// When the record last changed.
    #[serde(with = "time::serde::rfc3339")]
    pub updated_at: OffsetDateTime,
    /// What another version of the conductor has written, which stays.
    #[serde(flatten, deserialize_with = "unknown_fields")]
    pub others: Map<String, Value>,
}

/// Fields that are nobody's; those of [`NodeInterfaces`] are not among them.
fn unknown_fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Map<String, Value>, D::Error> {
    let mut others = Map::deserialize(deserializer)?;
    for kind in InterfaceKind::ALL {
        others.remove(&kind.field());
    }
    Ok(others)
}

impl Node {
    /// A freshly enrolled node.
    pub fn enrol(new: NewNode, now: OffsetDateTime) -> Self {
        Self {
            uuid: Uuid::new_v4(),
            name: new.name,
            description: None,
            driver: new.driver,
            interfaces: new.interfaces,
            conductor_group: String::new(),
            resource_class: None,
            traits: Vec::new(),
            owner: None,
            lessee: None,
            shard: None,
            chassis_uuid: None,
            parent_node: None,
            driver_info: new.driver_info,
            driver_internal_info: DriverInternalInfo::default(),
            instance_info: InstanceInfo::default(),
            instance_uuid: InstanceUuid::default(),
            instance_name: None,
            allocation_uuid: None,
            properties: new.properties,
            extra: Map::new(),
            network_data: Map::new(),
            raid_config: Map::new(),
            target_raid_config: Map::new(),
            ports: new
                .ports
                .into_iter()
                .map(|address| Port { created_at: Some(now), ..Port::new(address) })
                .collect(),
            port_groups: Vec::new(),
            provision_state: match new.initial_state {
                InitialState::Enroll => ProvisionState::Enroll,
                InitialState::Available => ProvisionState::Available,
            },
            target_provision_state: None,
            provision_updated_at: now,
            power_state: None,
            target_power_state: None,
            boot_mode: None,
            secure_boot: None,
            console_enabled: false,
            health: None,
            last_error: None,
            clean_step: None,
            deploy_step: None,
            service_step: None,
            automated_clean: new.automated_clean,
            disable_power_off: false,
            inspection_started_at: None,
            inspection_finished_at: None,
            maintenance: false,
            maintenance_reason: None,
            fault: None,
            protected: false,
            protected_reason: None,
            retired: false,
            retired_reason: None,
            reservation: None,
            created_at: now,
            updated_at: now,
            others: Map::new(),
        }
    }

    /// What people call it: its name, or its identity where it has none.
    pub fn label(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.uuid.to_string())
    }

    /// Moves to the state that `event` leads to and reports whether it was allowed (section 1.4).
    ///
    /// Cleaning by hand is cleaning whose target is `manageable`: it passes its target on with every event of the
    /// family (pitfall 13.9).
    #[must_use]
    pub fn apply(&mut self, event: Event, now: OffsetDateTime) -> bool {
        let Some(state) = self.provision_state.after(event) else { return false };
        let by_hand = self.target_provision_state == Some(ProvisionState::Manageable);
        let stays = state.family().is_some() && state.family() == self.provision_state.family();
        self.target_provision_state = match state.target() {
            Some(_) if by_hand && stays => self.target_provision_state,
            target => target,
        };
        match event {
            Event::Inspect => (self.inspection_started_at, self.inspection_finished_at) = (Some(now), None),
            Event::Done if self.provision_state.family() == Some(Family::Inspect) => {
                self.inspection_finished_at = Some(now);
            }
            _ => {}
        }
        let is_under_way = matches!(state.activity(), Activity::Work | Activity::Wait);
        self.driver_internal_info.interruptions.take_if(|_| !(is_under_way && stays));
        self.provision_state = state;
        self.provision_updated_at = now;
        true
    }

    /// Records why an operation failed, on one line. Its text is cut to its limit, and keeps its code.
    pub fn set_last_error(&mut self, text: &str) {
        let line = masked_text(text).split_whitespace().collect::<Vec<_>>().join(" ");
        let (text, code) = split_code(&line);
        let code = code.map(|code| format!(" [{code}]")).unwrap_or_default();
        self.last_error = Some(text.chars().take(LAST_ERROR_LIMIT - code.len()).collect::<String>() + &code);
    }

    /// How the machine starts, for agents, boot files and BMCs alike: as its instance wants, or as its properties say, or by
    /// UEFI (section 1.9).
    ///
    /// # Errors
    ///
    /// The capabilities of either cannot be read.
    pub fn boot_mode(&self) -> Result<BootMode, BadValue> {
        let of_instance = self.instance_info.capabilities()?.boot_mode()?;
        let of_node = self.properties.capabilities()?.boot_mode()?;
        Ok(of_instance.or(of_node).unwrap_or(BootMode::Uefi))
    }

    /// A text value of `driver_info`, when it is set and not empty.
    pub fn driver_text(&self, key: &str) -> Option<&str> {
        self.driver_info.text(key).ok().flatten()
    }

    /// The plan of an operation of this kind.
    pub fn plan(&self, kind: StepKind) -> &StepPlan {
        self.driver_internal_info.plan(kind)
    }

    /// The plan of an operation of this kind, to be changed.
    pub fn plan_mut(&mut self, kind: StepKind) -> &mut StepPlan {
        self.driver_internal_info.plan_mut(kind)
    }

    /// The step of this kind that is running.
    pub fn step(&self, kind: StepKind) -> Option<&PlannedStep> {
        match kind {
            StepKind::Clean => self.clean_step.as_ref(),
            StepKind::Deploy => self.deploy_step.as_ref(),
            StepKind::Service => self.service_step.as_ref(),
        }
    }

    /// The step of this kind that is running, to be changed.
    pub fn step_mut(&mut self, kind: StepKind) -> &mut Option<PlannedStep> {
        match kind {
            StepKind::Clean => &mut self.clean_step,
            StepKind::Deploy => &mut self.deploy_step,
            StepKind::Service => &mut self.service_step,
        }
    }

    /// The step of the operation under way.
    pub fn current_step(&self) -> Option<&PlannedStep> {
        self.step(StepKind::of(self.provision_state)?)
    }

    /// Forgets every plan, and the current step.
    pub fn end_plans(&mut self) {
        (self.clean_step, self.deploy_step, self.service_step) = (None, None, None);
        self.driver_internal_info.end_plans();
    }

    /// Whether cleaning was ordered by hand, so that it ends where it began (section 1.4).
    pub fn is_cleaned_by_hand(&self) -> bool {
        self.provision_state.family() == Some(Family::Clean)
            && self.target_provision_state == Some(ProvisionState::Manageable)
    }

    /// Forgets the instance (section 1.13).
    pub fn end_instance(&mut self) {
        self.end_plans();
        self.restore_deploy_interface();
        self.instance_info.clear();
        self.instance_uuid.remove();
        self.instance_name = None;
        self.allocation_uuid = None;
        self.driver_internal_info.end_instance();
    }

    /// The record as it leaves the conductor: with what is known of its agent, and every secret masked wherever it is
    /// in the record as JSON (lessons S40 and S48).
    pub fn shown(&self, session: &AgentSession) -> Self {
        let mut node = self.clone();
        if let Ok(Value::Object(session)) = serde_json::to_value(session) {
            let known = session.into_iter().filter(|(_, value)| !value.is_null());
            node.driver_internal_info.others.extend(known);
        }
        let masked = match serde_json::to_value(&node) {
            Ok(Value::Object(mut record)) => {
                mask(&mut record);
                serde_json::from_value::<Self>(Value::Object(record)).ok()
            }
            _ => None,
        };
        // What cannot be masked is not shown.
        let shown = masked.unwrap_or_else(|| Self {
            uuid: self.uuid,
            ports: Vec::new(),
            ..Self::enrol(NewNode { driver: self.driver.clone(), ..NewNode::default() }, self.created_at)
        });
        Self { ports: self.ports.iter().map(Port::shown).collect(), port_groups: Vec::new(), ..shown }
    }

    /// The record as its agent gets it with a step: as it leaves the conductor, without plans, arguments of steps and
    /// what finds the machine. The step comes beside it, with its own arguments.
    pub fn shown_to_agent(&self, session: &AgentSession) -> Self {
        let mut node = self.shown(session);
        for kind in StepKind::ALL {
            *node.plan_mut(kind) = StepPlan::default();
            if let Some(step) = node.step_mut(kind) {
                step.args.clear();
            }
        }
        node.driver_internal_info.ramdisk_parameters = None;
        node.driver_internal_info.others.remove("lookup_bmc_addresses");
        node
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    pub(in super::super) fn node() -> Node {
        let new = NewNode {
            name: Some("n1".into()),
            driver: "fake".into(),
            ports: vec!["52:54:00:00:00:01".parse().unwrap()],
            ..NewNode::default()
        };
        Node::enrol(new, OffsetDateTime::UNIX_EPOCH)
    }

    #[test]
    fn a_transition_sets_target_and_clock_and_a_refused_one_changes_nothing() {
        let mut node = node();
        let later = OffsetDateTime::UNIX_EPOCH + time::Duration::HOUR;
        assert!(!node.apply(Event::Done, later));
        assert_eq!(node, Node { uuid: node.uuid, ports: node.ports.clone(), ..self::node() });
        assert!(node.apply(Event::Deploy, later));
        assert_eq!(node.target_provision_state, Some(ProvisionState::Active));
        assert_eq!(node.provision_updated_at, later);
        assert!(node.apply(Event::Done, later));
        assert_eq!(node.target_provision_state, None);
    }

    /// Agents, boot files and BMCs must have one answer (section 1.9).
    #[test]
    fn e18_what_an_instance_wants_of_the_boot_mode_holds_before_the_properties() {
        use BootMode::{Bios, Uefi};
        for (of_instance, of_node, expected) in [
            (json!(null), json!(null), Uefi),
            (json!(null), json!("boot_mode:bios"), Bios),
            (json!(null), json!("cpu_vt:true, boot_mode:bios"), Bios),
            (json!({"boot_mode": "bios"}), json!(null), Bios),
            (json!({"boot_mode": "bios"}), json!("boot_mode:uefi"), Bios),
            (json!("boot_mode:uefi"), json!({"boot_mode": "bios"}), Uefi),
            (json!({"secure_boot": "true"}), json!("boot_mode:bios"), Bios),
        ] {
            let mut node = node();
            node.instance_info.insert("capabilities".into(), of_instance.clone());
            node.properties.insert("capabilities".into(), of_node.clone());
            assert_eq!(node.boot_mode(), Ok(expected), "{of_instance} {of_node}");
            node.instance_info.insert("capabilities".into(), json!("boot_mode:both"));
            assert!(node.boot_mode().unwrap_err().to_string().contains("must be bios or uefi"));
        }
    }

    /// E12: what is ordered beside an operation changes nothing of how often it was interrupted.
    #[test]
    fn e12_interruptions_count_for_one_operation() {
        let mut node = node();
        node.provision_state = ProvisionState::Manageable;
        assert!(node.apply(Event::Clean, OffsetDateTime::UNIX_EPOCH));
        node.driver_internal_info.interruptions = Some(2);
        for event in [Event::Wait, Event::Resume, Event::Wait] {
            assert!(node.apply(event, OffsetDateTime::UNIX_EPOCH));
            assert_eq!(node.driver_internal_info.interruptions, Some(2), "{event:?}");
        }
        assert!(node.apply(Event::Abort, OffsetDateTime::UNIX_EPOCH));
        assert_eq!(node.driver_internal_info.interruptions, None);
    }

    /// Pitfall 13.9: otherwise cleaning by hand turns into automated cleaning, whose node becomes available.
    #[test]
    fn cleaning_by_hand_keeps_its_target_through_every_event() {
        use Event::{Clean, Delete, Fail, Hold, Manage, Resume, Unhold, Wait};
        let now = OffsetDateTime::UNIX_EPOCH;
        let mut by_hand = node();
        by_hand.provision_state = ProvisionState::Manageable;
        assert!(by_hand.apply(Clean, now));
        by_hand.target_provision_state = Some(ProvisionState::Manageable);
        for event in [Wait, Resume, Hold, Unhold, Resume, Fail] {
            assert!(by_hand.apply(event, now), "{event}");
            assert_eq!(by_hand.target_provision_state, Some(ProvisionState::Manageable), "{event}");
        }
        assert!(by_hand.apply(Manage, now));
        assert_eq!(by_hand.target_provision_state, None);

        let mut automated = node();
        automated.provision_state = ProvisionState::Active;
        assert!(automated.apply(Delete, now) && automated.apply(Clean, now));
        assert_eq!(automated.target_provision_state, Some(ProvisionState::Available));
        // An inspection that began from `manageable` targets it too, and ends with its family.
        let mut inspected = node();
        inspected.provision_state = ProvisionState::Manageable;
        let later = now + time::Duration::HOUR;
        assert!(inspected.apply(Event::Inspect, now));
        assert_eq!((inspected.inspection_started_at, inspected.inspection_finished_at), (Some(now), None));
        assert!(inspected.apply(Event::Wait, later) && inspected.apply(Event::Done, later));
        assert_eq!(
            (inspected.inspection_started_at, inspected.inspection_finished_at),
            (Some(now), Some(later))
        );
        assert!(inspected.apply(Event::Provide, now));
        assert_eq!(inspected.target_provision_state, Some(ProvisionState::Available));
    }

    #[test]
    fn last_error_is_one_line_within_its_limit() {
        let mut node = node();
        node.set_last_error(&format!("disk /dev/vda:\n  {} [FAR-0204]", "ü".repeat(5000)));
        let text = node.last_error.unwrap();
        assert!(text.ends_with("ü [FAR-0204]"), "{text}");
        assert!(text.starts_with("disk /dev/vda: ü"));
        assert_eq!(text.chars().count(), LAST_ERROR_LIMIT);
    }

    #[test]
    fn s48_secrets_do_not_leave_the_record() {
        let mut node = node();
        node.driver_info =
            serde_json::from_value(json!({"redfish_password": "x1", "qemu_cpus": "2"})).unwrap();
        node.instance_info = serde_json::from_value(
            json!({"configdrive": "x2", "image_source": "http://a/b", "deep": {"token": "x3"}}),
        )
        .unwrap();
        node.driver_internal_info.others.insert("bmc_password".into(), "x5".into());
        let session = AgentSession {
            agent_secret_token: Some("x4".into()),
            agent_url: Some("https://192.0.2.1:9999".into()),
            ..AgentSession::default()
        };
        let shown = node.shown(&session);
        let text = serde_json::to_string(&shown).unwrap();
        for secret in ["x1", "x2", "x3", "x4", "x5"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert!(text.contains("http://a/b") && text.contains(r#""qemu_cpus":"2""#), "{text}");
        assert_eq!(shown.driver_internal_info.others["agent_secret_token"], "******");
        assert_eq!(shown.driver_internal_info.others["agent_url"], "https://192.0.2.1:9999");
    }

    #[test]
    fn the_record_survives_its_own_json() {
        let mut node = node();
        node.instance_uuid.set(Uuid::new_v4()).unwrap();
        node.fault = Some(Fault::Clean);
        node.driver_internal_info.others.insert("vendor_note".into(), json!([1]));
        node.others.insert("of_another_version".into(), json!({"kept": true}));
        let mut record = json!(node);
        record["description"] = json!("kept");
        let read: Node = serde_json::from_value(record).unwrap();
        // Of ports, the record has the addresses alone.
        let ports =
            read.ports.iter().map(|port| &port.address).eq(node.ports.iter().map(|port| &port.address));
        assert!(ports, "{:?}", read.ports);
        let description = Some("kept".to_owned());
        assert_eq!(read, Node { description, ports: read.ports.clone(), ..node });
    }
}
