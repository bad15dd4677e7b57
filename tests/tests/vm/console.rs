//! What stands on the screen of a machine: in text mode read from the memory of its VGA card, on a framebuffer
//! from a picture of it.

use farrier_tests::environment;
use farrier_tests::machine::FIRMWARE;
use farrier_tests::machine::console::Console;
use farrier_tests::machine::monitor::Monitor;
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long an emulated machine may take.
const PATIENCE: Duration = Duration::from_secs(240);
const POLL: Duration = Duration::from_millis(500);
/// Where a VGA card keeps its text, and how many bytes it has for that.
const VGA: u32 = 0xb8000;
const VGA_SIZE: u32 = 32 << 10;
/// Bytes of a row of text: a character and its colours for each of 80 columns.
const ROW: usize = 160;

/// The cell of a character on a framebuffer in pixels, in the kernel's font for it.
const CELL: (usize, usize) = (8, 16);

/// A machine whose screen is in text mode with a BIOS, and a framebuffer with UEFI. Dropping it switches it off.
struct Screen {
    qemu: Child,
    folder: TempDir,
}

impl Screen {
    fn boot(parameters: &str, firmware: &[String]) -> Self {
        let dist = environment::path("FARRIER_DIST");
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
            .args(firmware)
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

    /// What a camera would see.
    fn picture(&self) -> Picture {
        let file = self.path("picture");
        let command = json!({"filename": file});
        Monitor::connect(&self.path("monitor")).unwrap().execute("screendump", &command).unwrap();
        Picture::read(&fs::read(file).unwrap())
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

/// A picture of a screen.
struct Picture {
    /// Bytes of a row of pixels, three for each.
    row: usize,
    pixels: Vec<u8>,
}

impl Picture {
    /// Reads a portable pixmap: `P6`, width, height and largest value, then the pixels.
    fn read(bytes: &[u8]) -> Self {
        let mut parts = bytes.splitn(4, u8::is_ascii_whitespace);
        assert_eq!(parts.next(), Some(&b"P6"[..]));
        let width: usize = String::from_utf8_lossy(parts.next().unwrap()).parse().unwrap();
        let (_, rest) = (parts.next(), parts.next().unwrap());
        let start = rest.iter().position(u8::is_ascii_whitespace).unwrap() + 1;
        Self { row: width * 3, pixels: rest[start..].to_vec() }
    }

    /// The pixels of a cell.
    fn cell(&self, line: usize, column: usize) -> Vec<u8> {
        let (width, height) = (CELL.0 * 3, CELL.1);
        let rows = self.pixels.chunks_exact(self.row).skip(line * height).take(height);
        rows.flat_map(|row| &row[column * width..][..width]).copied().collect()
    }

    /// Whether a line can be this text: its cells are equal where, and only where, its letters are, and
    /// nothing is where it has blanks.
    fn can_be(&self, line: usize, text: &str) -> bool {
        let letters: Vec<_> = text.chars().enumerate().collect();
        let cells: Vec<_> = letters.iter().map(|(column, _)| self.cell(line, *column)).collect();
        letters.iter().all(|(one, letter)| {
            let is_blank = cells[*one].windows(2).all(|bytes| bytes[0] == bytes[1]);
            is_blank == (*letter == ' ')
                && letters[..*one]
                    .iter()
                    .all(|(two, other)| (cells[*one] == cells[*two]) == (letter == other))
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // It may be off already.
        self.qemu.kill().ok();
        self.qemu.wait().ok();
    }
}

/// Nobody listens there.
const PARAMETERS: &str = "ipa-api-url=http://10.0.2.2:1 farrier-doctor-report=none";

#[test]
fn vm_a_framebuffer_shows_it_too() {
    let drive = format!("if=pflash,format=raw,readonly=on,file={FIRMWARE}");
    let screen = Screen::boot(PARAMETERS, &["-drive".to_owned(), drive]);
    screen.serial().wait_for("lookup failed, trying again", 0, PATIENCE).unwrap();
    let started = Instant::now();
    let is_seen = || {
        let picture = screen.picture();
        picture.can_be(3, "Now         asking the conductor which node this is")
            && picture.can_be(4, "Progress    -")
    };
    while !is_seen() {
        assert!(started.elapsed() < PATIENCE, "{}", screen.serial().tail());
        thread::sleep(POLL);
    }
}

/// Lines of the status screen, with the one below which the log goes on.
const LINES: usize = 8;

fn tells_of_a_lookup_that_failed(picture: &[String]) -> bool {
    picture[0].starts_with("Farrier ")
        && picture[1].starts_with("Node        not known yet; hardware addresses 52:54:")
        && picture[2].starts_with("Addresses   eth0 ")
        && picture[3] == "Now         asking the conductor which node this is"
        && picture[4] == "Progress    -"
        && picture[5].starts_with("Last error  [")
        && picture[7] == "-".repeat(79)
}

#[test]
fn vm_a_screen_shows_calmly_what_the_agent_does() {
    let screen = Screen::boot(PARAMETERS, &[]);
    screen.serial().wait_for("lookup failed, trying again", 0, PATIENCE).unwrap();
    let started = Instant::now();
    loop {
        let rows = screen.rows();
        if rows.windows(LINES).any(tells_of_a_lookup_that_failed) {
            break;
        }
        // Painted once a second at most, so that an older picture may still stand there.
        assert!(started.elapsed() < PATIENCE, "{}", rows.join("\n"));
        thread::sleep(POLL);
    }
    // Nothing of the kernel follows on the serial line, and nothing but plain text.
    let serial = screen.serial().text();
    let (_, after) = serial.split_once("userland started").unwrap();
    assert!(!after.contains('\u{1b}'), "{after}");
    let of_kernel = |line: &&str| line.starts_with('[');
    assert_eq!(after.lines().find(of_kernel), None);
}
