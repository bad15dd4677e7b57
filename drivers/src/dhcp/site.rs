//! The configuration of our dnsmasq: it assigns addresses, or only adds boot options beside a DHCP server of the
//! site that gives them (proxy-DHCP).

use super::dnsmasq::Places;
use std::fmt::Write;
use std::net::IpAddr;
use std::str::FromStr;

/// How long a machine may have an address without asking again, in seconds.
const LEASE: u32 = 3600;

/// Architectures that firmware names (RFC 4578 and its registry), with what each loads first.
const ARCHITECTURES: [(u16, &str, Loads); 9] = [
    (0, "x86PC", Loads::Tftp("undionly.kpxe")),
    (6, "IA32_EFI", Loads::Nothing),
    (7, "BC_EFI", Loads::Tftp("snponly.efi")),
    (9, "X86-64_EFI", Loads::Tftp("snponly.efi")),
    (10, "ARM32_EFI", Loads::Nothing),
    (11, "ARM64_EFI", Loads::Tftp("ipxe-arm64.efi")),
    (15, "", Loads::Nothing),
    (16, "", Loads::Http("snponly.efi")),
    (19, "", Loads::Http("ipxe-arm64.efi")),
];

/// What firmware of an architecture loads first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loads {
    /// There is no loader for it.
    Nothing,
    /// This, by TFTP.
    Tftp(&'static str),
    /// This, by HTTP.
    Http(&'static str),
}

/// Addresses that a dnsmasq serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// It gives these, from the first to the last.
    Addresses(IpAddr, IpAddr),
    /// Another server gives those of this network.
    Proxy(IpAddr),
}

/// The text is no range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} must be FIRST,LAST, such as 192.0.2.100,192.0.2.200, or NETWORK,proxy, such as 192.0.2.0,proxy"
)]
pub struct NoRange(String);

impl FromStr for Range {
    type Err = NoRange;

    fn from_str(text: &str) -> Result<Self, NoRange> {
        let read = || {
            let (first, last) = text.split_once(',')?;
            let first: IpAddr = first.parse().ok()?;
            match last {
                "proxy" if first.is_ipv4() => Some(Self::Proxy(first)),
                _ => {
                    let last = last.parse().ok()?;
                    (first.is_ipv4() == IpAddr::is_ipv4(&last) && first <= last)
                        .then_some(Self::Addresses(first, last))
                }
            }
        };
        read().ok_or_else(|| NoRange(text.to_owned()))
    }
}

/// The network that our dnsmasq serves.
#[derive(Debug, Clone)]
pub struct Site {
    /// The network interface that it serves.
    pub interface: String,
    /// The addresses.
    pub ranges: Vec<Range>,
    /// The router for machines, if there is one.
    pub router: Option<IpAddr>,
    /// Where TFTP is served.
    pub tftp: IpAddr,
    /// URL below which HTTP is served, without a slash at its end.
    pub http_url: String,
}

impl Site {
    /// The text of its configuration. A machine of no node, or of one that is not to boot now, is led to `boot.ipxe`, which
    /// sends it on to its next boot device.
    pub fn configuration(&self, places: &Places) -> String {
        let (http, tftp) = (&self.http_url, self.tftp);
        let mut text = String::new();
        let mut say = |line: std::fmt::Arguments<'_>| {
            // A text can always be written to.
            writeln!(text, "{line}").unwrap_or_default();
        };
        say(format_args!("port=0\nkeep-in-foreground\nlog-facility=-\nlog-dhcp\nbind-interfaces"));
        say(format_args!("interface={}\nexcept-interface=lo", self.interface));
        say(format_args!("dhcp-leasefile={}", places.leases.display()));
        say(format_args!("pid-file={}", places.process.display()));
        say(format_args!("dhcp-hostsfile={}", places.hosts.display()));
        say(format_args!("dhcp-optsfile={}", places.options.display()));
        // iPXE tells its name as its class of user by IPv6, and as that of a vendor what its firmware tells too.
        say(format_args!("dhcp-match=set:ipxe,175\ndhcp-match=set:ipxe6,option6:15,iPXE"));
        match self.router {
            Some(router) => say(format_args!("dhcp-option=3,{router}")),
            None => say(format_args!("dhcp-option=3")),
        }
        for range in &self.ranges {
            match range {
                Range::Addresses(first, last @ IpAddr::V4(_)) => {
                    say(format_args!("dhcp-range={first},{last},{LEASE}"));
                }
                Range::Addresses(first, last) => say(format_args!("dhcp-range={first},{last},64,{LEASE}")),
                Range::Proxy(network) => say(format_args!("dhcp-range={network},proxy")),
            }
        }
        if self.has_ipv6() {
            // Machines know by it that there are addresses, and no router: that is the site's.
            say(format_args!("enable-ra\nra-param={},0,0", self.interface));
            say(format_args!("dhcp-option=tag:!known,tag:ipxe6,option6:59,{http}/boot.ipxe"));
        }
        say(format_args!("dhcp-boot=tag:!known,tag:ipxe,{http}/boot.ipxe"));
        for (number, service, loads) in ARCHITECTURES {
            say(format_args!("dhcp-match=set:arch{number},93,{number}"));
            let tags = format!("tag:!known,tag:!ipxe,tag:arch{number}");
            if self.has_ipv6() {
                say(format_args!("dhcp-match=set:arch{number},option6:61,{number}"));
                if let Some(url) = self.first_by_ipv6(loads) {
                    let tags = format!("tag:!known,tag:!ipxe6,tag:arch{number}");
                    say(format_args!("dhcp-option={tags},option6:59,{url}"));
                }
            }
            match loads {
                Loads::Nothing => {}
                // By IPv4, a machine reaches no TFTP server with an address of IPv6.
                Loads::Tftp(_) if tftp.is_ipv6() => {}
                Loads::Tftp(file) => {
                    say(format_args!("dhcp-boot={tags},{file},,{tftp}"));
                    if self.is_proxy() {
                        say(format_args!("pxe-service=tag:!ipxe,{service},Farrier,{file},{tftp}"));
                        say(format_args!("pxe-service=tag:ipxe,{service},Farrier,{http}/boot.ipxe"));
                    }
                }
                Loads::Http(file) => {
                    say(format_args!("dhcp-boot={tags},{http}/{file}"));
                    say(format_args!("dhcp-option-force={tags},60,HTTPClient"));
                }
            }
        }
        text
    }

    /// URL of what a machine loads first by IPv6, where that is served by IPv6.
    fn first_by_ipv6(&self, loads: Loads) -> Option<String> {
        match (loads, self.tftp) {
            (Loads::Tftp(file), IpAddr::V6(address)) => Some(format!("tftp://[{address}]/{file}")),
            (Loads::Http(file), _) => Some(format!("{}/{file}", self.http_url)),
            (Loads::Tftp(_), IpAddr::V4(_)) | (Loads::Nothing, _) => None,
        }
    }

    fn has_ipv6(&self) -> bool {
        self.ranges.iter().any(|range| matches!(range, Range::Addresses(IpAddr::V6(_), _)))
    }

    fn is_proxy(&self) -> bool {
        self.ranges.iter().any(|range| matches!(range, Range::Proxy(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn ranges_are_of_one_family_and_in_order() {
        for (text, is_range) in [
            ("192.0.2.100,192.0.2.200", true),
            ("192.0.2.0,proxy", true),
            ("2001:db8::100,2001:db8::200", true),
            ("192.0.2.200,192.0.2.100", false),
            ("192.0.2.100,2001:db8::200", false),
            ("2001:db8::,proxy", false),
            ("192.0.2.1", false),
            ("192.0.2.1,192.0.2.2\nlog-dhcp", false),
        ] {
            assert_eq!(text.parse::<Range>().is_ok(), is_range, "{text}");
        }
    }

    #[test]
    fn loop_dnsmasq_takes_the_configuration() {
        let folder = tempfile::tempdir().unwrap();
        for (ranges, tftp) in [
            (vec!["192.0.2.100,192.0.2.200", "2001:db8::100,2001:db8::200"], "192.0.2.5"),
            (vec!["2001:db8::100,2001:db8::200"], "2001:db8::5"),
            (vec!["192.0.2.0,proxy"], "192.0.2.5"),
        ] {
            let site = Site {
                interface: "br0".into(),
                ranges: ranges.iter().map(|range| range.parse().unwrap()).collect(),
                router: Some("192.0.2.1".parse().unwrap()),
                tftp: tftp.parse().unwrap(),
                http_url: "http://192.0.2.5:6385".into(),
            };
            let file = folder.path().join("dnsmasq.conf");
            std::fs::write(&file, site.configuration(&Places::below(Path::new("/tmp")))).unwrap();
            let mut test = std::process::Command::new("dnsmasq");
            let tested = test.arg("--test").arg(format!("--conf-file={}", file.display())).output().unwrap();
            assert!(tested.status.success(), "{}", String::from_utf8_lossy(&tested.stderr));
        }
    }
}
