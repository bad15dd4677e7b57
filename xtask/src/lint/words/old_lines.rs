//! The 25 lines with which the rewriting began, each of which is found wherever it is put back.

use super::returned_in;

/// The lines as they were, from `../shared/reference/words.md`.
const OLD: [&str; 25] = [
    "Boot a machine all the same whose agent was not heard of for so many seconds.",
    "How long no agent may call after a boot before the next boot interface of driver_info \
     boot_fallback is tried, in seconds; no less than the slowest machine needs.",
    "After so many seconds without a sign of life, another conductor over the same database goes on \
     with the nodes of this one. It is the same for all of them, and the clocks of their hosts differ \
     by much less.",
    "Compare the power of all machines with their records each so many seconds; 0 never does.",
    "Look each so many seconds whether such a machine can be read again, which ends its maintenance; 0 \
     leaves that to operators.",
    "Clean machines before they become available; `false` hands the data of one user to the next one.",
    "What tells machines by DHCP what to load: none (the site itself does), dnsmasq, which this \
     conductor then runs, or neutron, whose ports are told.",
    "Have machines with an instance on their disk boot that, when they boot from the network all the \
     same.",
    "What logs in to disks that agents export, for the deploy interface iscsi: qemu, as anybody, or \
     open-iscsi, by the kernel of this host and as root.",
    "Answer ramdisks; else lookups and heartbeats are refused with 403.",
    "Whoever shows a password or a token of the file of operators. / Those too, and whoever has a \
     token of Keystone with one of its roles for machines. / Whoever can connect, which only this host \
     can.",
    "Keep deploy templates: steps of the deployments of instances that want their names as traits.",
    "… and 3 when an order goes on that was waited for long enough.",
    "Prove that a machine is under control, or take it out of the hands of users.",
    "the BMC of {node} switches no light of its machine; find it by its serial number",
    "no node was taken in time; those that are as wanted may be worked on",
    "--url {} cannot be a base",
    "--file-url-allowed-paths {}: no image is ever taken from there",
    "the node belongs to instance {0}, which can be removed but not replaced; undeploy it first",
    "the network interface did not answer within {} s; look at the service that has the networks",
    "`farrier` needs no file for a machine that boots from the network. What it boots is in its node's \
     record, and every file is what its name stands for at the moment that somebody asks, by whatever \
     protocol, and of any conductor that has the record.",
    "It goes on with what it was doing, whatever ended it.",
    "Somebody calls at night: a machine is not there. These commands tell where it is",
    "It leads those nodes alone that have its name as a trait, which is how an administrator approves \
     it for a node.",
    "`farrier` takes what it shows from the environment or from a file, never from its command line:",
];

/// A text in lines of about so many characters.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        match line.is_empty() || line.len() + word.len() < width {
            true if line.is_empty() => line.push_str(word),
            true => *line += &format!(" {word}"),
            false => lines.push(word.to_owned()),
        }
    }
    lines
}

#[test]
fn each_of_the_25_old_lines_is_found_in_a_page_in_a_help_text_and_in_a_message() {
    for old in OLD {
        for width in [20, 47, 110] {
            let lines = wrapped(old, width);
            let page = format!("# Title\n\n{}\n", lines.join("\n"));
            let help = format!("struct A {{\n    /// {}\n    a: u8,\n}}\n", lines.join("\n    /// "));
            let message = format!("bail!(\n    \"{}\"\n)", lines.join(" \\\n     "));
            for text in [page, help, message] {
                assert_eq!(returned_in(&text).count(), 1, "{text}");
            }
        }
    }
}
