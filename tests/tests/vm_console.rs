//! What stands on the screen of a machine, read from the memory of its VGA card.
//!
//! `cargo xtask test vm` builds what is booted and says where it is.

#![allow(clippy::unwrap_used)]

use farrier_tests::console::Console;
use farrier_tests::monitor::Monitor;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long an emulated machine may take.
const PATIENCE: Duration = Duration::from_secs(240);
/// Where a VGA card keeps its text, and how many bytes it has for that.
const VGA: u32 = 0xb8000;
const VGA_SIZE: u32 = 32 << 10;
/// Bytes of a row of text: a character and its colours for each of 80 columns.
const ROW: usize = 160;

/// A machine with a BIOS, whose screen is in text mode. Dropping it switches it off.
struct Screen {
    qemu: Child,
    folder: TempDir,
}

impl Screen {
    fn boot(parameters: &str) -> Self {
        let dist = std::env::var_os("FARRIER_DIST").map(PathBuf::from).expect("run cargo xtask test vm");
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let qemu = Command::new("qemu-system-x86_64")
            .args(["-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35", "-m", "256"])
            .args(["-accel", "tcg,thread=multi", "-cpu", "max", "-vga", "std", "-device", "virtio-rng-pci"])
            .args(["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile="])
            .args(["-serial", &format!("file:{}", path("console.log"))])
            .args(Monitor::arguments(&folder.path().join("monitor")))
            .arg("-kernel")
            .arg(dist.join("vmlinuz"))
            .arg("-initrd")
            .arg(dist.join("initramfs.img"))
            .args(["-append", &format!("console=tty0 console=ttyS0 no_timer_check {parameters}")])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { qemu, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn serial(&self) -> Console {
        Console::new(self.path("console.log"))
    }

    /// Rows of the card's memory, in which the text on the screen is somewhere.
    fn rows(&self) -> Vec<String> {
        let file = self.path("screen");
        let memory = json!({"val": VGA, "size": VGA_SIZE, "filename": file});
        Monitor::connect(&self.path("monitor")).unwrap().execute("pmemsave", &memory).unwrap();
        let memory = fs::read(file).unwrap();
        let text = |row: &[u8]| row.iter().step_by(2).map(|byte| char::from(*byte)).collect::<String>();
        memory.chunks_exact(ROW).map(|row| text(row).trim_end_matches([' ', '\0']).to_owned()).collect()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may be off already.
        self.qemu.kill().ok();
        self.qemu.wait().ok();
    }
}

#[test]
fn vm_a_screen_shows_calmly_what_the_agent_does() {
    let screen = Screen::boot("ipa-api-url=http://10.0.2.2:1 farrier-doctor-report=none");
    screen.serial().wait_for("lookup failed, trying again", 0, PATIENCE).unwrap();
    let started = Instant::now();
    let (mut rows, mut head) = (Vec::new(), None);
    while head.is_none() && started.elapsed() < PATIENCE {
        rows = screen.rows();
        // Painted once a second at most.
        head = rows.windows(2).position(|rows| {
            rows[0].starts_with("Farrier ")
                && rows[1].starts_with("Node        not known yet; hardware addresses 52:54:")
        });
    }
    let text = rows.join("\n");
    let picture = &rows[head.expect(&text)..];
    assert!(picture[2].starts_with("Addresses   eth0 "), "{text}");
    assert_eq!(picture[3], "Now         asking the conductor which node this is", "{text}");
    assert_eq!(picture[4], "Progress    -", "{text}");
    assert!(picture[5].starts_with("Last error  ["), "{text}");
    assert_eq!(picture[7], "-".repeat(79), "{text}");
    // Nothing of the kernel follows on the serial line, and nothing but plain text.
    let serial = screen.serial().text();
    let (_, after) = serial.split_once("userland started").unwrap();
    assert!(!after.contains('\u{1b}'), "{after}");
    let of_kernel = |line: &&str| line.starts_with('[');
    assert_eq!(after.lines().find(of_kernel), None);
}
