//! A folder that another server sends boot files from (`[pxe]tftp_root`, `[deploy]http_root`): what is ours in it, and
//! nothing else.
//!
//! A node has a folder there, with a mark that identifies it as ours, and links to the configuration in
//! it. The folder comes before its links and goes after them, and each file takes the place of an older one at once; so a
//! machine never loads half of anything, and what a killed conductor leaves is found by its mark or by its name.

use super::tree::Tree;
use crate::netboot::names::Name;
use farrier_conductor::interfaces::{BootFile, InterfaceError};
use std::collections::HashMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use uuid::Uuid;

/// The file that marks a folder as ours.
const MARK: &str = ".farrier";
/// What names begin with that are made or removed right now.
const UNFINISHED: &str = ".farrier-";
/// The folders with links, beside the root itself.
const FOLDERS: [&str; 2] = ["pxelinux.cfg", "grub"];
/// The permission of every user for files and folders (`[pxe]file_permission`): read.
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;

/// A boot file for another server cannot be written or removed.
#[derive(Debug, thiserror::Error)]
pub enum BootRootError {
    /// The system refuses.
    #[error("{path}: {source}; check that the folder for the other server exists and may be written")]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something is there that was not made by a conductor of this kind.
    #[error("{0} belongs to another program; move it away, or give this conductor a folder of its own")]
    Foreign(PathBuf),
}

impl From<BootRootError> for InterfaceError {
    fn from(error: BootRootError) -> Self {
        Self::driver(error)
    }
}

/// The folder.
#[derive(Debug)]
pub struct BootRoot {
    root: PathBuf,
    /// The time of the last write to the files of a node. One writer has the lock at a time.
    written: Mutex<HashMap<Uuid, Instant>>,
}

impl BootRoot {
    /// Takes a folder that there is, and removes what a killed conductor was about to make or remove.
    ///
    /// # Errors
    ///
    /// [`BootRootError::File`].
    pub fn open(root: &Path) -> Result<Self, BootRootError> {
        let root = root.canonicalize().map_err(failed(root))?;
        for folder in FOLDERS {
            make_folder(&root.join(folder))?;
        }
        for folder in link_folders(&root) {
            for path in entries(&folder)?.filter(|path| name_of(path).starts_with(UNFINISHED)) {
                remove_unfinished(&path)?;
            }
        }
        Ok(Self { root, written: Mutex::default() })
    }

    /// Writes a file that is the same for all machines, with the folders that it is in.
    ///
    /// # Errors
    ///
    /// [`BootRootError`].
    pub fn share(&self, name: &str, file: &BootFile) -> Result<(), BootRootError> {
        let _lock = self.lock();
        let place = self.root.join(name);
        let folders: Vec<_> = place.ancestors().skip(1).take_while(|folder| *folder != self.root).collect();
        folders.into_iter().rev().try_for_each(make_folder)?;
        put(&place, file)
    }

    /// Whether a file of this name exists, of the conductor or of the site.
    pub fn has(&self, name: &str) -> bool {
        fs::symlink_metadata(self.root.join(name)).is_ok()
    }

    /// Replaces the files of a node with these, or deletes them, for the worker of the node.
    ///
    /// # Errors
    ///
    /// [`BootRootError`].
    pub fn write(&self, node: Uuid, tree: Option<&Tree>) -> Result<(), BootRootError> {
        let mut written = self.lock();
        written.insert(node, Instant::now());
        self.put(node, tree)
    }

    /// The same by a record that was read at this time; nothing happens when it was written later.
    ///
    /// # Errors
    ///
    /// [`BootRootError`].
    pub fn refresh(&self, node: Uuid, tree: Option<&Tree>, seen_at: Instant) -> Result<(), BootRootError> {
        let mut written = self.lock();
        if written.get(&node).is_some_and(|written| *written >= seen_at) {
            return Ok(());
        }
        written.remove(&node);
        self.put(node, tree)
    }

    /// The nodes that have files here.
    ///
    /// # Errors
    ///
    /// [`BootRootError::File`].
    pub fn nodes(&self) -> Result<Vec<Uuid>, BootRootError> {
        let ours = entries(&self.root)?.filter(|path| is_ours(path));
        Ok(ours.filter_map(|path| name_of(&path).parse().ok()).collect())
    }

    fn put(&self, node: Uuid, tree: Option<&Tree>) -> Result<(), BootRootError> {
        let folder = self.root.join(node.to_string());
        let links = tree.map(|tree| &*tree.links).unwrap_or_default();
        if let Some(tree) = tree {
            self.make(&folder)?;
            for (name, file) in &tree.files {
                put(&self.root.join(name), file)?;
            }
        }
        self.link(node, links)?;
        match tree {
            Some(tree) => self.leave_only(&folder, tree),
            None => self.remove(&folder),
        }
    }

    /// Makes a folder with its mark, unless it is there.
    fn make(&self, folder: &Path) -> Result<(), BootRootError> {
        match fs::symlink_metadata(folder) {
            Ok(_) if is_ours(folder) => return Ok(()),
            Ok(_) => return Err(BootRootError::Foreign(folder.to_owned())),
            Err(_) => {}
        }
        let unfinished = beside(folder)?;
        fs::create_dir(&unfinished).map_err(failed(&unfinished))?;
        let made = File::create(unfinished.join(MARK))
            .and_then(|_| fs::set_permissions(&unfinished, Permissions::from_mode(FOLDER_MODE)))
            .and_then(|()| fs::rename(&unfinished, folder));
        made.map_err(failed(folder))
    }

    /// Has exactly these links lead to the configuration of a node.
    fn link(&self, node: Uuid, links: &[String]) -> Result<(), BootRootError> {
        for name in links {
            let (link, up) = (self.root.join(name), if name.contains('/') { "../" } else { "" });
            let target = format!("{up}{}", config(node));
            match fs::symlink_metadata(&link) {
                Ok(found) if !found.is_symlink() => return Err(BootRootError::Foreign(link)),
                Ok(_) if fs::read_link(&link).is_ok_and(|found| found == Path::new(&target)) => continue,
                _ => {}
            }
            let unfinished = beside(&link)?;
            let linked = symlink(&target, &unfinished).and_then(|()| fs::rename(&unfinished, &link));
            linked.map_err(failed(&link))?;
        }
        let wanted: Vec<_> = links.iter().map(|name| self.root.join(name)).collect();
        for folder in link_folders(&self.root) {
            for link in entries(&folder)?.filter(|link| !wanted.contains(link) && leads_to(link, node)) {
                fs::remove_file(&link).map_err(failed(&link))?;
            }
        }
        Ok(())
    }

    /// Removes what is in a folder and not in a tree.
    fn leave_only(&self, folder: &Path, tree: &Tree) -> Result<(), BootRootError> {
        let wanted: Vec<_> = tree.files.iter().map(|(name, _)| self.root.join(name)).collect();
        for path in entries(folder)?.filter(|path| name_of(path) != MARK && !wanted.contains(path)) {
            remove_unfinished(&path)?;
        }
        Ok(())
    }

    /// Removes a folder, which is told from others by its name from the moment on that something in it is gone.
    fn remove(&self, folder: &Path) -> Result<(), BootRootError> {
        if !is_ours(folder) {
            return Ok(());
        }
        let unfinished = beside(folder)?;
        fs::rename(folder, &unfinished).map_err(failed(folder))?;
        remove_unfinished(&unfinished)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Instant>> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The configuration of a node, below the root.
fn config(node: Uuid) -> String {
    format!("{node}/config")
}

/// Whether a link is one to the configuration of a node, by a name that loaders ask for.
fn leads_to(link: &Path, node: Uuid) -> bool {
    let Ok(target) = fs::read_link(link) else { return false };
    let parent = link.parent().map(name_of).unwrap_or_default();
    let asked = [name_of(link), format!("{parent}/{}", name_of(link))];
    let target = target.to_string_lossy();
    asked.iter().any(|name| Name::parse(name).is_some())
        && target.strip_prefix("../").unwrap_or(&target) == config(node)
}

/// Whether a folder, no link to one, has the mark.
fn is_ours(folder: &Path) -> bool {
    let is =
        |path: &Path, is: fn(&fs::Metadata) -> bool| fs::symlink_metadata(path).is_ok_and(|found| is(&found));
    is(folder, fs::Metadata::is_dir) && is(&folder.join(MARK), fs::Metadata::is_file)
}

/// The folders where links may be.
fn link_folders(root: &Path) -> Vec<PathBuf> {
    FOLDERS.iter().map(|name| root.join(name)).chain([root.to_owned()]).collect()
}

fn make_folder(folder: &Path) -> Result<(), BootRootError> {
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(BootRootError::Foreign(folder.to_owned())),
        Err(_) => fs::create_dir(folder)
            .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(FOLDER_MODE)))
            .map_err(failed(folder)),
    }
}

/// Replaces a file with this one. A file of the host is linked if every user may read it and the file system is the same,
/// and else copied with its time, by which a changed one is known.
fn put(place: &Path, file: &BootFile) -> Result<(), BootRootError> {
    match fs::symlink_metadata(place) {
        Ok(found) if !found.is_file() => return Err(BootRootError::Foreign(place.to_owned())),
        Ok(found) if is_same(place, &found, file) => return Ok(()),
        _ => {}
    }
    let unfinished = beside(place)?;
    let written = match file {
        BootFile::Text(text) => fs::write(&unfinished, text).and_then(|()| readable(&unfinished)),
        BootFile::File(source) => link_or_copy(source, &unfinished),
    };
    let moved = written.and_then(|()| fs::rename(&unfinished, place));
    moved.inspect_err(|_| fs::remove_file(&unfinished).unwrap_or_default()).map_err(failed(place))
}

fn is_same(place: &Path, found: &fs::Metadata, file: &BootFile) -> bool {
    match file {
        BootFile::Text(text) => {
            found.len() == text.len() as u64 && fs::read(place).is_ok_and(|old| old == text.as_bytes())
        }
        BootFile::File(source) => fs::metadata(source).is_ok_and(|source| {
            let is_link = (source.dev(), source.ino()) == (found.dev(), found.ino());
            is_link || found.len() == source.len() && found.modified().ok() == source.modified().ok()
        }),
    }
}

fn link_or_copy(source: &Path, place: &Path) -> io::Result<()> {
    // A link is not what is linked to.
    let source = &source.canonicalize()?;
    let found = fs::metadata(source)?;
    let is_readable = found.permissions().mode() & 0o004 != 0;
    if is_readable && fs::hard_link(source, place).is_ok() {
        return Ok(());
    }
    fs::copy(source, place)?;
    readable(place)?;
    File::options().write(true).open(place)?.set_modified(found.modified()?)
}

fn readable(file: &Path) -> io::Result<()> {
    fs::set_permissions(file, Permissions::from_mode(FILE_MODE))
}

/// Removes what is ours whatever it is; links are not followed.
fn remove_unfinished(path: &Path) -> Result<(), BootRootError> {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let removed = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map_err(failed(path))
}

fn entries(folder: &Path) -> Result<impl Iterator<Item = PathBuf>, BootRootError> {
    let found = fs::read_dir(folder).map_err(failed(folder))?;
    Ok(found.filter_map(Result::ok).map(|entry| entry.path()))
}

/// Where something is made before it takes its place. What is there from an earlier time goes, since it may be a link to
/// an image, which is never written to.
fn beside(place: &Path) -> Result<PathBuf, BootRootError> {
    let unfinished = place.with_file_name(format!("{UNFINISHED}{}", name_of(place)));
    if fs::symlink_metadata(&unfinished).is_ok() {
        remove_unfinished(&unfinished)?;
    }
    Ok(unfinished)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn failed(path: &Path) -> impl Fn(io::Error) -> BootRootError {
    let path = path.to_owned();
    move |source| BootRootError::File { path: path.clone(), source }
}

#[cfg(test)]
mod tests;
