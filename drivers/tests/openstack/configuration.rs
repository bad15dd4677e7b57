//! What Keystone and Neutron read.

use std::path::Path;

/// The region that endpoints are in.
pub const REGION: &str = "r1";

/// The password of who may do everything.
pub const ADMIN_PASSWORD: &str = "oats and bran";

/// The name of the one switch, and its address.
pub const SWITCH: [&str; 2] = ["tor1", "00:00:5e:00:53:01"];

/// That of Keystone.
pub fn keystone(folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "[database]\nconnection = sqlite:///{folder}/keystone.sqlite\n\
         [token]\nprovider = fernet\n\
         [fernet_tokens]\nkey_repository = {folder}/keys\n\
         [fernet_receipts]\nkey_repository = {folder}/keys\n\
         [credential]\nkey_repository = {folder}/keys\n\
         [cache]\nenabled = false\n"
    )
}

/// That of Neutron, which asks Keystone at this URL. Two physical networks meet at the switch.
pub fn neutron(folder: &Path, environment: &Path, keystone: &str) -> String {
    let (folder, environment, [switch, address]) = (folder.display(), environment.display(), SWITCH);
    format!(
        "[DEFAULT]\ncore_plugin = ml2\nservice_plugins =\nauth_strategy = keystone\ntransport_url = fake://\n\
         state_path = {folder}/state\napi_paste_config = {environment}/etc/neutron/api-paste.ini\n\
         dhcp_agent_notification = false\nnotify_nova_on_port_status_changes = false\n\
         notify_nova_on_port_data_changes = false\n\
         [database]\nconnection = sqlite:///{folder}/neutron.sqlite\n\
         [oslo_concurrency]\nlock_path = {folder}/state\n\
         [keystone_authtoken]\nauth_type = password\nauth_url = {keystone}\nwww_authenticate_uri = {keystone}\n\
         interface = public\nusername = admin\npassword = {ADMIN_PASSWORD}\nproject_name = admin\n\
         user_domain_id = default\nproject_domain_id = default\n\
         [ml2]\ntype_drivers = vlan\ntenant_network_types = vlan\nmechanism_drivers = genericswitch\n\
         extension_drivers = port_security\n\
         [ml2_type_vlan]\nnetwork_vlan_ranges = rack1:100:199,rack2:200:299\n\
         [genericswitch:{switch}]\ndevice_type = netmiko_fake\nngs_mac_address = {address}\n\
         ngs_physical_networks = rack1,rack2\n"
    )
}

/// What a Neutron has otherwise that asks no Keystone. Who asks there is an administrator, and what only services may do is
/// allowed to them by its policy.
pub fn open_neutron(folder: &Path) -> [String; 2] {
    let folder = folder.display();
    let settings =
        format!("[DEFAULT]\nauth_strategy = noauth\n[oslo_policy]\npolicy_file = {folder}/policy.yaml\n");
    [settings, "service_api: role:service or role:admin\n".to_owned()]
}
