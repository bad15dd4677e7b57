//! The page of the book with the figures.

use anyhow::{Result, ensure};

use super::report::{Boot, Load, NetbootReport};
use super::{BESIDE, PROTOCOLS};
use crate::book::page::Measured;
use crate::book::plot::{Arrangement, Bar, Plot, Row};

/// What `--boot-transfers` of `farrier serve` is unless told otherwise.
const BOOT_TRANSFERS: u16 = 64;

impl Measured for NetbootReport {
    const NAME: &'static str = "netboot-benchmark";

    fn text(&self) -> Result<String> {
        text(self)
    }

    fn plots(&self) -> Vec<(String, Plot)> {
        vec![(Self::NAME.to_owned(), boots(self)), (format!("{}-serving", Self::NAME), loads(self))]
    }
}

fn boots(report: &NetbootReport) -> Plot {
    let row = |boot: &Boot| Row {
        name: format!("{} {}, {:?}", boot.method, boot.mode, boot.leader),
        bars: vec![
            Some(Bar::of(boot.to_kernel_s, 1)),
            Some(Bar::of(boot.to_heartbeat_s - boot.to_kernel_s, 1)),
        ],
    };
    Plot {
        title: "From power on to the first heartbeat".to_owned(),
        axis: "seconds, with an emulated processor".to_owned(),
        series: vec!["firmware and loading", "kernel and agent"],
        arrangement: Arrangement::Stacked,
        rows: report.boots.iter().map(row).collect(),
    }
}

fn loads(report: &NetbootReport) -> Plot {
    let row = |protocol: &str| {
        let of_protocol = report.loads.iter().filter(|load| load.protocol == protocol);
        let bar = |load: &Load| Some(Bar::of(load.figures.mib_per_second, 0));
        Row { name: protocol.to_owned(), bars: of_protocol.map(bar).collect() }
    };
    Plot {
        title: format!("One file for {} clients at once", report.clients),
        axis: "MiB/s of all clients together".to_owned(),
        series: vec!["farrier serve", "nginx, dnsmasq"],
        arrangement: Arrangement::Grouped,
        rows: PROTOCOLS.into_iter().map(row).collect(),
    }
}

fn text(report: &NetbootReport) -> Result<String> {
    ensure!(
        report.loads.len() == PROTOCOLS.len() * 2 && report.boots.len() == super::Way::ALL.len(),
        "not everything was measured"
    );
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let [nginx, dnsmasq] = BESIDE;
    Ok(format!(
        "# Boots from the network, measured

This page is written by `cargo xtask bench netboot --page --runs {runs} --clients {clients}`.

Machine: {machine}. In a round each has one turn; of {runs} rounds the one with the median is shown, which of two is
the slower boot, and the faster server.

## From power on to the first heartbeat

The same emulated machine (one processor, 1 GiB, a virtio card, SeaBIOS with QEMU's iPXE or OVMF with its own network stack)
is switched on by hand as soon as its node is in `clean wait`. With every conductor it boots the same kernel ({kernel:.1} MiB) and ramdisk ({ramdisk:.1} MiB) in turn. The clock stops when the agent says on the console that the conductor has answered its first heartbeat. Bytes are those
of all packets to and from the machine until then, as the kernel counts them at the tap device that is its cable.

`farrier serve` serves everything itself, addresses by its dnsmasq. The boot interface `http` has the
[GRUB with the module http](netboot.md#grub-and-http-boot). Ironic {ironic} from PyPI, all-in-one on SQLite, has the boot interface
`ipxe` with `[dhcp]dhcp_provider=none`; dnsmasq gives addresses and serves its `tftp_root`, nginx its `http_root`. Both
conductors have the hardware type `manual-management`, so no BMC counts. By BIOS the card has iPXE, so neither `ipxe` needs a
loader there; by UEFI both load the same one by TFTP.

![Seconds to the kernel and to the first heartbeat, for each boot interface](netboot-benchmark.svg)

{boots}
**The emulated processor dominates**: QEMU translates every instruction of firmware, loader and kernel, and unpacking kernel
and ramdisk is the same work on each way. Only what is on the left of the plot differs between boot interfaces; on real
machines, firmware and cards decide.

## Many machines at once

{clients} clients, each with an address of its own on the loopback interface, ask for one file at the same moment and hold each
byte against what it has to be: by HTTP the ramdisk ({ramdisk:.1} MiB), by TFTP iPXE ({loader:.1} MiB), with blocks of 1468 bytes
and windows of eight blocks where the server has windows (RFC 7440), which dnsmasq does not. `farrier serve` has its defaults:
{transfers} files at a time by HTTP, the others are queued; a rejected client repeats its request like the script of iPXE. The server {nginx} has a process for each processor and `sendfile`, {dnsmasq} `tftp-max=512` instead of 50. Clients and servers share the
machine. A transfer's time begins with the first request of all. Memory is the most that the processes of the server ever
had; that of `farrier` is the whole conductor.

![MiB a second of each server](netboot-benchmark-serving.svg)

{loads}
```console
$ cargo xtask bench netboot                          # needs root for network namespaces
$ cargo xtask bench netboot --filter ipxe,bios       # some ways only
$ cargo xtask bench netboot --filter serving         # the second half
```
",
        runs = report.runs,
        clients = report.clients,
        machine = report.machine,
        kernel = mebibytes(report.vmlinuz_bytes),
        ramdisk = mebibytes(report.ramdisk_bytes),
        loader = mebibytes(report.loader_bytes),
        ironic = report.ironic,
        boots = report.boot_table(),
        loads = report.load_table(),
        transfers = BOOT_TRANSFERS,
    ))
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::report;
    use super::*;

    /// As many of both as there have to be.
    fn whole() -> NetbootReport {
        let mut report = report();
        let boots = std::mem::take(&mut report.boots);
        report.boots = boots.into_iter().cycle().take(super::super::Way::ALL.len()).collect();
        let loads = std::mem::take(&mut report.loads);
        let by_tftp = loads.iter().map(|load| Load { protocol: "TFTP".to_owned(), ..load.clone() });
        report.loads = loads.iter().cloned().chain(by_tftp).collect();
        report
    }

    #[test]
    fn the_page_shows_every_figure_and_both_plots() {
        let report = whole();
        let text = report.text().unwrap();
        assert!(text.contains(&report.boot_table()) && text.contains(&report.load_table()), "{text}");
        assert!(text.contains("--runs 3 --clients 200") && text.contains("ramdisk (32.0 MiB)"), "{text}");
        for (name, plot) in report.plots() {
            assert!(text.contains(&format!("]({name}.svg)")), "{name}");
            assert!(plot.svg().is_ok(), "{name}");
        }
        let [(_, boots), (_, loads)] = &report.plots()[..] else { panic!("two plots") };
        assert_eq!((boots.rows.len(), boots.rows[0].bars[1].as_ref().map(|bar| bar.length)), (8, Some(10.0)));
        assert_eq!((loads.rows.len(), loads.rows[1].bars.len()), (2, 2));
    }

    #[test]
    fn a_part_is_no_page() {
        let mut report = whole();
        report.loads.pop();
        assert!(report.text().is_err());
        let mut report = whole();
        report.boots.pop();
        assert!(report.text().is_err());
    }
}
