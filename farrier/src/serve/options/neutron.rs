//! Options of `farrier serve` about Neutron: who asks it, and which networks operations have.

use anyhow::bail;
use clap::{Args, ValueEnum};
use farrier_conductor::Drivers;
use farrier_conductor::interfaces::NetworkKind;
use farrier_conductor::model::InterfaceKind;
use farrier_drivers::dhcp::neutron::NeutronDhcp;
use farrier_drivers::network::{NetworkSettings, OperationNetwork, with_neutron};
use farrier_drivers::openstack::{Cloud, Neutron, OpenStackSettings};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Options of the network interfaces.
#[derive(Debug, Args)]
#[command(next_help_heading = "Networks")]
pub(crate) struct NeutronOptions {
    /// Enabled network interfaces: noop (fixed cabling), flat (one Neutron network), neutron (Neutron configures
    /// the switches). The default of a node is the first enabled one of flat, neutron, noop.
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',', hide_possible_values = true,
        default_values_t = [NetworkInterface::Noop])]
    enabled_network_interfaces: Vec<NetworkInterface>,
    /// Name of the cloud in clouds.yaml [default: the only one there].
    #[arg(long, value_name = "NAME", env = "OS_CLOUD")]
    os_cloud: Option<String>,
    /// Path of clouds.yaml, with the URL and credentials of Keystone.
    #[arg(
        long,
        value_name = "FILE",
        env = "OS_CLIENT_CONFIG_FILE",
        default_value = "/etc/openstack/clouds.yaml"
    )]
    os_client_config_file: PathBuf,
    /// Provisioning network, by name or UUID. Each of these networks can be overridden in driver_info of a node.
    #[arg(long, value_name = "NETWORK")]
    provisioning_network: Option<String>,
    /// Security groups of the ports on the provisioning network, by UUID.
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    provisioning_network_security_groups: Vec<String>,
    /// Cleaning network, by name or UUID.
    #[arg(long, value_name = "NETWORK")]
    cleaning_network: Option<String>,
    /// Security groups of the ports on the cleaning network, by UUID.
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    cleaning_network_security_groups: Vec<String>,
    /// Rescuing network, by name or UUID.
    #[arg(long, value_name = "NETWORK")]
    rescuing_network: Option<String>,
    /// Security groups of the ports on the rescuing network, by UUID.
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    rescuing_network_security_groups: Vec<String>,
    /// Inspection network, by name or UUID.
    #[arg(long, value_name = "NETWORK")]
    inspection_network: Option<String>,
    /// Security groups of the ports on the inspection network, by UUID.
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    inspection_network_security_groups: Vec<String>,
    /// Servicing network, by name or UUID.
    #[arg(long, value_name = "NETWORK")]
    servicing_network: Option<String>,
    /// Security groups of the ports on the servicing network, by UUID.
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    servicing_network_security_groups: Vec<String>,
    /// Delay after DHCP options are set on Neutron ports, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=600))]
    port_setup_delay: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NetworkInterface {
    Noop,
    Flat,
    Neutron,
}

impl NetworkInterface {
    fn name(self) -> &'static str {
        match self {
            Self::Noop => "noop",
            Self::Flat => "flat",
            Self::Neutron => "neutron",
        }
    }

    /// The operations that need a network of the conductor's.
    fn needs(self) -> &'static [NetworkKind] {
        match self {
            Self::Noop => &[],
            Self::Flat => &[NetworkKind::Cleaning],
            Self::Neutron => &[NetworkKind::Provisioning, NetworkKind::Cleaning],
        }
    }
}

/// The Neutron of this conductor.
pub(crate) struct Networks {
    neutron: Neutron,
    port_setup_delay: Duration,
    enabled: Vec<NetworkInterface>,
    settings: NetworkSettings,
}

impl NeutronOptions {
    /// Reads who asks Neutron; nothing where neither a network interface nor DHCP needs it.
    pub(crate) fn open(self, is_for_dhcp: bool) -> anyhow::Result<Option<Networks>> {
        let enabled = self.enabled_network_interfaces.clone();
        let is_for_nodes = enabled.iter().any(|interface| *interface != NetworkInterface::Noop);
        if !is_for_nodes && !is_for_dhcp {
            return Ok(None);
        }
        let port_setup_delay = Duration::from_secs(self.port_setup_delay);
        let (file, cloud) = (self.os_client_config_file.clone(), self.os_cloud.clone());
        let networks = self.networks();
        let needed = enabled.iter().flat_map(|interface| interface.needs());
        let mut missing: Vec<_> = needed.filter(|kind| networks[*kind].network.is_none()).collect();
        missing.sort_unstable();
        missing.dedup();
        if !missing.is_empty() {
            let names: Vec<_> = enabled.iter().map(|interface| interface.name()).collect();
            let missing: Vec<_> = missing.iter().map(|kind| format!("--{kind}-network")).collect();
            bail!("--enabled-network-interfaces {} needs {}", names.join(","), missing.join(" and "));
        }
        let neutron = Neutron::new(Cloud::load(&file, cloud.as_deref())?, OpenStackSettings::default())?;
        let settings = NetworkSettings { networks, ..NetworkSettings::default() };
        Ok(Some(Networks { neutron, port_setup_delay, enabled, settings }))
    }

    fn networks(self) -> BTreeMap<NetworkKind, OperationNetwork> {
        let of = |kind, network, security_groups| (kind, OperationNetwork { network, security_groups });
        BTreeMap::from([
            of(
                NetworkKind::Provisioning,
                self.provisioning_network,
                self.provisioning_network_security_groups,
            ),
            of(NetworkKind::Cleaning, self.cleaning_network, self.cleaning_network_security_groups),
            of(NetworkKind::Rescuing, self.rescuing_network, self.rescuing_network_security_groups),
            of(NetworkKind::Inspection, self.inspection_network, self.inspection_network_security_groups),
            of(NetworkKind::Servicing, self.servicing_network, self.servicing_network_security_groups),
        ])
    }
}

impl Networks {
    /// What has ports of Neutron tell firmware what to load.
    pub(crate) fn dhcp(&self) -> NeutronDhcp {
        NeutronDhcp::new(self.neutron.clone(), self.port_setup_delay)
    }

    /// Adds the network interfaces to a conductor.
    pub(crate) fn compose(self, drivers: Drivers) -> Drivers {
        let names = self.enabled.iter().map(|interface| interface.name());
        let drivers = drivers.enabled(InterfaceKind::Network, names);
        with_neutron(drivers, &self.neutron, self.settings)
    }
}
