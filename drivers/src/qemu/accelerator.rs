//! Which accelerator works here. KVM is not trusted because it exists: inside some virtual
//! machines guests hang on it, so a small one is run first.

use super::description::Description;
use super::firmware::Firmware;
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;
use tokio::process::Command;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How long the firmware may take on KVM to say something. Where KVM works it takes about one second.
const PATIENCE: Duration = Duration::from_secs(5);

const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Identity of the running host kernel: another one may have another KVM.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// What executes the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accelerator {
    /// The processor.
    Kvm,
    /// QEMU's emulator.
    Tcg,
}

impl Accelerator {
    fn as_str(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }
}

impl FromStr for Accelerator {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        [Self::Kvm, Self::Tcg].into_iter().find(|known| known.as_str() == text).ok_or(())
    }
}

/// The best accelerator of this host, tried once and remembered until the host boots again.
#[derive(Debug)]
pub(super) struct AcceleratorProbe {
    memory: PathBuf,
    known: OnceCell<Accelerator>,
}

impl AcceleratorProbe {
    /// A probe that remembers its finding in `memory`.
    pub(super) fn new(memory: PathBuf) -> Self {
        Self { memory, known: OnceCell::new() }
    }

    /// KVM when the machine's own firmware runs on it, else the emulator.
    pub(super) async fn best(&self, description: &Description) -> Accelerator {
        *self.known.get_or_init(|| self.remembered_or_tried(description)).await
    }

    async fn remembered_or_tried(&self, description: &Description) -> Accelerator {
        let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
        if let Some(known) = recall(&self.memory, boot.trim()) {
            return known;
        }
        let found = if kvm_works(description, &self.memory.with_extension("probe")).await {
            Accelerator::Kvm
        } else {
            Accelerator::Tcg
        };
        tracing::info!(accelerator = found.as_str(), "accelerator chosen by trying");
        // A finding that cannot be kept is found again next time.
        let _ = std::fs::write(&self.memory, format!("{} {}\n", found.as_str(), boot.trim()));
        found
    }
}

fn recall(memory: &Path, boot: &str) -> Option<Accelerator> {
    let text = std::fs::read_to_string(memory).ok()?;
    let (accelerator, of_boot) = text.trim().split_once(' ')?;
    (of_boot == boot).then(|| accelerator.parse().ok()).flatten()
}

async fn kvm_works(description: &Description, console: &Path) -> bool {
    if OpenOptions::new().read(true).write(true).open("/dev/kvm").is_err() {
        return false;
    }
    if let Some(folder) = console.parent()
        && std::fs::create_dir_all(folder).is_err()
    {
        return false;
    }
    let spoke = run_firmware(description, console).await;
    let _ = std::fs::remove_file(console);
    spoke
}

/// Runs the firmware alone and tells whether it wrote anything to its console.
async fn run_firmware(description: &Description, console: &Path) -> bool {
    let child = Command::new(&description.binary)
        .args(["-accel", "kvm", "-cpu", "host", "-m", "256"])
        .args(["-nodefaults", "-no-user-config", "-display", "none"])
        .args(firmware_arguments(&description.firmware, console))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn();
    let Ok(mut child) = child else { return false };
    let deadline = Instant::now() + PATIENCE;
    let mut spoke = false;
    while !spoke && Instant::now() < deadline && matches!(child.try_wait(), Ok(None)) {
        tokio::time::sleep(LOOK_INTERVAL).await;
        spoke = std::fs::metadata(console).is_ok_and(|console| console.len() > 0);
    }
    // It is killed by the drop anyway; waiting only frees its console file.
    let _ = child.kill().await;
    spoke
}

/// A machine of this firmware, with the port that it speaks on written to `console`.
fn firmware_arguments(firmware: &Firmware, console: &Path) -> [String; 6] {
    let file = format!("file:{}", console.display());
    match firmware {
        // It says nothing on a serial port.
        Firmware::Bios => {
            ["-machine", "q35", "-global", "isa-debugcon.iobase=0x402", "-debugcon", &file].map(str::to_owned)
        }
        Firmware::Uefi(firmware) => {
            let code = serde_json::json!({
                "driver": "raw",
                "node-name": "code",
                "read-only": true,
                "file": {"driver": "file", "filename": firmware.code},
            });
            ["-machine", "q35,pflash0=code", "-blockdev", &code.to_string(), "-serial", &file]
                .map(str::to_owned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_holds_for_one_boot_of_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let memory = folder.path().join("accelerator");
        for (content, expected) in [
            ("kvm boot-1\n", Some(Accelerator::Kvm)),
            ("tcg boot-1", Some(Accelerator::Tcg)),
            ("kvm boot-0", None),
            ("hvf boot-1", None),
            ("", None),
        ] {
            std::fs::write(&memory, content).unwrap();
            assert_eq!(recall(&memory, "boot-1"), expected, "{content:?}");
        }
        assert_eq!(recall(&folder.path().join("none"), "boot-1"), None);
    }
}
