//! Files below a folder that may hold anything, symbolic links among them.
//!
//! Whoever made a file system that is mounted decides where its links lead. Every path here is resolved by
//! the kernel as if the folder were the root (`openat2(2)`, `RESOLVE_IN_ROOT`), so that no link and no `..`
//! leads out of it.

use nix::errno::Errno;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::{Mode, fchmod, mkdirat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, fchown, unlinkat};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Permissions of new folders, and of new files.
const FOLDER: Mode = Mode::from_bits_truncate(0o755);
const FILE: Mode = Mode::from_bits_truncate(0o644);

/// A folder that stands for the root.
#[derive(Debug)]
pub struct Rooted(OwnedFd);

/// Who owns a file, and who may do what with it; what is not given stays as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ownership {
    /// Number of the user.
    pub owner: Option<u32>,
    /// Number of the group.
    pub group: Option<u32>,
    /// Permissions.
    pub mode: Option<u32>,
}

impl Rooted {
    /// Takes a folder of this system as the root.
    ///
    /// # Errors
    ///
    /// It is no folder, or cannot be opened.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let options = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        Ok(Self(nix::fcntl::open(folder, options, Mode::empty())?))
    }

    /// Whether there is a folder of this name.
    ///
    /// # Errors
    ///
    /// Whatever else than its absence keeps it from being examined.
    pub fn has_folder(&self, path: &Path) -> io::Result<bool> {
        match self.folder(path) {
            Ok(_) => Ok(true),
            Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes the folders that are missing on the way to `path`; the last one, if it is made, gets the
    /// permissions `mode`.
    ///
    /// # Errors
    ///
    /// Something else is in the way, or the file system refuses.
    pub fn make_folders(&self, path: &Path, mode: Option<u32>) -> io::Result<()> {
        let mut made = PathBuf::new();
        for name in path {
            let parent = self.folder(&made)?;
            made.push(name);
            match self.folder(&made) {
                Ok(_) => {}
                Err(Errno::ENOENT) => {
                    mkdirat(&parent, name, FOLDER)?;
                    // Past the umask.
                    let mode = mode.filter(|_| made == path).map_or(FOLDER, Mode::from_bits_truncate);
                    fchmod(self.resolve(&made, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty())?, mode)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Opens a regular file to be rewritten; it is made where there is none.
    ///
    /// # Errors
    ///
    /// Its folder is missing, something else than a regular file is there, or the file system refuses.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        // Not to wait for somebody who reads from a pipe, nor to take a terminal.
        let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
        let file = File::from(self.resolve(path, flags, FILE)?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is no regular file"));
        }
        file.set_len(0)?;
        Ok(file)
    }

    /// Removes a file; that there is none is fine.
    ///
    /// # Errors
    ///
    /// It is a folder, or the file system refuses.
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidFilename.into());
        };
        let outcome =
            self.folder(parent).and_then(|parent| unlinkat(parent, name, UnlinkatFlags::NoRemoveDir));
        match outcome {
            Ok(()) | Err(Errno::ENOENT | Errno::ENOTDIR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn folder(&self, path: &Path) -> nix::Result<OwnedFd> {
        self.resolve(path, OFlag::O_PATH | OFlag::O_DIRECTORY, Mode::empty())
    }

    fn resolve(&self, path: &Path, flags: OFlag, mode: Mode) -> nix::Result<OwnedFd> {
        let within = ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_MAGICLINKS;
        let within = within | ResolveFlag::RESOLVE_NO_XDEV;
        let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC).mode(mode).resolve(within);
        // The folder itself has no name in it.
        openat2(&self.0, if path.as_os_str().is_empty() { Path::new(".") } else { path }, how)
    }
}

impl Ownership {
    /// Gives a file to its owner.
    ///
    /// # Errors
    ///
    /// The file system has no owners or permissions, or not these.
    pub fn apply(&self, file: &File) -> io::Result<()> {
        if self.owner.is_some() || self.group.is_some() {
            fchown(file, self.owner.map(Uid::from_raw), self.group.map(Gid::from_raw))?;
        }
        // Last, because a change of the owner takes the set-user-ID bit away.
        if let Some(mode) = self.mode {
            fchmod(file, Mode::from_bits_truncate(mode))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn s04_no_link_leads_out_of_the_root() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("root");
        fs::create_dir(&folder).unwrap();
        fs::write(outside.path().join("secret"), "kept").unwrap();
        symlink(outside.path(), folder.join("absolute")).unwrap();
        symlink("..", folder.join("upwards")).unwrap();
        symlink("/proc/self/root", folder.join("magic")).unwrap();
        let root = Rooted::open(&folder).unwrap();
        for path in ["absolute/secret", "../secret", "upwards/../../secret", "magic/etc/hostname"] {
            let path = Path::new(path);
            if let Ok(mut file) = root.create(path) {
                file.write_all(b"new").unwrap();
            }
            root.remove(path).ok();
        }
        assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "kept");
        assert!(!folder.join("secret").exists(), "it was made and removed within the root");
    }

    #[test]
    fn folders_are_made_and_only_the_last_one_gets_the_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let root = Rooted::open(folder.path()).unwrap();
        fs::create_dir(folder.path().join("run")).unwrap();
        symlink("/run", folder.path().join("var")).unwrap();
        assert!(root.has_folder(Path::new("var")).unwrap());
        assert!(!root.has_folder(Path::new("etc")).unwrap());
        root.make_folders(Path::new("var/a/b"), Some(0o700)).unwrap();
        root.make_folders(Path::new("var/a"), Some(0o700)).unwrap();
        let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!([mode("run/a"), mode("run/a/b")], [0o755, 0o700]);
        fs::write(folder.path().join("file"), "").unwrap();
        assert!(root.make_folders(Path::new("file/x"), None).is_err());
    }

    #[test]
    fn a_file_is_replaced_and_what_is_no_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let root = Rooted::open(folder.path()).unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "a long text").unwrap();
        let mut opened = root.create(Path::new("file")).unwrap();
        opened.write_all(b"short").unwrap();
        let ownership = Ownership { mode: Some(0o4750), ..Ownership::default() };
        ownership.apply(&opened).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "short");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o4750);
        nix::unistd::mkfifo(&folder.path().join("pipe"), FILE).unwrap();
        for path in ["pipe", ".", "missing/file"] {
            assert!(root.create(Path::new(path)).is_err(), "{path}");
        }
        for (path, is_fine) in [("file", true), ("file", true), ("missing/file", true), (".", false)] {
            assert_eq!(root.remove(Path::new(path)).is_ok(), is_fine, "{path}");
        }
        assert!(!file.exists());
    }
}
