//! Hardware addresses of InfiniBand: twenty bytes, of which the last eight are the GUID of the port.

/// What a client identifier begins with; the GUID of the interface follows.
const CLIENT_ID: [u8; 12] = [0xff, 0, 0, 0, 0, 0, 2, 0, 0, 2, 0xc9, 0];

/// By what DHCP knows an interface with this hardware address (section 9.3 of the agent's contract); nothing for
/// others.
pub fn client_identifier(hardware_address: &[u8]) -> Option<Vec<u8>> {
    guid(hardware_address).map(|guid| [&CLIENT_ID[..], guid].concat())
}

/// The GUID of an interface with this hardware address; nothing for others.
pub fn guid(hardware_address: &[u8]) -> Option<&[u8]> {
    hardware_address.get(12..20).filter(|_| hardware_address.len() == 20)
}
