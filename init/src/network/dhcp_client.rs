//! How the DHCP client for IPv4 is started. The test with a real server includes this file as it is.

/// Arguments of busybox for the client of an interface, which reports events to `program`.
///
/// It asks once a second for five seconds, then rests for five seconds, for ever. Beside what it asks for by
/// itself, it asks for search domains (RFC 3397), the size of packets, and classless routes (RFC 3442), by
/// the number that older servers of Microsoft know them by, too.
pub fn arguments<'a>(interface: &'a str, program: &'a str) -> Vec<&'a str> {
    let mut arguments = vec!["udhcpc", "-f", "-i", interface, "-s", program, "-t", "5", "-T", "1", "-A", "5"];
    for option in ["search", "mtu", "staticroutes", "msstaticroutes"] {
        arguments.extend(["-O", option]);
    }
    arguments
}
