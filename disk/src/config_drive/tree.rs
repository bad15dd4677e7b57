//! The files in a config drive, whichever file system they came in.

use crate::view::ReadOnly;
use fatfs::{FileSystem, FsOptions};
use hadris_iso::directory::DirectoryRef;
use hadris_iso::file::EntryType;
use hadris_iso::read::{DirEntry, IsoImage};
use std::io::{self, Cursor, Read};

/// Bounds for a file system that somebody else made.
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 20_000;

/// Something in the tree. Folders come before what they hold.
pub enum Node<'a> {
    Folder,
    File(&'a mut dyn Read),
}

/// What is done with each path and what lies there; parts are joined by slashes.
pub type Visitor<'a> = dyn FnMut(&str, Node<'_>) -> io::Result<()> + 'a;

/// Shows every file and folder of an ISO 9660 image.
///
/// Names are those of Rock Ridge, else of Joliet, else plain ones in lower case.
///
/// # Errors
///
/// The image is damaged, holds links or absurd names, or `visit` failed.
pub fn visit_iso(content: &[u8], visit: &mut Visitor<'_>) -> io::Result<()> {
    let image = IsoImage::open(Cursor::new(content)).map_err(io::Error::other)?;
    let is_joliet = |kind: EntryType| matches!(kind, EntryType::Joliet { .. });
    let joliet = image.root_dirs().iter().find(|root| is_joliet(root.entry_type()));
    let root = if image.supports_rrip() { image.root_dirs().iter().next() } else { None };
    let root = root.or(joliet).copied().unwrap_or(image.root_dir());
    let names = if is_joliet(root.entry_type()) { joliet_name } else { plain_name };
    let mut walk = IsoWalk { image: &image, names, budget: MAX_ENTRIES };
    walk.folder(root.dir_ref(), "", 0, visit)
}

/// Shows every file and folder of a FAT volume.
///
/// # Errors
///
/// As [`visit_iso`].
pub fn visit_fat(content: &[u8], visit: &mut Visitor<'_>) -> io::Result<()> {
    let mut volume = Cursor::new(content);
    let volume = FileSystem::new(ReadOnly(&mut volume), FsOptions::new())?;
    let mut budget = MAX_ENTRIES;
    visit_fat_folder(&volume.root_dir(), "", 0, &mut budget, visit)
}

struct IsoWalk<'a, 'b> {
    image: &'a IsoImage<Cursor<&'b [u8]>>,
    names: fn(&[u8]) -> String,
    budget: usize,
}

impl IsoWalk<'_, '_> {
    fn folder(
        &mut self,
        folder: DirectoryRef,
        path: &str,
        depth: usize,
        visit: &mut Visitor<'_>,
    ) -> io::Result<()> {
        for entry in self.image.open_dir(folder).entries() {
            let entry = entry.map_err(io::Error::other)?;
            if entry.is_special() {
                continue;
            }
            let path = child(path, &self.name(&entry)?, depth, &mut self.budget)?;
            if entry.is_directory() {
                visit(&path, Node::Folder)?;
                let folder = entry.as_dir_ref(self.image).map_err(io::Error::other)?;
                self.folder(folder, &path, depth + 1, visit)?;
            } else {
                let content = self.image.read_file(&entry).map_err(io::Error::other)?;
                visit(&path, Node::File(&mut content.as_slice()))?;
            }
        }
        Ok(())
    }

    fn name(&self, entry: &DirEntry) -> io::Result<String> {
        let Some(rock_ridge) = &entry.rrip else { return Ok((self.names)(entry.name())) };
        if rock_ridge.symlink_target.is_some() {
            return Err(io::Error::other("it holds a symbolic link"));
        }
        Ok(rock_ridge.alternate_name.clone().unwrap_or_else(|| (self.names)(entry.name())))
    }
}

fn visit_fat_folder(
    folder: &fatfs::Dir<'_, ReadOnly<'_, Cursor<&[u8]>>>,
    path: &str,
    depth: usize,
    budget: &mut usize,
    visit: &mut Visitor<'_>,
) -> io::Result<()> {
    for entry in folder.iter() {
        let entry = entry?;
        let name = entry.file_name();
        if name == "." || name == ".." {
            continue;
        }
        let path = child(path, &name, depth, budget)?;
        if entry.is_dir() {
            visit(&path, Node::Folder)?;
            visit_fat_folder(&entry.to_dir(), &path, depth + 1, budget, visit)?;
        } else {
            visit(&path, Node::File(&mut entry.to_file()))?;
        }
    }
    Ok(())
}

/// The path of `name` in `folder`, when both are as they should be (S47).
fn child(folder: &str, name: &str, depth: usize, budget: &mut usize) -> io::Result<String> {
    *budget = budget.checked_sub(1).ok_or_else(|| io::Error::other("it holds too many files"))?;
    if depth >= MAX_DEPTH {
        return Err(io::Error::other("its folders are nested too deeply"));
    }
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\\', '\0']) {
        return Err(io::Error::other(format!("{name:?} in it is no file name")));
    }
    Ok(if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") })
}

fn joliet_name(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    without_version(&String::from_utf16_lossy(&units)).to_owned()
}

fn plain_name(bytes: &[u8]) -> String {
    without_version(&String::from_utf8_lossy(bytes)).trim_end_matches('.').to_lowercase()
}

/// A name without the `;1` that ISO 9660 puts behind files.
fn without_version(name: &str) -> &str {
    match name.rsplit_once(';') {
        Some((name, version)) if version.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    }
}
