//! What names the cause of a machine's silence: the doctor of the agent, and words of kernels, firmware, boot loaders and
//! controllers that are known to mean one thing.

use crate::evidence::diagnosis::Cause;
use crate::evidence::diagnosis::doctor_report::{self, Line};
use farrier_conductor::model::LogEntry;

/// Words that have all to be in a line, what they mean, and what to do.
type Sign = (&'static [&'static str], &'static str, &'static str);

/// Signs on a console; of those for the same line the more special one stands first.
const ON_CONSOLE: &[Sign] = &[
    (
        &["Kernel panic", "Unable to mount root fs"],
        "the kernel found no ramdisk that it can read",
        "check that kernel and ramdisk belong together, and that the ramdisk was loaded as a whole",
    ),
    (
        &["Kernel panic", "deadlocked on memory"],
        "the machine has too little memory for the ramdisk",
        "give it more, or a smaller ramdisk",
    ),
    (
        &["Kernel panic"],
        "the kernel of the ramdisk panicked",
        "read what stands before it on the console, and check that kernel and ramdisk belong together",
    ),
    (
        &["Initramfs unpacking failed"],
        "the kernel cannot unpack the ramdisk",
        "check that it was loaded as a whole, and that the kernel knows how it is compressed",
    ),
    (
        &["Out of memory: Killed process"],
        "the ramdisk ran out of memory",
        "give the machine more, or a smaller ramdisk",
    ),
    (
        &["PXE-E61"],
        "the firmware sees no link on its network card",
        "check the cable, the transceiver and the port of the switch",
    ),
    (
        &["Link status: Down"],
        "iPXE sees no link on the network card",
        "check the cable, the transceiver and the port of the switch",
    ),
    (&["PXE-E51"], NO_DHCP, MEND_DHCP),
    (&["PXE-E16"], NO_DHCP, MEND_DHCP),
    (&["No configuration methods succeeded"], NO_DHCP, MEND_DHCP),
    (
        &["PXE-E53"],
        "DHCP gives the machine an address and no boot file",
        "have the DHCP server tell what to load, or run the conductor's own",
    ),
    (&["PXE-E32"], NO_TFTP, MEND_TFTP),
    (&["PXE-E18"], NO_TFTP, MEND_TFTP),
    (
        &["PXE-T01"],
        "the TFTP server does not have the boot file that the machine asks for",
        "compare the name that DHCP gives with what the conductor serves",
    ),
    (
        &["PXE-E23"],
        "the TFTP server refuses the boot file that the machine asks for",
        "compare the name that DHCP gives with what the conductor serves",
    ),
    (&["bad shim signature"], UNSIGNED, SIGN_IT),
    (&["Security Violation"], UNSIGNED, SIGN_IT),
    (&["Access Denied", "BdsDxe"], UNSIGNED, SIGN_IT),
    (&["No bootable option or device was found"], NOTHING_TO_BOOT, CHECK_BOOT),
    (&["No bootable device"], NOTHING_TO_BOOT, CHECK_BOOT),
    (&["Reboot and Select proper Boot device"], NOTHING_TO_BOOT, CHECK_BOOT),
    (&["Operating System not found"], NOTHING_TO_BOOT, CHECK_BOOT),
];

/// Signs in the log of a controller.
const IN_LOG: &[Sign] = &[
    (
        &["Linux kernel panic"],
        "the kernel on the machine panicked",
        "look at its console, and check that kernel and ramdisk belong together",
    ),
    (
        &["Run-time critical stop"],
        "the system on the machine stopped",
        "look at its console for what it said last",
    ),
    (
        &["Uncorrectable"],
        "a part of the machine has errors that cannot be corrected",
        "replace the part that is named",
    ),
    (&["IERR"], "the processor reports an error of its own", "replace the part that is named"),
    (
        &["hermal Trip"],
        "the machine went off since it was too hot",
        "look at its fans and at the air around it",
    ),
    (&["AC lost"], "a power supply of the machine has no power", "look at its cable and at the fuse"),
];

const NO_DHCP: &str = "no DHCP server gives the firmware an address";
const MEND_DHCP: &str = "check the VLAN of its switch port, spanning tree, the DHCP relay and the server";
const NO_TFTP: &str = "the TFTP server that DHCP names does not answer the machine";
const MEND_TFTP: &str = "check its address, that it runs, and the firewall before it";
const UNSIGNED: &str = "Secure Boot refuses the boot loader or the kernel of the machine";
const SIGN_IT: &str = "use a boot loader and a kernel that are signed, or switch Secure Boot off";
const NOTHING_TO_BOOT: &str = "the machine found nothing to boot";
const CHECK_BOOT: &str = "check its boot device and boot mode, and that its card may boot from the network";

/// Why a machine is silent, where its console, the name by which it has asked for an address, or the log of its
/// controller names that. Console and name are of this start; the log may be of an earlier one. The URL is the
/// conductor's as the machine was told it.
pub(crate) fn cause(
    log: &[LogEntry],
    console: &[String],
    host_name: Option<&str>,
    url: &str,
) -> Option<Cause> {
    on_console(console).or_else(|| doctor_report::host_name(host_name?, url)).or_else(|| in_log(log, url))
}

/// The last sign counts. Of what the doctor says at once, that is its first failure: the others rest on it.
fn on_console(console: &[String]) -> Option<Cause> {
    let mut failure = None;
    for text in console.iter().rev() {
        match doctor_report::line(text) {
            Some(Line::Failed(cause)) => failure = Some(cause),
            Some(Line::Other) => {}
            Some(Line::AllPassed) if failure.is_none() => return None,
            Some(Line::AllPassed) => break,
            // Other messages stand between its lines.
            None if failure.is_some() => {}
            None => {
                if let Some(cause) = named(ON_CONSOLE, text, "the console") {
                    return Some(cause);
                }
            }
        }
    }
    failure
}

fn in_log(log: &[LogEntry], url: &str) -> Option<Cause> {
    let found = log.iter().enumerate().rev().find_map(|(place, entry)| {
        let by_doctor = doctor_report::record(&entry.said, url);
        Some((place, by_doctor.or_else(|| named(IN_LOG, &entry.said, "the event log"))?))
    });
    let (place, mut cause) = found?;
    // Of what bears no time and stands behind nothing that does, nobody knows whether it is of this start.
    if log[..=place].iter().all(|entry| entry.at.is_none()) {
        cause.named_by += ", at a time that is not known";
    }
    Some(cause)
}

fn named(signs: &[Sign], text: &str, place: &str) -> Option<Cause> {
    let (_, what, next) = signs.iter().find(|(words, ..)| words.iter().all(|word| text.contains(word)))?;
    let named_by = format!("{place} says: {}", text.trim());
    Some(Cause { what: (*what).to_owned(), named_by, next: (*next).to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::OffsetDateTime;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    fn of_console(text: &str) -> Option<String> {
        cause(&[], &lines(text), None, "http://c").map(|cause| cause.what)
    }

    #[test]
    fn the_last_sign_on_the_console_counts() {
        for (console, expected) in [
            ("Booting Linux\nall is well", None),
            ("PXE-E51: No DHCP or proxyDHCP offers were received.\n", Some(NO_DHCP)),
            (
                "[ 1.2] Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)\n[ 1.3] ---[ end ]---",
                Some("the kernel found no ramdisk that it can read"),
            ),
            (
                "[ 9.1] Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100",
                Some("the kernel of the ramdisk panicked"),
            ),
            // It came up at the second try, and then stopped.
            (
                "PXE-E18: Server response timeout.\nKernel panic - not syncing: x",
                Some("the kernel of the ramdisk panicked"),
            ),
            (
                "Kernel panic - not syncing: x\n>>Start PXE over IPv4.\nPXE-E18: Server response timeout.",
                Some(NO_TFTP),
            ),
            ("BdsDxe: failed to load Boot0001: Access Denied", Some(UNSIGNED)),
        ] {
            assert_eq!(of_console(console).as_deref(), expected, "{console}");
        }
    }

    #[test]
    fn of_what_the_doctor_finds_the_first_failure_counts() {
        let first = "eth0: no DHCP server answers in 10 s";
        let report = format!(
            "ok        link    eth0: up, 52:54:00:12:34:56, e1000\nFAILED    dhcp    {first}. Check the VLAN\n\
             e1000: a message of the kernel\n\
             FAILED    address no address that reaches further than its own link. Mend DHCP\nnot tried tcp     http://c: needs address"
        );
        assert_eq!(of_console(&report).as_deref(), Some(first));
        assert_eq!(of_console(&format!("{report}\nINFO doctor: all checks passed")), None);
        let later = "INFO doctor: all checks passed\nFAILED    tcp     refused. Start it\n";
        assert_eq!(of_console(&format!("{report}\n{later}")).as_deref(), Some("refused"));
    }

    #[test]
    fn the_log_tells_where_the_console_does_not() {
        let entry = |at: Option<i64>, said: &str| LogEntry {
            at: at.map(|at| OffsetDateTime::from_unix_timestamp(at).unwrap()),
            said: said.to_owned(),
        };
        let of_log =
            |log: &[LogEntry]| cause(log, &lines("Booting"), None, "http://c").map(|cause| cause.to_string());
        assert_eq!(of_log(&[entry(Some(7), "System Event, OEM System boot event")]), None);
        let known = of_log(&[
            entry(Some(7), "System boot"),
            entry(None, "OEM record e0, 666172726965726c696e6b0000"),
        ]);
        assert_eq!(
            known.as_deref(),
            Some(
                "no network card of the machine has a link (the agent's doctor, in the event log: link); check the cable, \
                 the transceiver and the port of the switch"
            )
        );
        let unknown = of_log(&[entry(None, "OEM record e0, 666172726965726c696e6b0000")]).unwrap();
        assert!(unknown.contains("in the event log: link, at a time that is not known)"), "{unknown}");
        let panic =
            of_log(&[entry(Some(7), "OS Critical Stop #0x01, Run-time critical stop, Asserted")]).unwrap();
        assert!(
            panic.starts_with("the system on the machine stopped (the event log says: OS Critical"),
            "{panic}"
        );
    }
}
