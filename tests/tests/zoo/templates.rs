//! Occupants as their makers leave them, each made once for each sector size, with the marks that give it away.

use crate::content::{Content, Mark};
use crate::judge::{self, tool};
use crate::occupants::{Maker, Occupant};
use anyhow::{Context, Result, ensure};
use farrier_linux::loop_device::LoopDevice;
use std::fs::{self, File};
use std::path::Path;

/// An occupant, ready to move in.
#[derive(Debug)]
pub struct Template {
    pub content: Content,
    pub marks: Vec<Mark>,
    pub size: u64,
}

impl Template {
    /// Has the occupant made on a disk with such sectors. libblkid must recognise it, and nothing but it.
    ///
    /// # Errors
    ///
    /// It cannot be made, or libblkid takes it for something else.
    pub fn make(occupant: &Occupant, sector: u32) -> Result<Self> {
        let what = || format!("making {} on sectors of {sector} bytes", occupant.name);
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("volume");
        let file = File::create_new(&path)?;
        file.set_len(occupant.size)?;
        match occupant.maker {
            Maker::ByHand(make) => make(occupant.size, sector).write(&file)?,
            Maker::Tool(line) => run(line, &path, folder.path(), sector).with_context(what)?,
        }
        // Some programs make the file as long as what they put into it.
        file.set_len(occupant.size)?;
        let content = Content::of(&File::open(&path)?)?;
        let found = judge::recognised(&path, sector)?;
        ensure!(found == occupant.kind, "{}: libblkid says {found:?} of it", what());
        let mut marks = judge::wiped(&path, sector)?;
        ensure!(!marks.is_empty(), "{}: wipefs finds nothing of it", what());
        marks.extend((occupant.also)(occupant.size, sector));
        for mark in &marks {
            let found = content.get(mark.offset, mark.bytes.len());
            ensure!(found == mark.bytes, "{}: {found:02x?} at {}", what(), mark.offset);
        }
        Ok(Self { content, marks, size: occupant.size })
    }
}

/// Has a program work on the volume.
fn run(line: &[&str], file: &Path, folder: &Path, sector: u32) -> Result<()> {
    let tree = folder.join("tree");
    fs::create_dir_all(tree.join("lock"))?;
    fs::write(tree.join("file"), "hay\n")?;
    let key = folder.join("key");
    fs::write(&key, "oats")?;
    let device = LoopDevice::attach(file, sector).context("loop devices need root")?;
    let filled = |argument: &&str| {
        [("DEVICE", device.path()), ("FILE", file), ("FOLDER", &tree), ("KEY", &key)]
            .into_iter()
            .fold(argument.replace("SECTOR", &sector.to_string()), |argument, (name, path)| {
                argument.replace(name, &path.display().to_string())
            })
    };
    tool(&line.iter().map(filled).collect::<Vec<_>>())?;
    // What a program has not flushed itself would go with the device.
    Ok(File::open(device.path())?.sync_all()?)
}
