//! What a conductor is composed of (section 10): interfaces by name, and hardware types that say which of them go together.

use super::Unsupported;
use super::families::{Families, Registered};
use crate::deploy::{Autodetect, Bootc, CustomAgent, DeployInterface, Direct, Ramdisk};
use crate::error::Error;
use crate::hardware_type::{Declared, Hardware, HardwareType, Interfaces};
use crate::in_band::{AgentInspect, AgentRaid, AgentRescue, InspectInterface, RescueInterface};
use crate::interfaces::{
    BootInterface, ConsoleInterface, Interface, ManagementInterface, NetworkInterface, Noop, PowerInterface,
    RaidInterface, StorageInterface, VendorInterface,
};
use crate::model::InterfaceKind;
use crate::settings::Settings;
use std::sync::Arc;

/// The drivers of a conductor: interfaces by name, hardware types that say which of them go together, and which a node has
/// that chooses none. The deploy interfaces `direct`, `custom-agent`, `bootc`, `ramdisk` and `autodetect`, the
/// interfaces `agent` for inspection, RAID and rescue, `noop` and `no-console`, `no-inspect`, `no-raid`, `no-rescue`,
/// `no-vendor`, `no-bios`, `no-firmware` are there already.
///
/// ```
/// use farrier_conductor::interfaces::{BootInterface, PowerInterface};
/// use farrier_conductor::{Drivers, HardwareType};
///
/// /// The drivers of a site whose machines have one kind of power and boot.
/// fn drivers(power: impl PowerInterface + 'static, boot: impl BootInterface + 'static) -> Drivers {
///     let strip = HardwareType::new("strip").power(["outlet"]).boot(["ipxe"]).deploy(["direct", "ramdisk"]);
///     Drivers::default().power("outlet", power).boot("ipxe", boot).hardware_type(strip)
/// }
/// ```
pub struct Drivers {
    interfaces: Interfaces,
    families: Registered,
    declared: Declared,
}

impl Default for Drivers {
    fn default() -> Self {
        let (interfaces, families) = (Interfaces::default(), Registered::default());
        let drivers = Self { interfaces, families, declared: Declared::default() };
        let drivers = drivers.management("noop", Noop).network("noop", Noop).storage("noop", Noop);
        drivers
            .console("no-console", Unsupported(InterfaceKind::Console))
            .vendor("no-vendor", Unsupported(InterfaceKind::Vendor))
            .deploy("direct", Direct)
            .deploy("custom-agent", CustomAgent)
            .deploy("bootc", Bootc)
            .deploy("ramdisk", Ramdisk)
            .rescue("agent", AgentRescue)
            .rescue("no-rescue", Unsupported(InterfaceKind::Rescue))
            .inspect("agent", AgentInspect)
            .inspect("no-inspect", Unsupported(InterfaceKind::Inspect))
            .raid("agent", AgentRaid)
            .raid("no-raid", Unsupported(InterfaceKind::Raid))
            .absent(InterfaceKind::Bios)
            .absent(InterfaceKind::Firmware)
    }
}

macro_rules! registrations {
    ($($method:ident = $kind:ident: $interface:ident,)*) => {
        $(
            #[doc = concat!("Registers a ", stringify!($method), " interface.")]
            #[must_use]
            pub fn $method(mut self, name: impl Into<String>, interface: impl $interface + 'static) -> Self {
                let (name, interface) = (name.into(), Arc::new(interface));
                self.interfaces.all.push((InterfaceKind::$kind, name.clone(), interface.clone()));
                self.interfaces.$method.add(name, interface);
                self
            }
        )*
    };
}

impl Drivers {
    registrations! {
        power = Power: PowerInterface,
        management = Management: ManagementInterface,
        boot = Boot: BootInterface,
        network = Network: NetworkInterface,
        storage = Storage: StorageInterface,
        console = Console: ConsoleInterface,
        vendor = Vendor: VendorInterface,
        raid = Raid: RaidInterface,
    }

    /// Registers a deploy interface.
    #[must_use]
    pub fn deploy(mut self, name: impl Into<String>, interface: impl DeployInterface + 'static) -> Self {
        let (name, interface) = (name.into(), Arc::new(interface));
        self.declared.boot_needs.insert(name.clone(), interface.boot_need());
        self.declared.candidates.insert(name.clone(), interface.candidates().to_vec());
        self.interfaces.all.push((InterfaceKind::Deploy, name.clone(), interface.clone()));
        self.families.deploy.add(name, interface);
        self
    }

    /// Registers an inspect interface.
    #[must_use]
    pub fn inspect(mut self, name: impl Into<String>, interface: impl InspectInterface + 'static) -> Self {
        let (name, interface) = (name.into(), Arc::new(interface));
        self.interfaces.all.push((InterfaceKind::Inspect, name.clone(), interface.clone()));
        self.families.inspect.add(name, interface);
        self
    }

    /// Registers a rescue interface.
    #[must_use]
    pub fn rescue(mut self, name: impl Into<String>, interface: impl RescueInterface + 'static) -> Self {
        let (name, interface) = (name.into(), Arc::new(interface));
        self.interfaces.all.push((InterfaceKind::Rescue, name.clone(), interface.clone()));
        self.families.rescue.add(name, interface);
        self
    }

    /// Registers an interface for the settings of the firmware, which acts by steps.
    #[must_use]
    pub fn bios(self, name: impl Into<String>, interface: impl Interface + 'static) -> Self {
        self.by_steps(InterfaceKind::Bios, name, interface)
    }

    /// Registers an interface for versions of the firmware, which acts by steps.
    #[must_use]
    pub fn firmware(self, name: impl Into<String>, interface: impl Interface + 'static) -> Self {
        self.by_steps(InterfaceKind::Firmware, name, interface)
    }

    fn by_steps(
        mut self,
        kind: InterfaceKind,
        name: impl Into<String>,
        interface: impl Interface + 'static,
    ) -> Self {
        self.interfaces.all.push((kind, name.into(), Arc::new(interface)));
        self
    }

    fn absent(mut self, kind: InterfaceKind) -> Self {
        self.interfaces.all.push((kind, format!("no-{kind}"), Arc::new(Unsupported(kind))));
        self
    }

    /// Declares a hardware type.
    #[must_use]
    pub fn hardware_type(mut self, hardware_type: HardwareType) -> Self {
        self.declared.types.push(hardware_type);
        self
    }

    /// Has every hardware type support these interfaces of a kind, before those that it declares: what does not depend
    /// on the machine, but on the site.
    #[must_use]
    pub fn supported_by_all(
        mut self,
        kind: InterfaceKind,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.declared.by_all.entry(kind).or_default().extend(names.into_iter().map(Into::into));
        self
    }

    /// Lets nodes have only these interfaces of a kind, of all that are registered (Ironic's
    /// `enabled_<kind>_interfaces`).
    #[must_use]
    pub fn enabled(
        mut self,
        kind: InterfaceKind,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.declared.enabled.insert(kind, names.into_iter().map(Into::into).collect());
        self
    }

    /// Has all hardware types that are declared already and offer the deploy interface `beside` offer another one, after
    /// their own.
    #[must_use]
    pub fn offer_deploy(mut self, name: &str, beside: &str) -> Self {
        let offers = |hardware_type: &&mut HardwareType| {
            hardware_type.supported(InterfaceKind::Deploy).iter().any(|offered| offered == beside)
        };
        for hardware_type in self.declared.types.iter_mut().filter(offers) {
            let names = [hardware_type.supported(InterfaceKind::Deploy), &[name.to_owned()]].concat();
            *hardware_type = hardware_type.clone().deploy(names);
        }
        self
    }

    /// The interface of a kind for nodes that choose none (Ironic's `default_<kind>_interface`). Every hardware type
    /// must support it.
    #[must_use]
    pub fn default_interface(mut self, kind: InterfaceKind, name: impl Into<String>) -> Self {
        self.declared.defaults.insert(kind, name.into());
        self
    }

    /// The interfaces of nodes by these drivers. `autodetect` chooses among the deploy interfaces that the settings name.
    ///
    /// # Errors
    ///
    /// [`Error::Hardware`] with everything that cannot work together.
    pub fn build(self, settings: &Settings) -> Result<(Hardware, Families), Error> {
        let autodetect = Autodetect::among(&settings.autodetect_deploy_interfaces);
        let Self { interfaces, families, mut declared } = self.deploy("autodetect", autodetect);
        for (kind, name, _) in &interfaces.all {
            declared.known.entry(*kind).or_default().push(name.clone());
        }
        for (name, boot) in &interfaces.boot.0 {
            declared.boot_capabilities.insert(name.clone(), boot.capabilities().to_vec());
        }
        Ok((Hardware { composition: declared.check()?, interfaces }, Families::new(families)))
    }
}
