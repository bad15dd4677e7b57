//! What a conductor is composed of, by name, and whether that can work.

use super::declaration::HardwareType;
use super::not_offered;
use crate::interfaces::boot::{BootCapability, BootNeed};
use crate::model::InterfaceKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Something that is declared and cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HardwareFault {
    /// No node could be enrolled.
    #[error("there is no hardware type; declare one")]
    NoHardwareType,
    /// Two hardware types have one name.
    #[error("hardware type {0:?} is declared twice")]
    TypeTwice(String),
    /// Two interfaces of a kind have one name.
    #[error("{0} interface {1:?} is registered twice")]
    InterfaceTwice(InterfaceKind, String),
    /// A hardware type names an interface that there is not.
    #[error(
        "hardware type {hardware_type:?} names {kind} interface {name:?}, which is not registered; there are: {known}"
    )]
    Unknown {
        /// The type.
        hardware_type: String,
        /// Kind of the interface.
        kind: InterfaceKind,
        /// Its name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// An interface of Ironic is named that there is not.
    #[error("{kind} interface {name:?} {reason}")]
    NotOffered {
        /// Kind of the interface.
        kind: InterfaceKind,
        /// Its name.
        name: String,
        /// Why not, and what to use in its place.
        reason: &'static str,
    },
    /// An enabled interface does not exist.
    #[error("{kind} interface {name:?} cannot be enabled, since it is not registered; there are: {known}")]
    UnknownEnabled {
        /// Kind of the interface.
        kind: InterfaceKind,
        /// Its name.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// A hardware type has no interface of a kind that every node needs.
    #[error(
        "hardware type {hardware_type:?} has no enabled {kind} interface, and every node needs one; it supports: {supported}"
    )]
    Missing {
        /// The type.
        hardware_type: String,
        /// The kind.
        kind: InterfaceKind,
        /// What it names.
        supported: String,
    },
    /// The default of a kind is not among those that are enabled.
    #[error("the default {kind} interface {name:?} is not enabled; enabled are: {enabled}")]
    DefaultNotEnabled {
        /// The kind.
        kind: InterfaceKind,
        /// The default.
        name: String,
        /// Those that are enabled.
        enabled: String,
    },
    /// The default of a kind does not work for a hardware type.
    #[error(
        "the default {kind} interface {name:?} does not work for hardware type {hardware_type:?}, which supports: {supported}"
    )]
    DefaultNotSupported {
        /// The kind.
        kind: InterfaceKind,
        /// The default.
        name: String,
        /// The type.
        hardware_type: String,
        /// What it names.
        supported: String,
    },
    /// A deploy interface that chooses another one has none to choose.
    #[error(
        "hardware type {hardware_type:?}: deploy interface {deploy:?} chooses among {candidates}, none of which is enabled for \
         the type"
    )]
    NothingToChoose {
        /// The type.
        hardware_type: String,
        /// The deploy interface.
        deploy: String,
        /// Those among which it chooses.
        candidates: String,
    },
    /// No boot interface of a hardware type goes with one of its deploy interfaces.
    #[error(
        "hardware type {hardware_type:?}: deploy interface {deploy:?} needs {need}, and the type has: {boots}"
    )]
    NoBoot {
        /// The type.
        hardware_type: String,
        /// The deploy interface.
        deploy: String,
        /// What it needs.
        need: BootNeed,
        /// The boot interfaces of the type.
        boots: String,
    },
}

/// Everything that is declared and cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the conductor cannot start: {}", listed(.0, "; "))]
pub struct ImpossibleHardware(
    /// Each fault.
    pub Vec<HardwareFault>,
);

/// The declared parts of a conductor.
#[derive(Debug, Clone, Default)]
pub struct Declared {
    /// The hardware types, each once.
    pub types: Vec<HardwareType>,
    /// What every type supports before what it declares.
    pub by_all: BTreeMap<InterfaceKind, Vec<String>>,
    /// The interfaces that are registered.
    pub known: BTreeMap<InterfaceKind, Vec<String>>,
    /// Those of them that nodes may have; all of a kind of which nothing is said.
    pub enabled: BTreeMap<InterfaceKind, Vec<String>>,
    /// The interfaces of nodes that choose none.
    pub defaults: BTreeMap<InterfaceKind, String>,
    /// What boot interfaces can boot.
    pub boot_capabilities: BTreeMap<String, Vec<BootCapability>>,
    /// What deploy interfaces need of them.
    pub boot_needs: BTreeMap<String, BootNeed>,
    /// Of deploy interfaces that choose one, those among which they do, the best one first.
    pub candidates: BTreeMap<String, Vec<String>>,
}

/// A composition that can work.
#[derive(Debug, Clone)]
pub struct Composition {
    pub(super) types: BTreeMap<String, HardwareType>,
    pub(super) enabled: BTreeMap<InterfaceKind, BTreeSet<String>>,
    pub(super) defaults: BTreeMap<InterfaceKind, String>,
    pub(super) boot_capabilities: BTreeMap<String, Vec<BootCapability>>,
    pub(super) boot_needs: BTreeMap<String, BootNeed>,
    candidates: BTreeMap<String, Vec<String>>,
}

impl Declared {
    /// Checks that it can work.
    ///
    /// # Errors
    ///
    /// All faults at once.
    pub fn check(mut self) -> Result<Composition, ImpossibleHardware> {
        for hardware_type in &mut self.types {
            self.by_all.iter().for_each(|(kind, names)| hardware_type.prefer(*kind, names));
        }
        let mut faults = self.repeated();
        faults.extend(self.wrongly_enabled());
        let enabled = InterfaceKind::ALL.iter().map(|kind| (*kind, self.enabled(*kind).collect()));
        let enabled: BTreeMap<InterfaceKind, BTreeSet<String>> = enabled.collect();
        for (kind, name) in self.defaults.iter().filter(|(kind, name)| !enabled[kind].contains(*name)) {
            let enabled = listed(&enabled[kind], ", ");
            let fault = HardwareFault::DefaultNotEnabled { kind: *kind, name: name.clone(), enabled };
            faults.push(if self.known(*kind).contains(name) { fault } else { unknown(*kind, name, fault) });
        }
        let composition = Composition {
            types: self.types.iter().map(|one| (one.name().to_owned(), one.clone())).collect(),
            enabled,
            defaults: self.defaults,
            boot_capabilities: self.boot_capabilities,
            boot_needs: self.boot_needs,
            candidates: self.candidates,
        };
        for hardware_type in &self.types {
            faults.extend(composition.faults_of(hardware_type, &self.known));
        }
        if faults.is_empty() { Ok(composition) } else { Err(ImpossibleHardware(faults)) }
    }

    fn known(&self, kind: InterfaceKind) -> &[String] {
        self.known.get(&kind).map_or(&[], Vec::as_slice)
    }

    fn enabled(&self, kind: InterfaceKind) -> impl Iterator<Item = String> {
        self.enabled.get(&kind).map_or(self.known(kind), Vec::as_slice).iter().cloned()
    }

    /// Faults of names that there are twice, or not at all.
    fn repeated(&self) -> Vec<HardwareFault> {
        let types = twice(self.types.iter().map(|one| one.name().to_owned()));
        let mut faults: Vec<_> = types.into_iter().map(HardwareFault::TypeTwice).collect();
        if self.types.is_empty() {
            faults.push(HardwareFault::NoHardwareType);
        }
        for kind in InterfaceKind::ALL {
            let names = twice(self.known(*kind).iter().cloned());
            faults.extend(names.into_iter().map(|name| HardwareFault::InterfaceTwice(*kind, name)));
        }
        faults
    }

    fn wrongly_enabled(&self) -> impl Iterator<Item = HardwareFault> {
        let is_unknown = |kind: InterfaceKind, name: &String| !self.known(kind).contains(name);
        self.enabled.iter().flat_map(move |(kind, names)| {
            names.iter().filter(move |name| is_unknown(*kind, name)).map(|name| {
                let known = listed(self.known(*kind), ", ");
                let fault = HardwareFault::UnknownEnabled { kind: *kind, name: name.clone(), known };
                unknown(*kind, name, fault)
            })
        })
    }
}

impl Composition {
    /// Those of a type's interfaces that are enabled, the best one first.
    pub(super) fn candidates<'a>(
        &'a self,
        hardware_type: &'a HardwareType,
        kind: InterfaceKind,
    ) -> impl Iterator<Item = &'a String> {
        hardware_type.supported(kind).iter().filter(move |name| self.enabled[&kind].contains(*name))
    }

    /// What a deploy interface needs of the boot interface beside it.
    pub(super) fn boot_need(&self, deploy: &str) -> BootNeed {
        self.boot_needs.get(deploy).copied().unwrap_or(BootNeed::Nothing)
    }

    /// Whether a deploy interface works with a boot interface.
    pub(super) fn goes_with(&self, deploy: &str, boot: Option<&str>) -> bool {
        self.meets(self.boot_need(deploy), boot)
    }

    /// Whether a boot interface does for a need.
    pub(super) fn meets(&self, need: BootNeed, boot: Option<&str>) -> bool {
        let capabilities = boot.map(|boot| self.boot_capabilities.get(boot).map_or(&[][..], Vec::as_slice));
        need.is_met_by(capabilities)
    }

    fn faults_of(
        &self,
        hardware_type: &HardwareType,
        known: &BTreeMap<InterfaceKind, Vec<String>>,
    ) -> Vec<HardwareFault> {
        let mut faults = Vec::new();
        for kind in InterfaceKind::ALL.iter().copied() {
            let supported = hardware_type.supported(kind);
            let registered = known.get(&kind).map_or(&[][..], Vec::as_slice);
            faults.extend(supported.iter().filter(|name| !registered.contains(name)).map(|name| {
                let fault = HardwareFault::Unknown {
                    hardware_type: hardware_type.name().to_owned(),
                    kind,
                    name: name.clone(),
                    known: listed(registered, ", "),
                };
                unknown(kind, name, fault)
            }));
            if kind.is_mandatory() && self.candidates(hardware_type, kind).next().is_none() {
                faults.push(HardwareFault::Missing {
                    hardware_type: hardware_type.name().to_owned(),
                    kind,
                    supported: listed(supported, ", "),
                });
            }
            if let Some(name) = self.defaults.get(&kind).filter(|name| !supported.contains(name)) {
                faults.push(HardwareFault::DefaultNotSupported {
                    kind,
                    name: name.clone(),
                    hardware_type: hardware_type.name().to_owned(),
                    supported: listed(supported, ", "),
                });
            }
        }
        faults.extend(self.deploys_without_boot(hardware_type));
        faults.extend(self.deploys_without_choice(hardware_type));
        faults
    }

    /// Of the deploy interfaces among which one chooses, those that a type has.
    pub(crate) fn choices<'a>(&'a self, hardware_type: &'a HardwareType, deploy: &str) -> Vec<&'a String> {
        let candidates = self.candidates.get(deploy).map_or(&[][..], Vec::as_slice);
        let is_had =
            |name: &&String| self.candidates(hardware_type, InterfaceKind::Deploy).any(|one| one == *name);
        candidates.iter().filter(is_had).collect()
    }

    fn deploys_without_choice<'a>(
        &'a self,
        hardware_type: &'a HardwareType,
    ) -> impl Iterator<Item = HardwareFault> + 'a {
        self.candidates(hardware_type, InterfaceKind::Deploy).filter_map(move |deploy| {
            let candidates = self.candidates.get(deploy).filter(|names| !names.is_empty())?;
            self.choices(hardware_type, deploy).is_empty().then(|| HardwareFault::NothingToChoose {
                hardware_type: hardware_type.name().to_owned(),
                deploy: deploy.clone(),
                candidates: listed(candidates, ", "),
            })
        })
    }

    fn deploys_without_boot(&self, hardware_type: &HardwareType) -> impl Iterator<Item = HardwareFault> {
        let boots: Vec<_> = self.candidates(hardware_type, InterfaceKind::Boot).collect();
        let works = |deploy: &str, boots: &[&String]| {
            self.goes_with(deploy, None) || boots.iter().any(|boot| self.goes_with(deploy, Some(boot)))
        };
        let deploys: Vec<_> = self.candidates(hardware_type, InterfaceKind::Deploy).collect();
        deploys
            .into_iter()
            .filter(|deploy| !works(deploy, &boots))
            .map(|deploy| HardwareFault::NoBoot {
                hardware_type: hardware_type.name().to_owned(),
                deploy: deploy.clone(),
                need: self.boot_need(deploy),
                boots: listed(&boots, ", "),
            })
            .collect::<Vec<_>>()
            .into_iter()
    }
}

/// The fault of naming what nobody has registered: `fault`, unless there is more to say about the name.
fn unknown(kind: InterfaceKind, name: &str, fault: HardwareFault) -> HardwareFault {
    match not_offered::reason(kind, name) {
        Some(reason) => HardwareFault::NotOffered { kind, name: name.to_owned(), reason },
        None => fault,
    }
}

/// Names that there are more than once, each once.
fn twice(names: impl Iterator<Item = String>) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    names.filter(|name| !seen.insert(name.clone())).collect()
}

/// Things after each other; `none` where there is none.
pub(super) fn listed<T: fmt::Display>(things: impl IntoIterator<Item = T>, between: &str) -> String {
    let texts: Vec<_> = things.into_iter().map(|thing| thing.to_string()).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(between) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use InterfaceKind::{Boot, Deploy, Management, Power};

    /// A composition that can work: of two boot interfaces one boots ramdisks.
    pub(in super::super) fn declared() -> Declared {
        let known = [
            (Power, vec!["strip", "ipmi"]),
            (Boot, vec!["pxe", "plain"]),
            (Deploy, vec!["direct", "ramdisk", "manual", "choice"]),
            (Management, vec!["noop"]),
            (InterfaceKind::Network, vec!["noop"]),
            (InterfaceKind::Storage, vec!["noop"]),
            (InterfaceKind::Console, vec!["no-console"]),
            (InterfaceKind::Vendor, vec!["no-vendor"]),
            (InterfaceKind::Inspect, vec!["no-inspect"]),
            (InterfaceKind::Rescue, vec!["no-rescue"]),
            (InterfaceKind::Raid, vec!["no-raid"]),
            (InterfaceKind::Bios, vec!["no-bios"]),
            (InterfaceKind::Firmware, vec!["no-firmware"]),
        ];
        let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let rack = HardwareType::new("rack").power(["ipmi", "strip"]).boot(["plain", "pxe"]);
        let bare = HardwareType::new("bare").power(["strip"]).deploy(["manual"]);
        Declared {
            types: vec![rack.deploy(["direct", "ramdisk"]), bare],
            known: known.into_iter().map(|(kind, names)| (kind, owned(names))).collect(),
            boot_capabilities: BTreeMap::from([("pxe".to_owned(), vec![BootCapability::RamdiskBoot])]),
            boot_needs: BTreeMap::from([
                ("direct".to_owned(), BootNeed::Any),
                ("ramdisk".to_owned(), BootNeed::Capability(BootCapability::RamdiskBoot)),
            ]),
            candidates: BTreeMap::from([("choice".to_owned(), owned(vec!["ramdisk", "direct"]))]),
            ..Declared::default()
        }
    }

    #[test]
    fn what_can_work_is_accepted() {
        declared().check().unwrap();
        let enabled = BTreeMap::from([(Power, vec!["strip".to_owned()])]);
        let defaults = BTreeMap::from([(Power, "strip".to_owned())]);
        Declared { enabled, defaults, ..declared() }.check().unwrap();
    }

    #[test]
    fn each_fault_is_told_with_its_reason() {
        type Break = fn(&mut Declared);
        let faults: [(Break, &str); 16] = [
            (|declared| declared.types.clear(), "there is no hardware type"),
            (
                |declared| declared.types.push(declared.types[0].clone()),
                "hardware type \"rack\" is declared twice",
            ),
            (
                |declared| declared.known.get_mut(&Boot).unwrap().push("pxe".into()),
                "boot interface \"pxe\" is registered twice",
            ),
            (
                |declared| declared.types[0] = declared.types[0].clone().boot(["pxe", "ipxee"]),
                "hardware type \"rack\" names boot interface \"ipxee\", which is not registered; there are: pxe, plain",
            ),
            (
                |declared| declared.types[1] = HardwareType::new("bare").deploy(["manual"]),
                "hardware type \"bare\" has no enabled power interface",
            ),
            (
                |declared| declared.types[1] = HardwareType::new("bare").power(["strip"]),
                "hardware type \"bare\" has no enabled deploy interface",
            ),
            (
                |declared| drop(declared.enabled.insert(Power, vec!["ipmi".into()])),
                "hardware type \"bare\" has no enabled power interface, and every node needs one; it supports: strip",
            ),
            (
                |declared| drop(declared.enabled.insert(Boot, vec!["pxe".into(), "ipxe".into()])),
                "boot interface \"ipxe\" cannot be enabled, since it is not registered; there are: pxe, plain",
            ),
            (
                |declared| drop(declared.defaults.insert(Management, "redfish".into())),
                "the default management interface \"redfish\" is not enabled; enabled are: noop",
            ),
            (
                |declared| drop(declared.defaults.insert(Power, "ipmi".into())),
                "the default power interface \"ipmi\" does not work for hardware type \"bare\", which supports: strip",
            ),
            (
                |declared| declared.types[1] = HardwareType::new("bare").power(["strip"]).deploy(["direct"]),
                "hardware type \"bare\": deploy interface \"direct\" needs a boot interface, and the type has: none",
            ),
            (
                |declared| declared.types[0] = declared.types[0].clone().boot(["plain"]),
                "hardware type \"rack\": deploy interface \"ramdisk\" needs a boot interface with the capability \
                 ramdisk_boot, and the type has: plain",
            ),
            (
                |declared| declared.types[1] = declared.types[1].clone().deploy(["anaconda"]),
                "the conductor cannot start: deploy interface \"anaconda\" is not supported, because",
            ),
            (
                |declared| drop(declared.enabled.insert(Deploy, vec!["direct".into(), "anaconda".into()])),
                "deploy interface \"anaconda\" is not supported, because",
            ),
            (
                |declared| drop(declared.defaults.insert(Deploy, "anaconda".into())),
                "boot the installer itself by \"ramdisk\"",
            ),
            (
                |declared| declared.types[1] = declared.types[1].clone().deploy(["manual", "choice"]),
                "hardware type \"bare\": deploy interface \"choice\" chooses among ramdisk, direct, none of which is enabled",
            ),
        ];
        for (breaks, text) in faults {
            let mut declared = declared();
            breaks(&mut declared);
            let error = declared.check().unwrap_err().to_string();
            assert!(error.contains(text), "{text:?} in {error:?}");
        }
    }

    /// Somebody's own interface may have any name.
    #[test]
    fn what_is_registered_is_offered() {
        let mut declared = declared();
        declared.known.get_mut(&Deploy).unwrap().push("anaconda".into());
        declared.types[1] = declared.types[1].clone().deploy(["anaconda"]);
        declared.check().unwrap();
    }

    #[test]
    fn a_choice_is_among_what_a_type_has() {
        for (deploys, enabled, expected) in [
            (vec!["direct", "ramdisk", "choice"], None, vec!["ramdisk", "direct"]),
            (vec!["direct", "choice"], None, vec!["direct"]),
            (vec!["direct", "ramdisk", "choice"], Some(vec!["direct", "choice", "manual"]), vec!["direct"]),
            (vec!["direct", "ramdisk", "choice"], Some(vec!["choice", "ramdisk", "manual"]), vec!["ramdisk"]),
        ] {
            let mut declared = declared();
            declared.types[0] = declared.types[0].clone().deploy(deploys.clone());
            let enabled = enabled.map(|names| (Deploy, names.into_iter().map(str::to_owned).collect()));
            declared.enabled = enabled.into_iter().collect();
            let composition = declared.check().unwrap();
            let rack = composition.hardware_type("rack").unwrap();
            assert_eq!(composition.choices(rack, "choice"), expected, "{deploys:?}");
            assert!(composition.choices(rack, "direct").is_empty());
        }
    }

    #[test]
    fn all_faults_are_told_at_once() {
        let mut declared = declared();
        declared.types.push(HardwareType::new("rack").boot(["pxee"]));
        declared.defaults.insert(Boot, "none".into());
        let ImpossibleHardware(faults) = declared.check().unwrap_err();
        // Twice, unknown boot, no power, no deploy, and the default: not enabled, and of no use to three types.
        assert_eq!(faults.len(), 8, "{faults:#?}");
    }
}
