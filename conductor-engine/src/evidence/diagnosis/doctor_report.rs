//! What the agent's doctor leaves where a conductor still sees it: a record in the log of the machine's controller with
//! the name of the check that failed, a host name with it in a DHCP request, and its lines on the console. The book has
//! them, on the page of the doctor.

use crate::evidence::diagnosis::Cause;
use farrier_protocol::doctor::ALL_CHECKS_PASSED;

/// What a record begins with; the name of the check follows, of which there is room for a part.
const MARK: &str = "farrier";

/// Most letters of a check's name that have room in a record.
const ROOM: usize = 6;

/// A check, what it means that it failed, and what to do. `{url}` is the conductor's URL as the machine was told it.
type Check = (&'static str, &'static str, &'static str);

const CHECKS: &[Check] = &[
    (
        "link",
        "no network card of the machine has a link",
        "check the cable, the transceiver and the port of the switch",
    ),
    (
        "dhcp",
        "no DHCP server gives the machine an address",
        "check the VLAN of its switch port, spanning tree, the DHCP relay and the server",
    ),
    (
        "address",
        "the machine has no address that reaches further than its own link",
        "mend DHCP, or give it a static address",
    ),
    (
        "api",
        "the URL of the conductor that the machine received is not valid: {url}",
        "correct the conductor's URL",
    ),
    (
        "route",
        "the machine has no way to the conductor at {url}",
        "let the DHCP server give it a router, or correct the conductor's URL",
    ),
    (
        "dns",
        "the name of the conductor in {url} means nothing to the machine",
        "correct its name server, or the conductor's URL",
    ),
    (
        "tcp",
        "no server answers the machine at the conductor's address {url}",
        "correct the conductor's URL, or look for a firewall between the two",
    ),
    (
        "tls",
        "the machine and the conductor at {url} do not agree on TLS",
        "check the conductor's certificate, the authority that the ramdisk trusts, and the machine's clock",
    ),
    (
        "http",
        "the server that answers the machine at {url} is not a conductor",
        "correct the conductor's URL, or the proxy before it",
    ),
    (
        "lookup",
        "the conductor at {url} does not know the machine's network cards",
        "compare the ports of the node with the cards of the machine",
    ),
];

/// What a host name begins with; the whole name of the check follows.
const HOST_NAME: &str = "farrier-";

/// Whether a host name is the doctor's.
pub(crate) fn is_host_name(name: &str) -> bool {
    of_host_name(name).is_some()
}

fn of_host_name(name: &str) -> Option<&'static Check> {
    let failed = name.strip_prefix(HOST_NAME)?;
    CHECKS.iter().find(|(name, ..)| *name == failed)
}

/// What a host name means that a machine has asked for its address with, where it is the doctor's.
pub(super) fn host_name(name: &str, url: &str) -> Option<Cause> {
    of_host_name(name).map(|check| cause(check, "to the DHCP server", url))
}

/// What it means that a check has failed, which the doctor has told somebody or left in some place.
fn cause((name, what, next): &Check, place: &str, url: &str) -> Cause {
    let named_by = format!("the agent's doctor, {place}: {name}");
    Cause { what: what.replace("{url}", url), named_by, next: (*next).to_owned() }
}

/// What an entry of a controller's log means, where the doctor has written it.
pub(super) fn record(said: &str, url: &str) -> Option<Cause> {
    let check = checked(said).or_else(|| checked(&decoded(said)?))?;
    Some(cause(check, "in the event log", url))
}

/// The check that a text names after the mark.
fn checked(text: &str) -> Option<&'static Check> {
    text.match_indices(MARK).find_map(|(at, _)| {
        let rest = &text[at + MARK.len()..];
        let begins = |name: &str| rest.starts_with(&name[..name.len().min(ROOM)]);
        CHECKS.iter().find(|(name, ..)| begins(name))
    })
}

/// The text that a controller shows as hexadecimal digits, with or without something between the bytes.
fn decoded(said: &str) -> Option<String> {
    let digits: String = said
        .replace("0x", "")
        .to_ascii_lowercase()
        .chars()
        .filter(|one| !matches!(one, ' ' | ':' | '-'))
        .collect();
    let mark: String = MARK.bytes().map(|byte| format!("{byte:02x}")).collect();
    let begin = digits.find(&mark)?;
    let pairs = digits.as_bytes()[begin..].chunks_exact(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = pairs.map_while(byte).take_while(|byte| byte.is_ascii_graphic()).collect();
    String::from_utf8(bytes).ok()
}

/// What a line of the console says that is the doctor's.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// That a check failed.
    Failed(Cause),
    /// Something else about a check.
    Other,
    /// That no check failed, so earlier failures are over.
    AllPassed,
}

/// A line of the console, where it is the doctor's.
pub(super) fn line(text: &str) -> Option<Line> {
    let said = text.split_once("doctor: ").map_or(text, |(_, said)| said).trim_start();
    if said.starts_with(ALL_CHECKS_PASSED) {
        return Some(Line::AllPassed);
    }
    let mut words = said.split_whitespace();
    match words.next()? {
        "ok" | "unused" | "CAUTION" => is_check(words.next()?).then_some(Line::Other),
        "not" if words.next() == Some("tried") => is_check(words.next()?).then_some(Line::Other),
        "FAILED" => failed(words.next()?, said),
        _ => None,
    }
}

fn is_check(word: &str) -> bool {
    CHECKS.iter().any(|(name, ..)| *name == word) || matches!(word, "lldp" | "devices")
}

/// A failure, in the doctor's own words: it knows more than the name of the check.
fn failed(name: &str, said: &str) -> Option<Line> {
    let (_, _, usual) = CHECKS.iter().find(|(one, ..)| *one == name)?;
    let found = said.split_once(name)?.1.trim();
    let (what, next) = found.rsplit_once(". ").unwrap_or((found, usual));
    let named_by = format!("the agent's doctor, on the console: {name}");
    Some(Line::Failed(Cause { what: what.to_owned(), named_by, next: next.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_however_a_controller_shows_them() {
        let url = "http://192.0.2.5:6385";
        for (said, expected) in [
            ("OEM record e0, 666172726965726c696e6b0000", Some("no network card of the machine has a link")),
            ("OEM record e0, 66617272696572616464726573", Some("the machine has no address that reaches")),
            (
                "0x66 0x61 0x72 0x72 0x69 0x65 0x72 0x74 0x63 0x70 0x00 0x00 0x00",
                Some("no server answers the machine at"),
            ),
            ("66:61:72:72:69:65:72:64:68:63:70:00:00", Some("no DHCP server")),
            ("[e0] farrierlookup", Some("does not know the machine's network cards")),
            ("farrier-agent was here", None),
            ("OEM record e0, 6661727269657200", None),
            ("OEM record e0, 66617272696572", None),
            ("Power Supply AC lost", None),
            ("ü666172726965727", None),
        ] {
            let found = record(said, url);
            assert_eq!(found.is_some(), expected.is_some(), "{said}: {found:?}");
            if let (Some(cause), Some(part)) = (found, expected) {
                assert!(cause.what.contains(part), "{cause}");
                assert!(!cause.what.contains("{url}"), "{cause}");
            }
        }
        assert!(record("farriertcp", url).unwrap().what.ends_with(url));
    }

    #[test]
    fn a_host_name_tells_the_whole_name_of_a_check_or_nothing() {
        let url = "http://192.0.2.5:6385";
        let cause = host_name("farrier-address", url).unwrap();
        assert!(cause.what.contains("no address that reaches further"), "{cause}");
        assert_eq!(cause.named_by, "the agent's doctor, to the DHCP server: address");
        for other in ["farrier", "farrier-", "farrier-addre", "farrier-oats", "horse", "my-farrier-tcp"] {
            assert!(!is_host_name(other) && host_name(other, url).is_none(), "{other}");
        }
    }

    #[test]
    fn lines_of_the_console_are_read() {
        let said = "2026-11-24T22:00:00Z ERROR doctor: FAILED    link    eth0: no carrier, 52:54:00:12:34:56, e1000. \
                    Check cable, transceiver and the port of the switch";
        let Some(Line::Failed(cause)) = line(said) else { panic!("{:?}", line(said)) };
        assert_eq!(cause.what, "eth0: no carrier, 52:54:00:12:34:56, e1000");
        assert_eq!(cause.next, "Check cable, transceiver and the port of the switch");
        let Some(Line::Failed(cause)) = line("FAILED    tcp     refused") else { panic!() };
        assert_eq!((cause.what.as_str(), cause.next.split(' ').next()), ("refused", Some("correct")));
        for (said, expected) in [
            ("INFO doctor: all checks passed", Some(Line::AllPassed)),
            ("INFO doctor: ok        lldp    eth0: switch leaf-07", Some(Line::Other)),
            ("not tried http    http://c: needs tcp", Some(Line::Other)),
            ("FAILED to start something", None),
            ("ok then", None),
            ("", None),
        ] {
            assert_eq!(line(said), expected, "{said}");
        }
    }
}
