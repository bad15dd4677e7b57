//! Which accelerator works here. KVM is not trusted because it exists: inside some virtual machines the
//! firmware runs on it and Linux hangs, so the node's own ramdisk is booted to its user space first.

use super::arguments::SANDBOX;
use super::description::Description;
use super::firmware::{self, Firmware};
use super::{QemuSettings, process};
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::str::FromStr;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;

/// How long a machine on KVM may say nothing. Where KVM works there is a line every few milliseconds, and about
/// a second of firmware.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take to its user space. Where KVM works that is a few seconds.
const LIMIT: Duration = Duration::from_secs(60);

const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// What Linux says last; what is written after it, user space or a kernel that goes on wrote.
const USER_SPACE: &str = "Run /init as init process";

/// As [`super::description`] gives a machine by default: enough for any ramdisk.
const MEMORY_MIB: &str = "512";

const KVM: &str = "/dev/kvm";

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

/// The best accelerator of this host for each firmware, tried once and remembered until the host boots again.
#[derive(Debug)]
pub(super) struct AcceleratorProbe {
    cache: PathBuf,
    device: PathBuf,
    timeout: Duration,
    bios: OnceCell<Accelerator>,
    uefi: OnceCell<Accelerator>,
}

impl AcceleratorProbe {
    /// A probe that remembers its findings in the folder `cache`.
    pub(super) fn new(cache: PathBuf) -> Self {
        let (bios, uefi) = Default::default();
        Self { cache, device: KVM.into(), timeout: PATIENCE, bios, uefi }
    }

    /// KVM when the node's ramdisk reaches its user space on it under the node's firmware, else the emulator.
    pub(super) async fn best(&self, description: &Description, settings: &QemuSettings) -> Accelerator {
        if !description.architecture.is_of_host() {
            return Accelerator::Tcg;
        }
        let (known, kind) = match &description.firmware {
            Firmware::Bios => (&self.bios, "bios"),
            Firmware::Uefi(_) => (&self.uefi, "uefi"),
        };
        let cache = self.cache.join(format!("accelerator-{kind}"));
        *known.get_or_init(|| self.cached_or_tried(description, settings, &cache)).await
    }

    async fn cached_or_tried(
        &self,
        description: &Description,
        settings: &QemuSettings,
        cache: &Path,
    ) -> Accelerator {
        let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
        if let Some(known) = read_cache(cache, boot.trim()) {
            return known;
        }
        let folder = cache.with_extension(format!("{}.probe", std::process::id()));
        let found = if self.kvm_works(description, settings, &folder).await {
            Accelerator::Kvm
        } else {
            Accelerator::Tcg
        };
        tracing::info!(accelerator = found.as_str(), "accelerator chosen by trying");
        // What cannot be kept is found again next time, and what cannot be removed is in nobody's way.
        let _ = std::fs::write(cache, format!("{} {}\n", found.as_str(), boot.trim()));
        let _ = std::fs::remove_dir_all(folder);
        found
    }

    async fn kvm_works(&self, description: &Description, settings: &QemuSettings, folder: &Path) -> bool {
        let is_usable = OpenOptions::new().read(true).write(true).open(&self.device).is_ok();
        if !is_usable || std::fs::create_dir_all(folder).is_err() {
            return false;
        }
        let console = folder.join("console");
        match arguments(description, settings, folder, &console) {
            Some(arguments) => self.reaches_user_space(&description.binary, &arguments, &console).await,
            None => false,
        }
    }

    /// Runs a machine until it says that its user space runs, or nothing any more.
    async fn reaches_user_space(&self, binary: &str, arguments: &[String], console: &Path) -> bool {
        let child = process::command(binary)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn();
        let Ok(mut child) = child else { return false };
        let start = Instant::now();
        let (mut heard, mut at, mut arrived) = (0, start, false);
        while !arrived
            && at.elapsed() < self.timeout
            && start.elapsed() < LIMIT
            && matches!(child.try_wait(), Ok(None))
        {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let said = std::fs::read(console).unwrap_or_default();
            if said.len() > heard {
                (heard, at) = (said.len(), Instant::now());
            }
            arrived = is_in_user_space(&String::from_utf8_lossy(&said));
        }
        // It is killed by the drop anyway; waiting only frees its files.
        let _ = child.kill().await;
        arrived
    }
}

/// Whether more was said after the kernel's last line.
fn is_in_user_space(said: &str) -> bool {
    let after = said.split_once(USER_SPACE).and_then(|(_, after)| after.split_once('\n'));
    after.is_some_and(|(_, after)| !after.trim().is_empty())
}

fn read_cache(cache: &Path, boot: &str) -> Option<Accelerator> {
    let text = std::fs::read_to_string(cache).ok()?;
    let (accelerator, of_boot) = text.trim().split_once(' ')?;
    (of_boot == boot).then(|| accelerator.parse().ok()).flatten()
}

/// A machine of that firmware which boots the node's ramdisk, without disks and network, on KVM.
fn arguments(
    description: &Description,
    settings: &QemuSettings,
    folder: &Path,
    console: &Path,
) -> Option<Vec<String>> {
    let (kernel, ramdisk) = description.ramdisk_files(settings).ok()?;
    let architecture = description.architecture;
    let mut flash = Vec::new();
    if let Firmware::Uefi(uefi) = &description.firmware {
        let variables = firmware::own_variables(uefi, folder).ok()?;
        for (name, file, read_only) in [("code", &uefi.code, true), ("vars", &variables, false)] {
            let file = serde_json::json!({"driver": "file", "filename": file});
            let image = serde_json::json!({
                "driver": "raw", "node-name": name, "read-only": read_only, "file": file,
            });
            flash.extend(["-blockdev".to_owned(), image.to_string()]);
        }
    }
    let console = format!("file:{}", console.display());
    let parameters = format!("console={} loglevel=7", architecture.serial_port());
    let words = [
        ["-sandbox", SANDBOX],
        ["-accel", "kvm"],
        ["-cpu", "host"],
        ["-m", MEMORY_MIB],
        ["-display", "none"],
        ["-machine", architecture.machine(!flash.is_empty())],
        ["-serial", &console],
        ["-kernel", kernel.to_str()?],
        ["-initrd", ramdisk.to_str()?],
        ["-append", &parameters],
    ];
    let words = words.as_flattened().iter().copied().chain(["-nodefaults", "-no-user-config"]);
    Some(words.map(str::to_owned).chain(flash).collect())
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::node;
    use super::*;
    use crate::netboot::images::AllowedFolders;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_finding_holds_for_one_boot_of_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("accelerator");
        for (content, expected) in [
            ("kvm boot-1\n", Some(Accelerator::Kvm)),
            ("tcg boot-1", Some(Accelerator::Tcg)),
            ("kvm boot-0", None),
            ("hvf boot-1", None),
            ("", None),
        ] {
            std::fs::write(&cache, content).unwrap();
            assert_eq!(read_cache(&cache, "boot-1"), expected, "{content:?}");
        }
        assert_eq!(read_cache(&folder.path().join("none"), "boot-1"), None);
    }

    /// What a probe finds that remembers in `folder`, with a QEMU that says `words` and then hangs.
    async fn found(folder: &Path, words: &str) -> Accelerator {
        let script = format!(
            "#!/bin/sh\nfor word; do case $word in file:*) console=${{word#file:}};; esac; done\n\
             printf '{words}' > \"$console\"\nexec sleep 60\n"
        );
        let binary = folder.join("qemu");
        std::fs::write(&binary, script).unwrap();
        std::fs::set_permissions(&binary, PermissionsExt::from_mode(0o755)).unwrap();
        let node = node(&serde_json::json!({
            "qemu_binary": binary, "qemu_firmware": "bios", "deploy_kernel": binary, "deploy_ramdisk": binary,
        }));
        let probe = AcceleratorProbe {
            device: binary,
            timeout: Duration::from_secs(2),
            ..AcceleratorProbe::new(folder.to_owned())
        };
        let allowed = AllowedFolders::new(vec![folder.to_owned()]).unwrap();
        let settings = QemuSettings { allowed, unsafe_driver_info: true };
        probe.best(&Description::read(&node, &settings).unwrap(), &settings).await
    }

    #[tokio::test]
    async fn x50_only_a_user_space_proves_kvm_and_the_finding_is_remembered() {
        let (kernel, init) = ("Linux version 6.1\\n", "Run /init as init process\\n");
        for (words, expected) in [
            (String::new(), Accelerator::Tcg),
            ("SeaBIOS (version 1.16)\\n".to_owned(), Accelerator::Tcg),
            (format!("{kernel}{init}"), Accelerator::Tcg),
            (format!("{kernel}{init}here is the agent\\n"), Accelerator::Kvm),
        ] {
            let folder = tempfile::tempdir().unwrap();
            assert_eq!(found(folder.path(), &words).await, expected, "{words}");
            // Another probe, which would find the opposite.
            let opposite =
                if expected == Accelerator::Kvm { String::new() } else { format!("{kernel}{init}x\\n") };
            assert_eq!(found(folder.path(), &opposite).await, expected, "{words}");
        }
    }
}
