//! An image that lies in the ramdisk itself, such as on mounted virtual media.

use crate::error::Error;
use crate::qcow2::ReadAt;
use reqwest::Url;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

/// A local file, being read.
pub(crate) struct LocalFile {
    file: File,
    /// The URL as errors show it.
    name: String,
    length: u64,
}

impl LocalFile {
    /// Opens a regular file; a device or a pipe could be read for ever (S45).
    pub(super) fn open(url: &str) -> Result<Self, Error> {
        let unreachable = |reason: String| Error::LocalFile { url: url.to_owned(), reason };
        let path = Url::parse(url).ok().and_then(|url| url.to_file_path().ok());
        let path = path.ok_or_else(|| unreachable("give file:///PATH".to_owned()))?;
        // A pipe without a writer must not block the open.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nix::libc::O_NONBLOCK)
            .open(&path)
            .map_err(|error| unreachable(error.to_string()))?;
        let metadata = file.metadata().map_err(|error| unreachable(error.to_string()))?;
        if !metadata.is_file() {
            return Err(unreachable("it is no regular file".to_owned()));
        }
        Ok(Self { file, name: url.to_owned(), length: metadata.len() })
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Fills the buffer as far as the file goes.
    pub(super) fn fill(&mut self, mut buffer: &mut [u8]) -> Result<usize, Error> {
        let wanted = buffer.len();
        while !buffer.is_empty() {
            match self.file.read(buffer) {
                Ok(0) => break,
                Ok(count) => buffer = &mut buffer[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(&error)),
            }
        }
        Ok(wanted - buffer.len())
    }

    /// The same file, to be read out of order.
    pub(super) fn reader(&self) -> Option<Self> {
        let file = self.file.try_clone().ok()?;
        Some(Self { file, name: self.name.clone(), length: self.length })
    }

    pub(super) fn cancelled(&self) -> Error {
        Error::Cancelled { url: self.name.clone() }
    }

    fn failed(&self, error: &io::Error) -> Error {
        Error::LocalFile { url: self.name.clone(), reason: error.to_string() }
    }
}

impl ReadAt for LocalFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.file.read_exact_at(buffer, offset).map_err(|error| self.failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s45_only_regular_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("my image.raw");
        std::fs::write(&image, b"content").unwrap();
        let url = Url::from_file_path(&image).unwrap().to_string();
        let mut file = LocalFile::open(&url).unwrap();
        let mut buffer = [0; 16];
        assert_eq!((file.length(), file.fill(&mut buffer).unwrap()), (7, 7));
        assert_eq!(&buffer[..7], b"content");
        file.reader().unwrap().read_at(&mut buffer[..3], 4).unwrap();
        assert_eq!(&buffer[..3], b"ent");
        for (url, reason) in [
            ("file:///dev/zero", "no regular file"),
            ("file:///", "no regular file"),
            ("file://elsewhere/image", "file:///PATH"),
            ("file:///no/such/image", "No such file"),
        ] {
            let error = LocalFile::open(url).err().unwrap().to_string();
            assert!(error.contains(reason) && error.contains(url), "{error}");
        }
    }
}
