//! What the ramdisk lacks for this machine: drivers and firmware, one line each.

use super::loading::Ledger;
use farrier_linux::{driverless, kernel_log};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long drivers may take to see to their devices, once they are loaded.
const GRACE: Duration = Duration::from_secs(10);
/// How long loading them may take: a controller that hangs keeps nobody from hearing of the others.
const PATIENCE: Duration = Duration::from_secs(300);
/// What stands before the name of a file in the kernel's words, and in Debian's.
const NOT_LOADED: [&str; 2] = ["Direct firmware load for ", "firmware: failed to load "];

/// Logs it, after drivers had their time: those on the ledger wait for each other.
pub fn log_later(ledger: Arc<Ledger>) {
    thread::spawn(move || {
        wait_for_drivers(&ledger, GRACE, PATIENCE);
        for device in driverless::without_driver(Path::new("/sys")) {
            tracing::warn!(
                "{device} has no driver in this ramdisk: \
                 pack it with farrier-image build --module, or take another kernel"
            );
        }
        let log = kernel_log::read().inspect_err(|error| tracing::debug!(%error, "no kernel log")).ok();
        for file in missing_firmware(&String::from_utf8_lossy(&log.unwrap_or_default())) {
            tracing::warn!("the firmware {file} is missing: pack it with farrier-image build --firmware");
        }
    });
}

fn wait_for_drivers(ledger: &Ledger, grace: Duration, patience: Duration) {
    let deadline = Instant::now() + patience;
    loop {
        let was_idle = ledger.is_idle();
        thread::sleep(grace);
        if was_idle && ledger.is_idle() || Instant::now() >= deadline {
            break;
        }
    }
}

fn missing_firmware(log: &str) -> BTreeSet<&str> {
    let files = log.lines().filter_map(|line| {
        let (_, rest) = NOT_LOADED.iter().find_map(|words| line.split_once(words))?;
        rest.split_whitespace().next()
    });
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x02_a_driver_that_waits_for_another_one_to_load_is_not_called_missing() {
        let root = tempfile::tempdir().unwrap();
        let ledger = Arc::new(Ledger::open(root.path()));
        ledger.expect();
        let grace = Duration::from_millis(10);
        let start = |patience| {
            let ledger = Arc::clone(&ledger);
            thread::spawn(move || wait_for_drivers(&ledger, grace, patience))
        };
        let waiting = start(Duration::from_secs(600));
        start(grace * 3).join().unwrap();
        assert!(!waiting.is_finished(), "a driver is still waited for");
        ledger.met();
        waiting.join().unwrap();
    }

    #[test]
    fn a_missing_firmware_is_one_line_naming_its_file() {
        let log = "[    1.1] bnx2x 0000:02:00.0: Direct firmware load for bnx2x/bnx2x-e2.fw failed with error -2\n\
                   [    1.2] tg3 0000:03:00.0: firmware: failed to load tigon/tg3_tso.bin (-2)\n\
                   [    1.3] tg3 0000:03:00.0: firmware: failed to load tigon/tg3_tso.bin (-2)\n\
                   [    1.4] ice 0000:04:00.0: The DDP package was successfully loaded\n";
        let expected = BTreeSet::from(["bnx2x/bnx2x-e2.fw", "tigon/tg3_tso.bin"]);
        assert_eq!(missing_firmware(log), expected);
    }
}
