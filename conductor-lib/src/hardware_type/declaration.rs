//! What a hardware type declares.

use crate::model::InterfaceKind;
use std::collections::BTreeMap;

/// The interfaces of kinds of which a type declares nothing.
const NONE: &[(InterfaceKind, &str)] = &[
    (InterfaceKind::Management, "noop"),
    (InterfaceKind::Network, "noop"),
    (InterfaceKind::Storage, "noop"),
    (InterfaceKind::Console, "no-console"),
    (InterfaceKind::Vendor, "no-vendor"),
    (InterfaceKind::Inspect, "no-inspect"),
    (InterfaceKind::Rescue, "no-rescue"),
    (InterfaceKind::Raid, "no-raid"),
    (InterfaceKind::Bios, "no-bios"),
    (InterfaceKind::Firmware, "no-firmware"),
];

/// A kind of machines, with the interfaces that work for them; of each kind the best one first. The name is what the
/// field `driver` of a node says.
///
/// A type needs power and deploy interfaces, and boot interfaces where its deploy interfaces boot something.
/// Everything else is `noop`, or absent, unless it is declared.
///
/// ```
/// use farrier_conductor::HardwareType;
///
/// let strip = HardwareType::new("strip").power(["outlet"]).boot(["ipxe", "pxe"]).deploy(["direct"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HardwareType {
    name: String,
    supported: BTreeMap<InterfaceKind, Vec<String>>,
}

macro_rules! declarations {
    ($($method:ident = $kind:ident,)*) => {
        $(
            #[doc = concat!("Declares the ", stringify!($method), " interfaces, the best one first.")]
            #[must_use]
            pub fn $method(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
                self.declare(InterfaceKind::$kind, names)
            }
        )*
    };
}

impl HardwareType {
    /// A type that has nothing yet.
    pub fn new(name: impl Into<String>) -> Self {
        let supported = NONE.iter().map(|(kind, none)| (*kind, vec![(*none).to_owned()]));
        Self { name: name.into(), supported: supported.collect() }
    }

    declarations! {
        power = Power,
        management = Management,
        boot = Boot,
        deploy = Deploy,
        network = Network,
        storage = Storage,
        console = Console,
        vendor = Vendor,
        inspect = Inspect,
        rescue = Rescue,
        raid = Raid,
        bios = Bios,
        firmware = Firmware,
    }

    fn declare(mut self, kind: InterfaceKind, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.supported.insert(kind, names.into_iter().map(Into::into).collect());
        self
    }

    /// Supports these interfaces of a kind before its own.
    pub(super) fn prefer(&mut self, kind: InterfaceKind, names: &[String]) {
        let own = self.supported.entry(kind).or_default();
        let further: Vec<_> = names.iter().filter(|name| !own.contains(name)).cloned().collect();
        own.splice(0..0, further);
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The interfaces of a kind that work for it, the best one first.
    pub fn supported(&self, kind: InterfaceKind) -> &[String] {
        self.supported.get(&kind).map_or(&[], Vec::as_slice)
    }
}
