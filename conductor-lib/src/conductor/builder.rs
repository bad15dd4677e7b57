//! What a conductor is composed of (section 10).

use super::Conductor;
use crate::clock::{Clock, SystemClock};
use crate::error::Error;
use crate::events::EventLog;
use crate::hardware_type::{BootNeed, Declared, Hardware, HardwareType, Interfaces};
use crate::interfaces::{
    Absent, BootInterface, ConsoleInterface, ManagementInterface, NetworkInterface, Noop, PowerInterface,
    StorageInterface, VendorInterface,
};
use crate::model::InterfaceKind;
use crate::services::Services;
use crate::settings::Settings;
use crate::store::Store;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Composes a conductor: interfaces by name, hardware types that say which of them go together, and which a node has
/// that chooses none. `noop` and `no-console`, `no-inspect`, `no-raid`, `no-rescue`, `no-vendor` are there already.
pub struct Builder {
    settings: Settings,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    interfaces: Interfaces,
    declared: Declared,
}

impl Conductor {
    /// Composes a conductor over these nodes.
    pub fn builder(settings: Settings, store: Arc<dyn Store>) -> Builder {
        let mut interfaces = Interfaces::default();
        interfaces.management.add("noop", Arc::new(Noop));
        interfaces.network.add("noop", Arc::new(Noop));
        interfaces.storage.add("noop", Arc::new(Noop));
        interfaces.console.add("no-console", Arc::new(Absent(InterfaceKind::Console)));
        interfaces.vendor.add("no-vendor", Arc::new(Absent(InterfaceKind::Vendor)));
        let (clock, declared) = (Arc::new(SystemClock), Declared::default());
        Builder { settings, store, clock, interfaces, declared }
    }
}

macro_rules! registrations {
    ($($method:ident: $interface:ident,)*) => {
        $(
            #[doc = concat!("Registers a ", stringify!($method), " interface.")]
            #[must_use]
            pub fn $method(mut self, name: impl Into<String>, interface: impl $interface + 'static) -> Self {
                self.interfaces.$method.add(name, Arc::new(interface));
                self
            }
        )*
    };
}

impl Builder {
    registrations! {
        power: PowerInterface,
        management: ManagementInterface,
        boot: BootInterface,
        network: NetworkInterface,
        storage: StorageInterface,
        console: ConsoleInterface,
        vendor: VendorInterface,
    }

    /// Declares a hardware type.
    #[must_use]
    pub fn hardware_type(mut self, hardware_type: HardwareType) -> Self {
        self.declared.types.push(hardware_type);
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

    /// The interface of a kind for nodes that choose none (Ironic's `default_<kind>_interface`). Every hardware type
    /// must support it.
    #[must_use]
    pub fn default_interface(mut self, kind: InterfaceKind, name: impl Into<String>) -> Self {
        self.declared.defaults.insert(kind, name.into());
        self
    }

    /// Tells the time by another clock than the system's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Starts the conductor. What an earlier one of its name left unfinished is gone on with.
    ///
    /// # Errors
    ///
    /// [`Error::Hardware`] with everything that cannot work together, [`Error::Store`].
    pub async fn start(self) -> Result<Conductor, Error> {
        let Self { settings, store, clock, interfaces, mut declared } = self;
        declared.known = known(&interfaces);
        for (name, boot) in &interfaces.boot.0 {
            declared.boot_capabilities.insert(name.clone(), boot.capabilities().to_vec());
        }
        declared.boot_needs.insert("direct".to_owned(), BootNeed::Any);
        let hardware = Hardware { composition: declared.check()?, interfaces };
        let (events, left_leases) = (EventLog::default(), Mutex::default());
        Conductor::begin(Services { settings, store, hardware, events, left_leases, clock }).await
    }
}

/// The names of what is registered.
fn known(interfaces: &Interfaces) -> BTreeMap<InterfaceKind, Vec<String>> {
    let Interfaces { power, management, boot, network, storage, console, vendor } = interfaces;
    let one = |name: &str| vec![name.to_owned()];
    BTreeMap::from([
        (InterfaceKind::Power, power.names()),
        (InterfaceKind::Management, management.names()),
        (InterfaceKind::Boot, boot.names()),
        (InterfaceKind::Network, network.names()),
        (InterfaceKind::Storage, storage.names()),
        (InterfaceKind::Console, console.names()),
        (InterfaceKind::Vendor, vendor.names()),
        (InterfaceKind::Deploy, one("direct")),
        (InterfaceKind::Inspect, one("no-inspect")),
        (InterfaceKind::Rescue, one("no-rescue")),
        (InterfaceKind::Raid, one("no-raid")),
    ])
}
