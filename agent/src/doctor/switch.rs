//! What a switch says about its port, by LLDP (IEEE 802.1AB).

use super::verdict::Finding;
use farrier_hardware::inventory::lldp::Tlv;
use std::time::Duration;

/// Types of TLVs.
mod kind {
    pub const CHASSIS: u8 = 1;
    pub const PORT: u8 = 2;
    pub const PORT_DESCRIPTION: u8 = 4;
    pub const SYSTEM_NAME: u8 = 5;
    pub const ORGANISATION: u8 = 127;
}

/// The beginning of the VLAN that untagged frames belong to (IEEE 802.1, subtype 1).
const PORT_VLAN: [u8; 4] = [0x00, 0x80, 0xc2, 0x01];
/// Subtypes of a chassis and of a port that are hardware addresses.
const CHASSIS_MAC: u8 = 4;
const PORT_MAC: u8 = 3;

/// The verdict about LLDP frames: nothing when no link could listen, no TLV when no frame came.
pub fn judge(heard: Option<&[Tlv]>, patience: Duration) -> Finding {
    match heard {
        None => Finding::unused("not listened to: the interface cannot be opened"),
        Some([]) => {
            Finding::unused(format!("no LLDP frame in {} s: the switch sends none", patience.as_secs()))
        }
        Some(tlvs) => Finding::good(describe(tlvs)),
    }
}

fn describe(tlvs: &[Tlv]) -> String {
    let value = |wanted| tlvs.iter().find(|Tlv(kind, _)| *kind == wanted).map(|Tlv(_, hex)| bytes(hex));
    let text = |wanted| value(wanted).map(|bytes| printable(&bytes)).filter(|text| !text.is_empty());
    let switch = text(kind::SYSTEM_NAME).or_else(|| Some(identifier(&value(kind::CHASSIS)?, CHASSIS_MAC)));
    let port = value(kind::PORT).map(|bytes| identifier(&bytes, PORT_MAC));
    let described = text(kind::PORT_DESCRIPTION).filter(|text| Some(text) != port.as_ref());
    let vlan = tlvs.iter().filter(|Tlv(kind, _)| *kind == kind::ORGANISATION).find_map(|Tlv(_, hex)| {
        let bytes = bytes(hex);
        let number: [u8; 2] = bytes.strip_prefix(&PORT_VLAN)?.try_into().ok()?;
        Some(u16::from_be_bytes(number))
    });
    let mut facts = vec![format!("switch {}", switch.unwrap_or_else(|| "without a name".to_owned()))];
    facts.extend(port.map(|port| format!("port {port}")));
    facts.extend(described.map(|text| format!("({text})")));
    facts.extend(vlan.map(|number| format!("untagged VLAN {number}")));
    facts.join(" ")
}

/// A chassis or a port: its subtype, then an address or a text.
fn identifier(value: &[u8], mac: u8) -> String {
    match value.split_first() {
        Some((subtype, address)) if *subtype == mac => {
            address.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(":")
        }
        Some((_, text)) => printable(text),
        None => String::new(),
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits.filter_map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// A text that a console can show: the device at the other end of the cable chose it.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(tlvs: &[(u8, &str)]) -> String {
        let tlvs: Vec<_> = tlvs.iter().map(|(kind, hex)| Tlv(*kind, (*hex).to_owned())).collect();
        judge(Some(&tlvs), Duration::from_secs(30)).of("lldp", "").to_string()
    }

    #[test]
    fn switch_port_and_vlan_are_named() {
        // sw1, Eth1/7 as an interface name, "rack 3", untagged VLAN 100
        let named = [
            (1, "04525400000001"),
            (2, "05457468312f37"),
            (3, "0078"),
            (4, "7261636b2033"),
            (5, "737731"),
            (127, "0080c2010064"),
            (127, "00120f0103"),
        ];
        assert!(
            line(&named).ends_with("switch sw1 port Eth1/7 (rack 3) untagged VLAN 100"),
            "{}",
            line(&named)
        );
        let bare = [(1, "04525400000001"), (2, "03525400000002")];
        assert!(line(&bare).ends_with("switch 52:54:00:00:00:01 port 52:54:00:00:00:02"), "{}", line(&bare));
    }

    #[test]
    fn silence_is_no_failure_and_odd_frames_do_no_harm() {
        assert!(line(&[]).starts_with("unused"));
        for tlvs in [&[(1, "")][..], &[(2, "05")], &[(5, "1b5b324a")], &[(127, "0080c201")], &[(5, "zz")]] {
            let line = line(tlvs);
            assert!(line.starts_with("ok") && !line.contains('\u{1b}'), "{line:?}");
        }
    }
}
