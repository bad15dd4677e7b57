//! The DHCP options for the firmware of a node's machine (section 6.7).

use super::boot_file_names::BootFileNames;
use super::method::Method;
use crate::dhcp::option_text::{self, OptionError};
use farrier_conductor::interfaces::{DhcpOption, InterfaceError};
use farrier_conductor::model::Node;
use std::net::IpAddr;

/// The option with the name of the boot file.
const BOOT_FILE: &str = "67";
/// The option with the name of the TFTP server.
const TFTP_SERVER_NAME: &str = "66";
/// The option with its address, as Cisco's and others' firmware reads it.
const TFTP_SERVER_ADDRESS: &str = "150";
/// What dnsmasq takes for the address in the header.
const SERVER_ADDRESS: &str = "255";
/// The option by which firmware that boots by HTTP knows its server.
const VENDOR_CLASS: &str = "60";
/// The option of IPv6 with the URL of the boot file.
const BOOT_FILE_URL: &str = "59";

/// Where machines find what they boot.
#[derive(Debug, Clone)]
pub struct Servers {
    /// Where TFTP is served.
    pub tftp: IpAddr,
    /// URL below which HTTP is served, without a slash at its end.
    pub http_url: String,
    /// Which loader is for which machine.
    pub names: BootFileNames,
}

/// The DHCP options for the machine of a node; the DHCP server recognises iPXE by a tag.
///
/// # Errors
///
/// An option is impossible, or the node's capabilities are invalid.
pub fn of(method: Method, node: &Node, servers: &Servers) -> Result<Vec<DhcpOption>, InterfaceError> {
    let file = servers.names.of(node, method.is_ipxe())?;
    let (tftp, http) = (servers.tftp, &servers.http_url);
    let script = format!("{http}/boot.ipxe");
    let host = match tftp {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    };
    let first = if method.is_http() { format!("{http}/{file}") } else { format!("tftp://{host}/{file}") };
    // IPv4 has its TFTP server elsewhere.
    let first4 = if method.is_http() { first.clone() } else { file };
    let mut options = Vec::new();
    let mut push = |ip_version, name: &str, value: &str| {
        options.push(DhcpOption { name: name.to_owned(), value: value.to_owned(), ip_version });
    };
    match method.is_ipxe() {
        true => {
            push(4, &format!("tag:!ipxe,{BOOT_FILE}"), &first4);
            push(4, &format!("tag:ipxe,{BOOT_FILE}"), &script);
            push(6, &format!("tag:!ipxe6,{BOOT_FILE_URL}"), &first);
            push(6, &format!("tag:ipxe6,{BOOT_FILE_URL}"), &script);
        }
        false => {
            push(4, BOOT_FILE, &first4);
            push(6, BOOT_FILE_URL, &first);
        }
    }
    match (method.is_http(), tftp) {
        (true, _) => push(4, VENDOR_CLASS, "HTTPClient"),
        (false, IpAddr::V4(address)) => {
            for name in [TFTP_SERVER_NAME, TFTP_SERVER_ADDRESS, SERVER_ADDRESS] {
                push(4, name, &address.to_string());
            }
        }
        (false, IpAddr::V6(_)) => {}
    }
    let refused = |error: OptionError| InterfaceError::driver(error);
    options.iter().try_for_each(|option| option_text::line("any", option).map(drop)).map_err(refused)?;
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use farrier_conductor::model::clock::{Clock, SystemClock};

    fn sent(method: Method, servers: &Servers) -> Result<Vec<(u8, String, String)>, String> {
        let node = Node::enrol(NewNode::default(), SystemClock.now());
        let options = of(method, &node, servers).map_err(|error| error.to_string())?;
        Ok(options.into_iter().map(|option| (option.ip_version, option.name, option.value)).collect())
    }

    #[test]
    fn firmware_gets_the_place_of_its_loader() {
        let http_url = "http://192.0.2.5:6385".to_owned();
        let servers = |tftp: &str| Servers {
            tftp: tftp.parse().unwrap(),
            http_url: http_url.clone(),
            names: BootFileNames::default(),
        };
        let expect = |options: &[(u8, &str, &str)]| {
            let owned = options.iter().map(|(v, name, value)| (*v, (*name).to_owned(), (*value).to_owned()));
            owned.collect::<Vec<_>>()
        };
        let v4 = servers("192.0.2.5");
        assert_eq!(
            sent(Method::Pxe, &v4).unwrap(),
            expect(&[
                (4, "67", "bootx64.efi"),
                (6, "59", "tftp://192.0.2.5/bootx64.efi"),
                (4, "66", "192.0.2.5"),
                (4, "150", "192.0.2.5"),
                (4, "255", "192.0.2.5"),
            ])
        );
        assert_eq!(
            sent(Method::HttpIpxe, &v4).unwrap(),
            expect(&[
                (4, "tag:!ipxe,67", "http://192.0.2.5:6385/snponly.efi"),
                (4, "tag:ipxe,67", "http://192.0.2.5:6385/boot.ipxe"),
                (6, "tag:!ipxe6,59", "http://192.0.2.5:6385/snponly.efi"),
                (6, "tag:ipxe6,59", "http://192.0.2.5:6385/boot.ipxe"),
                (4, "60", "HTTPClient"),
            ])
        );
        let v6 = sent(Method::Ipxe, &servers("2001:db8::5")).unwrap();
        assert!(
            v6.contains(&(6, "tag:!ipxe6,59".into(), "tftp://[2001:db8::5]/snponly.efi".into())),
            "{v6:?}"
        );
        assert!(v6.iter().all(|(_, name, _)| name != "66"), "{v6:?}");
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let servers = Servers {
            tftp: "192.0.2.5".parse().unwrap(),
            http_url: format!("http://{}.example", "a".repeat(60)),
            names: BootFileNames::default(),
        };
        assert!(sent(Method::Http, &servers).unwrap_err().contains("more than 64 characters"));
    }
}
