//! The configuration file of an Ironic that needs nothing but this machine.

use std::path::Path;
use std::time::Duration;

/// For so long after its last heartbeat Ironic takes an agent for a running one, with fast track.
pub const FAST_TRACK_TIMEOUT: Duration = Duration::from_secs(60);

/// How conductors in tests are called.
pub const CONDUCTOR_NAME: &str = "farrier-tests";

/// The configuration file of an Ironic whose nodes have hardware that is not there.
pub(super) fn with_fake_hardware(folder: &Path, port: u16) -> String {
    let folder = folder.display();
    format!(
        "\
[DEFAULT]
auth_strategy = noauth
rpc_transport = none
host = {CONDUCTOR_NAME}
my_ip = 127.0.0.1
state_path = {folder}
tempdir = {folder}/tmp
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = fake,no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = fake,no-console
enabled_deploy_interfaces = fake
enabled_firmware_interfaces = fake,no-firmware
enabled_inspect_interfaces = fake,no-inspect
enabled_management_interfaces = fake
enabled_network_interfaces = noop
enabled_power_interfaces = fake
enabled_raid_interfaces = fake,no-raid
enabled_rescue_interfaces = fake,no-rescue
enabled_storage_interfaces = noop
enabled_vendor_interfaces = fake,no-vendor

[api]
host_ip = 127.0.0.1
port = {port}
public_endpoint = http://127.0.0.1:{port}

[database]
connection = sqlite:///{folder}/ironic.sqlite

[dhcp]
dhcp_provider = none

[service_catalog]
auth_type = none
endpoint_override = http://127.0.0.1:{port}
"
    )
}

/// What differs in a release that deploys by iSCSI alone to targets at `portal`, with API and conductor apart, which talk
/// through the port `talk`. Its ramdisks have these kernel parameters, and one for a release that asks for results without
/// the token.
pub(super) fn of_iscsi(portal: u16, talk: u16, parameters: &str) -> String {
    format!(
        "\
[DEFAULT]
host = 127.0.0.1
rpc_transport = json-rpc
enabled_hardware_types = manual-management
enabled_boot_interfaces = ipxe
enabled_deploy_interfaces = iscsi
enabled_inspect_interfaces = no-inspect
enabled_management_interfaces = noop
enabled_power_interfaces = fake

[conductor]
automated_clean = false

[deploy]
default_boot_option = local

[iscsi]
portal_port = {portal}

[json_rpc]
auth_strategy = noauth
host_ip = 127.0.0.1
port = {talk}

[pxe]
pxe_append_params = farrier-list-without-token=1 {parameters}
"
    )
}

/// What automated cleaning does to disks.
#[derive(Debug, Clone, Copy)]
pub enum Cleaning {
    /// It removes tables and signatures.
    Metadata,
    /// It erases everything.
    Devices,
}

impl Cleaning {
    /// The priorities of `erase_devices` and `erase_devices_metadata`.
    pub(crate) fn priorities(self) -> (u8, u8) {
        match self {
            Self::Metadata => (0, 10),
            Self::Devices => (10, 0),
        }
    }
}

/// Where machines find Ironic.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The address that the API listens on.
    pub(super) listen: &'static str,
    /// The address by which machines reach it, and what it serves.
    pub(super) seen: &'static str,
}

impl Place {
    /// Behind the user network of QEMU.
    pub(super) const USER_NETWORK: Self = Self { listen: "127.0.0.1", seen: "10.0.2.2" };
    /// On the bridge of [`crate::network::bridge::network`].
    pub(super) const BRIDGE: Self = Self { listen: "0.0.0.0", seen: "192.0.2.1" };
}

/// What differs between runs.
#[derive(Debug)]
pub(super) struct Settings<'a> {
    /// Folder for all that Ironic writes.
    pub(super) folder: &'a Path,
    /// Folder with the kernel and the ramdisk.
    pub(super) dist: &'a Path,
    /// Where machines find it.
    pub(super) place: Place,
    /// Port of the API.
    pub(super) port: u16,
    /// Port of the server that serves the folder `http`.
    pub(super) files_port: u16,
    /// What automated cleaning does.
    pub(super) cleaning: Cleaning,
}

impl Settings<'_> {
    /// The file: all-in-one on SQLite, without authentication, message bus and network service.
    /// What concerns the agent, such as TLS and tokens, keeps Ironic's defaults; only waiting is
    /// shorter than by default.
    pub(super) fn file(&self) -> String {
        let Self { folder, dist, place: Place { listen, seen }, port, files_port, cleaning } = self;
        let (devices, metadata) = cleaning.priorities();
        let (folder, dist) = (folder.display(), dist.display());
        let fast_track_timeout = FAST_TRACK_TIMEOUT.as_secs();
        format!(
            "\
[DEFAULT]
auth_strategy = noauth
rpc_transport = none
host = {CONDUCTOR_NAME}
my_ip = 127.0.0.1
state_path = {folder}
tempdir = {folder}/tmp
enabled_hardware_types = manual-management,redfish
enabled_bios_interfaces = no-bios
enabled_boot_interfaces = ipxe,redfish-virtual-media
enabled_console_interfaces = no-console
enabled_deploy_interfaces = direct
enabled_firmware_interfaces = no-firmware
enabled_inspect_interfaces = agent
enabled_management_interfaces = noop,redfish
enabled_network_interfaces = noop
enabled_power_interfaces = fake,redfish
enabled_raid_interfaces = no-raid,agent
enabled_rescue_interfaces = agent
enabled_storage_interfaces = noop
enabled_vendor_interfaces = no-vendor
esp_image = {folder}/esp.img
grub_config_path = EFI/BOOT/grub.cfg

[agent]
certificates_path = {folder}/certificates
command_wait_interval = 2
deploy_logs_local_path = {folder}/logs
post_deploy_get_power_state_retry_interval = 1

[api]
host_ip = {listen}
port = {port}
public_endpoint = http://127.0.0.1:{port}
ramdisk_heartbeat_timeout = 30

[conductor]
clean_callback_timeout = 600
deploy_callback_timeout = 600
file_url_allowed_paths = {dist}
heartbeat_interval = 5
inspect_wait_timeout = 600
rescue_callback_timeout = 600
service_callback_timeout = 600
sync_power_state_interval = 15

[database]
connection = sqlite:///{folder}/ironic.sqlite

[deploy]
default_boot_mode = uefi
erase_devices_metadata_priority = {metadata}
erase_devices_priority = {devices}
fast_track_timeout = {fast_track_timeout}
external_http_url = http://127.0.0.1:{files_port}
http_root = {folder}/http
http_url = http://{seen}:{files_port}

[dhcp]
dhcp_provider = none

[pxe]
loader_file_paths = undionly.kpxe:/usr/lib/ipxe/undionly.kpxe,snponly.efi:/usr/lib/ipxe/snponly.efi
images_path = {folder}/images
instance_master_path = {folder}/images/master
tftp_root = {folder}/tftp
tftp_master_path = {folder}/tftp/master

[service_catalog]
auth_type = none
endpoint_override = http://{seen}:{port}
"
        )
    }
}
