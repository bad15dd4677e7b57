//! Options of `farrier serve` about inspection.

use clap::{ArgAction, Args};
use farrier_conductor::Settings;
use farrier_conductor::inventory::hooks::{self, Hook, UnknownHook};
use farrier_conductor::inventory::{AddPorts, InspectionSettings, KeepPorts};
use farrier_media::KernelParameters;

/// Options of inspection.
#[derive(Debug, Args)]
#[command(next_help_heading = "Inspection")]
pub(crate) struct Inspection {
    /// Inspection hooks, in their order: ramdisk-error, validate-interfaces, ports, architecture, root-device,
    /// capabilities, parse-lldp.
    #[arg(long, value_name = "HOOK", value_delimiter = ',', value_parser = hook,
        default_values_t = hooks::default().iter().map(|hook| Named(*hook)).collect::<Vec<_>>())]
    inspection_hooks: Vec<Named>,
    /// Network cards that become ports: pxe (the card of the network boot, or active if that is unknown), active
    /// (cards with an address) or all.
    #[arg(long, value_name = "WHICH", default_value_t = InspectionSettings::default().add_ports)]
    add_ports: AddPorts,
    /// Ports to keep: all, present (of cards in the inventory) or added (of cards that --add-ports selects).
    #[arg(long, value_name = "WHICH", default_value_t = InspectionSettings::default().keep_ports)]
    keep_ports: KeepPorts,
    /// Inspect only machines that this conductor can boot. With `false`, other machines are powered on, and another
    /// service must boot the ramdisk.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set,
        default_value_t = InspectionSettings::default().require_managed_boot)]
    require_managed_boot: bool,
    /// Power machines off after inspection.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set,
        default_value_t = InspectionSettings::default().power_off)]
    inspection_power_off: bool,
    /// Hardware type for discovered machines: unknown machines that post an inventory are enrolled. Any host that
    /// reaches the ramdisk API can post one [default: no discovery].
    #[arg(long, value_name = "DRIVER")]
    auto_discovery_driver: Option<String>,
    /// Extra kernel parameters for inspection. Example: ipa-inspection-collectors=default,lldp.
    #[arg(long, value_name = "PARAMETERS", default_value = "")]
    inspection_kernel_params: KernelParameters,
}

/// A hook, as operators write it.
#[derive(Debug, Clone, Copy)]
struct Named(Hook);

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

fn hook(name: &str) -> Result<Named, UnknownHook> {
    hooks::named(name).map(Named)
}

impl Inspection {
    /// Puts the options into the settings of a conductor.
    pub(crate) fn apply(self, settings: &mut Settings) {
        settings.inspection = InspectionSettings {
            hooks: self.inspection_hooks.into_iter().map(|Named(hook)| hook).collect(),
            add_ports: self.add_ports,
            keep_ports: self.keep_ports,
            power_off: self.inspection_power_off,
            extra_kernel_params: self.inspection_kernel_params,
            require_managed_boot: self.require_managed_boot,
            discovery_driver: self.auto_discovery_driver,
        };
    }
}
