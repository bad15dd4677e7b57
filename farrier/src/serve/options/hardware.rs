//! Options of `farrier serve` about the machines that it can lead.

use clap::{Args, ValueEnum};
use farrier_conductor::Drivers;
use farrier_conductor::agent::UserAgent;
use farrier_drivers::fake::with_fake_hardware;
use farrier_drivers::ilo::with_ilo;
use farrier_drivers::ipmitool::{IpmiSettings, with_ipmitool};
use farrier_drivers::iscsi::{Initiators, OpenIscsiInitiator, QemuInitiator, with_iscsi};
use farrier_drivers::manual::with_manual;
use farrier_drivers::netboot::images::AllowedFolders;
use farrier_drivers::qemu::{QemuSettings, with_qemu};
use farrier_drivers::redfish::{Bmcs, RedfishSettings, with_types};
use farrier_drivers::{netboot, redfish, virtual_media};
use farrier_engine::AgentLiveness;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Hardware types and drivers.
#[derive(Debug, Args)]
pub(crate) struct Hardware {
    /// Enabled hardware types: qemu (local virtual machines), redfish, idrac, ilo, ipmi, manual (switched by an
    /// operator, or by the agent), fake-hardware (no machine, for trying out clients).
    #[arg(long, value_enum, value_name = "TYPE", value_delimiter = ',', hide_possible_values = true,
        default_values_t = [HardwareType::Redfish, HardwareType::Ipmi])]
    enabled_hardware_types: Vec<HardwareType>,
    /// Allow qemu_binary and qemu_extra_args in driver_info of qemu nodes. Users of the node API can then run any
    /// program on this host.
    #[arg(long)]
    qemu_unsafe_driver_info: bool,
    /// iSCSI initiator for the iscsi deploy interface: qemu (unprivileged, in user space) or open-iscsi (kernel
    /// initiator, needs root). iscsi_initiator in driver_info of a node overrides it.
    #[arg(long, value_enum, value_name = "INITIATOR", hide_possible_values = true,
        default_value_t = UsualInitiator::Qemu)]
    iscsi_initiator: UsualInitiator,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum UsualInitiator {
    Qemu,
    OpenIscsi,
}

impl UsualInitiator {
    fn initiators(self) -> Initiators {
        match self {
            Self::Qemu => Initiators::new(QemuInitiator::default()).or(OpenIscsiInitiator::default()),
            Self::OpenIscsi => Initiators::new(OpenIscsiInitiator::default()).or(QemuInitiator::default()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum HardwareType {
    Qemu,
    Redfish,
    Idrac,
    Ilo,
    Ipmi,
    Manual,
    FakeHardware,
}

impl Hardware {
    /// Whether this host has guests, which reach what listens on its loopback addresses.
    pub(crate) fn has_guests(&self) -> bool {
        self.enabled_hardware_types.contains(&HardwareType::Qemu)
    }

    /// Adds them to a conductor that has its state in a folder.
    pub(crate) fn compose(
        self,
        drivers: Drivers,
        agents: &Arc<AgentLiveness>,
        state_dir: &Path,
        allowed: &AllowedFolders,
        user_agent: UserAgent,
    ) -> Drivers {
        let qemu =
            QemuSettings { allowed: allowed.clone(), unsafe_driver_info: self.qemu_unsafe_driver_info };
        let mut settings = RedfishSettings { user_agent, ..RedfishSettings::default() };
        settings.ca_folders.extend(allowed.folders().iter().cloned());
        let ipmi = IpmiSettings {
            runtime: Some(runtime_dir(state_dir).join("ipmitool")),
            ..IpmiSettings::default()
        };
        // One that is named twice is meant once.
        let types: BTreeSet<_> = self.enabled_hardware_types.into_iter().collect();
        let netbooted = &netboot::NAMES[..];
        let by_media = [virtual_media::NAME, virtual_media::NAME_OF_HTTPS];
        let boot = [netbooted, &by_media].concat();
        let boot_of_idrac = [netbooted, &[virtual_media::NAME_OF_IDRAC], &by_media].concat();
        let by_redfish = [
            (HardwareType::Redfish, redfish::REDFISH, &boot[..]),
            (HardwareType::Idrac, redfish::IDRAC, &boot_of_idrac[..]),
        ];
        let by_redfish: Vec<_> = by_redfish
            .into_iter()
            .filter_map(|(hardware_type, name, boot)| types.contains(&hardware_type).then_some((name, boot)))
            .collect();
        let bmcs = Bmcs::new(settings);
        let drivers = match by_redfish.is_empty() {
            true => drivers,
            false => with_types(drivers, &bmcs, &by_redfish),
        };
        let drivers = types.into_iter().fold(drivers, |drivers, hardware_type| match hardware_type {
            HardwareType::Qemu => with_qemu(drivers, state_dir, qemu.clone(), &netboot::NAMES),
            HardwareType::Redfish | HardwareType::Idrac => drivers,
            HardwareType::Ilo => {
                let boot = [&[virtual_media::NAME_OF_ILO], &netboot::NAMES[..]].concat();
                with_ilo(drivers, &bmcs, &boot)
            }
            HardwareType::Ipmi => with_ipmitool(drivers, ipmi.clone(), state_dir, &netboot::NAMES),
            HardwareType::Manual => with_manual(drivers, agents.clone(), state_dir, &netboot::NAMES),
            HardwareType::FakeHardware => with_fake_hardware(drivers),
        });
        with_iscsi(drivers, self.iscsi_initiator.initiators())
    }
}

/// The folder of temporary files: the runtime directory of the service, or `run` of the state directory.
fn runtime_dir(state_dir: &Path) -> PathBuf {
    std::env::var_os("RUNTIME_DIRECTORY").map_or_else(|| state_dir.join("run"), PathBuf::from)
}
