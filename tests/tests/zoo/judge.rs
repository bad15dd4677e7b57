//! Other people's judgement: libblkid by its programs, as deployed systems have them.

use crate::content::{Content, Mark};
use anyhow::{Context, Result, bail, ensure};
use farrier_linux::loop_device::LoopDevice;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output};

/// Where Debian keeps programs of administrators.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Runs a program and gives what it prints.
///
/// # Errors
///
/// It is missing or fails.
pub fn tool<T: AsRef<str>>(line: &[T]) -> Result<String> {
    let output = run(line)?;
    if !output.status.success() {
        bail!("{} failed: {}", line[0].as_ref(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn run<T: AsRef<str>>(line: &[T]) -> Result<Output> {
    let (program, arguments) = line.split_first().context("an empty line")?;
    // By its path a program is started without a copy of this process.
    let paths = FOLDERS.iter().map(|folder| Path::new(folder).join(program.as_ref()));
    let path = paths.into_iter().find(|path| path.exists());
    let path = path.with_context(|| format!("{} is not installed", program.as_ref()))?;
    let mut command = Command::new(path);
    command.args(arguments.iter().map(AsRef::as_ref)).env("LC_ALL", "C");
    // mdadm: arrays of firmware are to be read on a machine without it, from disks without serial numbers.
    command.env("IMSM_NO_PLATFORM", "1").env("IMSM_DEVNAME_AS_SERIAL", "1");
    command.output().with_context(|| format!("cannot start {}", program.as_ref()))
}

/// What libblkid calls the content of a file as a device with such sectors; empty where it knows nothing, or cannot
/// decide between several.
///
/// # Errors
///
/// There is no loop device.
pub fn recognised(file: &Path, sector: u32) -> Result<String> {
    let device = LoopDevice::attach(file, sector).context("loop devices need root")?;
    probed(device.path())
}

fn probed(device: &Path) -> Result<String> {
    let device = device.display().to_string();
    let output = run(&["blkid", "-p", "-o", "export", &device])?;
    match output.status.code() {
        // Nothing found.
        Some(2) => Ok(String::new()),
        Some(8) => Ok("several".to_owned()),
        Some(0) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let value = |name| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            Ok(value("TYPE=").or_else(|| value("PTTYPE=")).unwrap_or_default())
        }
        _ => bail!("blkid failed on {device}: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}

/// Has wipefs remove everything from a file, and tells what that was.
///
/// # Errors
///
/// There is no loop device, or wipefs fails.
pub fn wiped(file: &Path, sector: u32) -> Result<Vec<Mark>> {
    let device = LoopDevice::attach(file, sector).context("loop devices need root")?;
    let text = tool(&["wipefs", "--all", "--force", &device.path().display().to_string()])?;
    let marks: Option<Vec<_>> =
        text.lines().filter(|line| line.contains(" at offset 0x")).map(mark).collect();
    marks.with_context(|| format!("wipefs prints {text}"))
}

/// As in `/dev/loop0: 2 bytes were erased at offset 0x00000438 (ext4): 53 ef`.
fn mark(line: &str) -> Option<Mark> {
    let (_, rest) = line.split_once(" at offset 0x")?;
    let (offset, rest) = rest.split_once(' ')?;
    let (_, bytes) = rest.split_once("): ")?;
    let bytes = bytes.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).ok());
    Some(Mark { offset: u64::from_str_radix(offset, 16).ok()?, bytes: bytes.collect::<Option<_>>()? })
}

/// What wipefs, and on the disk as a whole blkid too, sees in a range of a disk, as a device of its own with the disk's
/// sectors.
///
/// # Errors
///
/// There is no loop device, or a program fails.
pub fn seen(file: &Path, range: &Range<u64>, sector: u32) -> Result<Vec<String>> {
    let disk = OpenOptions::new().read(true).write(true).open(file)?;
    let length = range.end - range.start;
    let device = LoopDevice::over(&disk, range.start, length, sector).context("loop devices need root")?;
    let path = device.path().display().to_string();
    let text = tool(&["wipefs", "--all", "--no-act", &path])?;
    let mut seen: Vec<_> = text.lines().filter_map(kind).collect();
    let is_whole = range.start == 0;
    let probed = if is_whole { probed(device.path())? } else { String::new() };
    if !probed.is_empty() && !seen.contains(&probed) {
        seen.push(probed);
    }
    Ok(seen)
}

/// As in `/dev/loop0: 2 bytes were erased at offset 0x00000438 (ext4): 53 ef`.
fn kind(line: &str) -> Option<String> {
    let (_, rest) = line.split_once(" at offset 0x")?;
    let (_, rest) = rest.split_once('(')?;
    rest.split_once(')').map(|(kind, _)| kind.to_owned())
}

/// The partitions that other systems see on a disk, as first byte and length.
///
/// # Errors
///
/// There is no loop device, or partx fails.
pub fn partitions(file: &Path, sector: u32) -> Result<Vec<Range<u64>>> {
    let device = LoopDevice::attach(file, sector).context("loop devices need root")?;
    let path = device.path().display().to_string();
    let text = match run(&["partx", "--raw", "--noheadings", "--output", "START,SECTORS", &path])? {
        output if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        // What has no table.
        _ => String::new(),
    };
    let range = |line: &str| {
        let (start, count) = line.split_once(' ')?;
        let (start, count): (u64, u64) = (start.parse().ok()?, count.parse().ok()?);
        // partx counts in units of 512 bytes, whatever the disk's are.
        Some(start * 512..(start + count) * 512)
    };
    text.lines().map(|line| range(line).with_context(|| format!("partx prints {line}"))).collect()
}

/// All bytes of a disk that is a file.
///
/// # Errors
///
/// It cannot be read.
pub fn content(file: &Path) -> Result<Content> {
    let file = File::open(file)?;
    ensure!(file.metadata()?.len() > 0, "the file of the disk is gone");
    Content::of(&file)
}
