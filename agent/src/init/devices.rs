//! Devices that are there at the start, and those that appear later.

use super::network::{self, Change};
use super::shortcomings;
use farrier_linux::modules::{self, ModuleIndex};
use farrier_linux::sysfs;
use farrier_linux::uevent::{Uevent, UeventSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

/// Pause before listening again after the kernel refused to deliver events.
const RETRY: Duration = Duration::from_secs(1);

/// Types of links (the kernel's `if_arp.h`): Ethernet and InfiniBand.
const WIRED: [u32; 2] = [1, 32];
/// Makes network interfaces of InfiniBand ports; no device asks for it by its modalias.
const IPOIB: &str = "ib_ipoib";

/// Starts loading modules, for devices present and future, and reports network interfaces. `listed` hears when
/// the modules are there that no device asks for.
pub fn start(sender: Sender<Change>, listed: Sender<()>) {
    thread::spawn(move || {
        let index = match ModuleIndex::of_running_kernel() {
            Ok(index) => Arc::new(index),
            Err(error) => {
                tracing::warn!("{error}");
                Arc::default()
            }
        };
        // Listening starts before the first look, so that no device falls in between.
        let socket =
            UeventSocket::open().inspect_err(|error| tracing::error!(%error, "no device events")).ok();
        let scan = {
            let (index, sender) = (Arc::clone(&index), sender.clone());
            thread::spawn(move || {
                super::load_listed_modules(&index);
                // The network may not wait for it.
                listed.send(()).ok();
                scan(&index, &sender);
                shortcomings::log_later();
            })
        };
        let Some(socket) = socket else { return };
        loop {
            match socket.next() {
                Ok(event) => handle(&event, &index, &sender),
                Err(error) => {
                    tracing::warn!(%error, "device events were lost, looking at all devices again");
                    thread::sleep(RETRY);
                    if scan.is_finished() {
                        self::scan(&index, &sender);
                    }
                }
            }
        }
    });
}

/// Looks at every device: network interfaces first, since they are waited for.
fn scan(index: &ModuleIndex, sender: &Sender<Change>) {
    for alias in in_order(modules::device_aliases(Path::new("/sys"))) {
        load(index, &alias);
    }
    for name in sysfs::entries(Path::new("/sys/class/net")) {
        report(&name, sender);
    }
    if !sysfs::entries(Path::new("/sys/class/infiniband")).is_empty() {
        load(index, IPOIB);
    }
}

/// Buses and network cards before the rest: the first heartbeat waits for them, disks are wanted
/// later.
fn in_order(mut aliases: Vec<String>) -> Vec<String> {
    let rank = |alias: &str| match alias {
        _ if alias.starts_with("virtio:d00000001") => 0,
        // PCI class 02 is network.
        _ if alias.starts_with("pci:") && alias.contains("bc02") => 0,
        // Virtio devices on PCI have no class of their own.
        _ if alias.starts_with("pci:v00001AF4") => 0,
        _ => 1,
    };
    aliases.sort_by_key(|alias| rank(alias));
    aliases
}

fn handle(event: &Uevent, index: &ModuleIndex, sender: &Sender<Change>) {
    if event.action != "add" {
        return;
    }
    if let Some(alias) = event.properties.get("MODALIAS") {
        load(index, alias);
    }
    match event.properties.get("SUBSYSTEM").map(String::as_str) {
        Some("net") => {
            if let Some(name) = event.properties.get("INTERFACE") {
                report(name, sender);
            }
        }
        Some("infiniband") => load(index, IPOIB),
        _ => {}
    }
}

fn load(index: &ModuleIndex, alias: &str) {
    for error in index.load_alias(alias) {
        tracing::warn!(device = alias, "{error}");
    }
}

/// Reports wired interfaces: Ethernet on a real device, or a VLAN on one, and InfiniBand.
fn report(name: &str, sender: &Sender<Change>) {
    let directory = Path::new("/sys/class/net").join(name);
    let is_wired = sysfs::number::<u32>(&directory, "type").is_some_and(|kind| WIRED.contains(&kind));
    let is_wireless = directory.join("wireless").exists();
    if is_wired && !is_wireless && (network::is_vlan(name) || directory.join("device").exists()) {
        // The receiver lives as long as PID 1.
        sender.send(Change::Appeared(name.to_owned())).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_devices_come_first() {
        let aliases = [
            "acpi:PNP0501:",
            "pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01",
            "pci:v00008086d0000100Esv00001AF4sd00001100bc02sc00i00",
            "virtio:d00000001v00001AF4",
        ];
        let ordered = in_order(aliases.iter().map(|alias| alias.to_string()).collect());
        assert!(ordered[0].contains("bc02") || ordered[0].starts_with("virtio"));
        assert!(ordered[1].contains("bc02") || ordered[1].starts_with("virtio"));
    }
}
