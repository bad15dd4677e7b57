//! EFI variables as files of efivarfs.

#![allow(unsafe_code)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Attributes of variables that outlive a reboot and are seen by firmware and system alike.
pub const PERSISTENT: u32 = 0b111;

const EFIVARFS: &str = "/sys/firmware/efi/efivars";
const FS_IMMUTABLE_FL: libc::c_int = 0x10;
const ATTRIBUTE_BYTES: usize = 4;

mod request {
    // The kernel declares these with `long` and reads and writes `int`.
    nix::ioctl_read_bad!(get_flags, nix::request_code_read!(b'f', 1, size_of::<libc::c_long>()), libc::c_int);
    nix::ioctl_write_ptr_bad!(
        set_flags,
        nix::request_code_write!(b'f', 2, size_of::<libc::c_long>()),
        libc::c_int
    );
}

/// A variable's value and attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Attribute bits of the UEFI specification.
    pub attributes: u32,
    /// Value without the attributes.
    pub data: Vec<u8>,
}

/// The variables of this machine's firmware, or a directory that stands for them.
#[derive(Debug, Clone)]
pub struct EfiVariables {
    directory: PathBuf,
}

impl EfiVariables {
    /// The firmware's variables; nothing when the machine was not booted by UEFI or efivarfs is not mounted.
    pub fn system() -> Option<Self> {
        let has_entries = fs::read_dir(EFIVARFS).ok()?.next().is_some();
        has_entries.then(|| Self::at(EFIVARFS))
    }

    /// The variables kept in `directory`.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// Where the variables are kept.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Names of all variables, `<name>-<vendor GUID>`, sorted.
    ///
    /// # Errors
    ///
    /// The error of reading the directory.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            // Names are ASCII by the specification; whatever is not is none of ours.
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }

    /// Reads a variable; nothing when it does not exist. An empty file is a variable that the firmware has not:
    /// one that was never written, or could not be.
    ///
    /// # Errors
    ///
    /// The error of reading the file, or `InvalidData` when it is too short to hold attributes.
    pub fn read(&self, name: &str) -> io::Result<Option<Variable>> {
        let content = match fs::read(self.directory.join(name)) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        if content.is_empty() {
            return Ok(None);
        }
        let Some((attributes, data)) = content.split_first_chunk::<ATTRIBUTE_BYTES>() else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("variable {name} has no attributes"),
            ));
        };
        Ok(Some(Variable { attributes: u32::from_le_bytes(*attributes), data: data.to_vec() }))
    }

    /// Creates or replaces a variable.
    ///
    /// # Errors
    ///
    /// The error of opening or writing the file; `ENOSPC` when the firmware's store is full.
    pub fn write(&self, name: &str, variable: &Variable) -> io::Result<()> {
        let path = self.directory.join(name);
        clear_immutable(&path)?;
        let mut content = variable.attributes.to_le_bytes().to_vec();
        content.extend_from_slice(&variable.data);
        // No O_TRUNC: efivarfs replaces the value by what one single write() brings.
        let mut file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
        let written = file.write(&content)?;
        if written != content.len() {
            return Err(io::Error::new(
                io::ErrorKind::WriteZero,
                format!("variable {name} was written in part"),
            ));
        }
        if file.metadata()?.len() > content.len() as u64 {
            // Only on an ordinary file system, where a longer old value leaves its tail.
            file.set_len(content.len() as u64)?;
        }
        Ok(())
    }

    /// Deletes a variable; one that does not exist is as good as deleted.
    ///
    /// # Errors
    ///
    /// The error of removing the file.
    pub fn delete(&self, name: &str) -> io::Result<()> {
        let path = self.directory.join(name);
        clear_immutable(&path)?;
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Clears the flag by which efivarfs guards variables against careless removal.
fn clear_immutable(path: &Path) -> io::Result<()> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut flags: libc::c_int = 0;
    // SAFETY: FS_IOC_GETFLAGS stores one int.
    match unsafe { request::get_flags(file.as_raw_fd(), &raw mut flags) } {
        Ok(_) if flags & FS_IMMUTABLE_FL != 0 => {}
        // File systems without such flags have nothing to clear.
        Ok(_) | Err(nix::Error::ENOTTY | nix::Error::EOPNOTSUPP) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    flags &= !FS_IMMUTABLE_FL;
    // SAFETY: FS_IOC_SETFLAGS reads one int, which outlives the call.
    unsafe { request::set_flags(file.as_raw_fd(), &flags) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_written_read_listed_and_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let variables = EfiVariables::at(directory.path());
        let long = Variable { attributes: PERSISTENT, data: b"a long value".to_vec() };
        let short = Variable { attributes: PERSISTENT, data: b"short".to_vec() };
        for value in [&long, &short] {
            variables.write("Boot0001-guid", value).unwrap();
            assert_eq!(variables.read("Boot0001-guid").unwrap().as_ref(), Some(value));
        }
        assert_eq!(fs::read(directory.path().join("Boot0001-guid")).unwrap(), b"\x07\0\0\0short");
        assert_eq!(variables.names().unwrap(), ["Boot0001-guid"]);
        variables.delete("Boot0001-guid").unwrap();
        variables.delete("Boot0001-guid").unwrap();
        assert_eq!(variables.read("Boot0001-guid").unwrap(), None);
    }

    #[test]
    fn a_variable_without_attributes_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("Bad-guid"), [1, 2]).unwrap();
        assert!(EfiVariables::at(directory.path()).read("Bad-guid").is_err());
    }

    #[test]
    fn x27_an_empty_variable_is_none() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("Empty-guid"), []).unwrap();
        assert_eq!(EfiVariables::at(directory.path()).read("Empty-guid").unwrap(), None);
    }
}
