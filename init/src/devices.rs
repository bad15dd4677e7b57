//! Coldplug and hotplug: devices that are there at the start, and those that appear later (uevents), get their drivers,
//! whose modules are loaded as modprobe does it.
//!
//! Two threads load modules: one what the network needs, since the first heartbeat waits for it, and one all
//! others. That one, and who looks for devices far from the network, give way to everybody else. A third one
//! listens for devices and never waits for either.

use super::events::Change;
use super::loading::Ledger;
use super::network;
use super::panic_guard;
use super::shortcomings;
use farrier_linux::modules::{self, ModuleIndex};
use farrier_linux::priority::{self, Work};
use farrier_linux::uevent::{Uevent, UeventSocket};
use farrier_linux::{mount, sysfs};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Pause before listening again after the kernel refused to deliver events.
const RETRY: Duration = Duration::from_secs(1);

/// Folder whose files name modules that no device asks for.
const MODULES_LOAD: &str = "/etc/modules-load.d";
/// Types of links (the kernel's `if_arp.h`): Ethernet and InfiniBand.
const WIRED: [u32; 2] = [1, 32];
/// Makes network interfaces of InfiniBand ports; no device asks for it by its modalias.
const IPOIB: &str = "ib_ipoib";

/// Starts loading modules, for devices present and future, and reports network interfaces.
pub fn start(sender: Sender<Change>) {
    let ledger = Arc::new(Ledger::open(Path::new("/")));
    // The first look at all devices, before anybody can ask whether it is over.
    ledger.expect();
    thread::spawn(move || {
        let index = ModuleIndex::of_running_kernel().unwrap_or_else(|error| {
            tracing::warn!("{error}");
            Box::leak(Box::default())
        });
        let devices = Devices { loaders: Loaders::start(index, ledger), network: sender };
        // Listening starts before the first look, so that no device falls in between.
        let socket =
            UeventSocket::open().inspect_err(|error| tracing::error!(%error, "no device events")).ok();
        panic_guard::once("the first look at devices", || devices.look());
        devices.loaders.ledger.met();
        let Some(socket) = socket else { return };
        panic_guard::rounds("the look at devices", || {
            match socket.next() {
                Ok(event) => devices.appeared(&event),
                Err(error) => {
                    tracing::warn!(%error, "device events were lost, looking at all devices again");
                    thread::sleep(RETRY);
                    devices.look();
                }
            }
            ControlFlow::Continue(())
        });
    });
}

/// Who hears of devices.
struct Devices {
    loaders: Loaders,
    network: Sender<Change>,
}

impl Devices {
    /// Looks at every device, sooner or later.
    fn look(&self) {
        for name in sysfs::entries(Path::new("/sys/class/net")) {
            report(&name, &self.network);
        }
        // Nearly all network cards are here, and the way to the others is long.
        for alias in modules::bus_aliases(Path::new("/sys"), "pci") {
            self.loaders.load(alias);
        }
        if !sysfs::entries(Path::new("/sys/class/infiniband")).is_empty() {
            self.loaders.load(IPOIB.to_owned());
        }
        let loaders = self.loaders.clone();
        loaders.ledger.expect();
        thread::spawn(move || {
            give_way();
            for alias in modules::device_aliases(Path::new("/sys")) {
                loaders.load(alias);
            }
            loaders.ledger.met();
        });
    }

    fn appeared(&self, event: &Uevent) {
        if event.action != "add" {
            return;
        }
        if let Some(alias) = event.properties.get("MODALIAS") {
            self.loaders.load(alias.clone());
        }
        match event.properties.get("SUBSYSTEM").map(String::as_str) {
            Some("net") => {
                if let Some(name) = event.properties.get("INTERFACE") {
                    report(name, &self.network);
                }
            }
            Some("infiniband") => self.loaders.load(IPOIB.to_owned()),
            _ => {}
        }
    }
}

/// The threads that load modules, by the aliases that they are sent.
#[derive(Clone)]
struct Loaders {
    network: Sender<String>,
    others: Sender<String>,
    ledger: Arc<Ledger>,
}

impl Loaders {
    fn start(index: &'static ModuleIndex, ledger: Arc<Ledger>) -> Self {
        let ((network, of_network), (others, of_others)) = (channel(), channel());
        let told = Arc::clone(&ledger);
        thread::spawn(move || load_each(index, &of_network, &told));
        let told = Arc::clone(&ledger);
        told.expect();
        thread::spawn(move || {
            give_way();
            load_listed(index, &told);
            told.met();
            shortcomings::log_later(Arc::clone(&told));
            load_each(index, &of_others, &told);
        });
        Self { network, others, ledger }
    }

    fn load(&self, alias: String) {
        self.ledger.expect();
        let loader = if is_of_network(&alias) { &self.network } else { &self.others };
        // The receiver lives as long as PID 1.
        loader.send(alias).ok();
    }
}

/// Lets the calling thread do what nobody waits for yet.
fn give_way() {
    if let Err(error) = priority::lower(Work::Background) {
        tracing::debug!(%error, "all devices are equally urgent");
    }
}

/// Whether the network may need what claims an alias: cards, and the bus of those that virtual machines have.
fn is_of_network(alias: &str) -> bool {
    alias == IPOIB
        || alias.starts_with("virtio:d00000001")
        // PCI class 02 is network; virtio devices on PCI have no class of their own.
        || alias.starts_with("pci:") && (alias.contains("bc02") || alias.starts_with("pci:v00001AF4"))
}

fn load_each(index: &ModuleIndex, aliases: &Receiver<String>, ledger: &Ledger) {
    for alias in aliases {
        panic_guard::once("the loader of modules", || {
            for name in index.claimants(&alias) {
                if let Err(error) = ledger.during(&name, || index.load(&name)) {
                    tracing::warn!(device = alias, "{error}");
                }
            }
        });
        ledger.met();
    }
}

/// Loads the modules that are named in `/etc/modules-load.d`, then mounts what they bring.
fn load_listed(index: &ModuleIndex, ledger: &Ledger) {
    let directory = Path::new(MODULES_LOAD);
    for file in sysfs::entries(directory) {
        let text = fs::read_to_string(directory.join(file)).unwrap_or_default();
        for name in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Err(error) = ledger.during(name, || index.load(name)) {
                tracing::warn!("{error}");
            }
        }
    }
    if Path::new("/sys/firmware/efi").exists()
        && let Err(error) = mount::EFIVARFS.mount()
    {
        tracing::warn!("{error}");
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
    fn network_cards_do_not_wait_for_other_devices() {
        for (alias, expected) in [
            ("acpi:PNP0501:", false),
            ("pci:v00008086d00002922sv00001AF4sd00001100bc01sc06i01", false),
            ("virtio:d00000002v00001AF4", false),
            ("usb:v0BDAp8153d3000dc00dsc00dp00icFFiscFFip00in00", false),
            ("pci:v00008086d0000100Esv00001AF4sd00001100bc02sc00i00", true),
            ("pci:v00001AF4d00001042sv00001AF4sd00001100bc01sc00i00", true),
            ("virtio:d00000001v00001AF4", true),
            (IPOIB, true),
        ] {
            assert_eq!(is_of_network(alias), expected, "{alias}");
        }
    }
}
