//! Media that BMCs may read now.
//!
//! Each has a name of its own for one boot: 128 bits that nobody can guess, since the parameters of a machine are in it,
//! and `.iso` at the end, without which some BMCs refuse it (F56). What is known of a medium is kept in a small file, so
//! that a conductor that was killed goes on serving it. The record of its reading is the proof that the BMC took it:
//! several say that a medium is inserted and never look at it.

use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::Node;
use farrier_media::Overlay;
use farrier_media::boot_iso::{self, Additions, BootIsoError};
use rand::Rng;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// A medium cannot be put on the shelf.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    /// The ISO cannot be used.
    #[error("{path}: {source}")]
    Iso {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: BootIsoError,
    },
    /// The folder cannot be used.
    #[error("{path} cannot be used for what is kept about virtual media: {source}")]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl From<ShelfError> for InterfaceError {
    fn from(error: ShelfError) -> Self {
        Self::driver(error)
    }
}

/// How much of a medium was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    /// Requests.
    pub requests: u64,
    /// Bytes that were sent.
    pub bytes: u64,
}

/// The shelf. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Shelf(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    url: String,
    media: Mutex<HashMap<String, Published>>,
}

#[derive(Debug, Clone)]
struct Published {
    node: Uuid,
    iso: PathBuf,
    /// Nothing for an ISO that is read as it is.
    additions: Option<Additions>,
    reads: Reads,
}

/// A medium, as a BMC reads it.
#[derive(Debug)]
pub struct Medium {
    file: File,
    added: Option<Overlay>,
    length_of_file: u64,
}

impl Shelf {
    /// What was on the shelf whose notes are in a folder. BMCs reach it below a URL.
    ///
    /// # Errors
    ///
    /// [`ShelfError::Folder`].
    pub fn open(folder: PathBuf, url: &str) -> Result<Self, ShelfError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| ShelfError::Folder { path, source }
        };
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let mut media = HashMap::new();
        for entry in folder.read_dir().map_err(failed(&folder))? {
            let note = entry.map_err(failed(&folder))?.path();
            let name = note.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            match fs::read(&note).ok().and_then(|text| Published::read(&text)) {
                Some(published) => drop(media.insert(name, published)),
                None => tracing::warn!("{} tells of no virtual medium and is left alone", note.display()),
            }
        }
        let url = url.trim_end_matches('/').to_owned();
        Ok(Self(Arc::new(Inner { folder, url, media: Mutex::new(media) })))
    }

    /// Puts an ISO on the shelf for a node's machine, in place of what was there for it, and tells its URL. Without additions
    /// it is read as it is.
    ///
    /// # Errors
    ///
    /// [`ShelfError`].
    pub fn publish(
        &self,
        node: &Node,
        iso: &Path,
        additions: Option<&Additions>,
    ) -> Result<String, ShelfError> {
        Medium::open(iso, additions)?;
        self.withdraw(node)?;
        let name = format!("{:032x}.iso", rand::rng().random::<u128>());
        let (iso, additions) = (iso.to_owned(), additions.cloned());
        let published = Published { node: node.uuid, iso, additions, reads: Reads::default() };
        let note = self.note(&name);
        published.write(&note).map_err(|source| ShelfError::Folder { path: note, source })?;
        self.media().insert(name.clone(), published);
        Ok(format!("{}/{name}", self.0.url))
    }

    /// Takes what is there for a node from the shelf, and tells how it was read; nothing where nothing was there.
    ///
    /// # Errors
    ///
    /// [`ShelfError::Folder`].
    pub fn withdraw(&self, node: &Node) -> Result<Option<Reads>, ShelfError> {
        let names: Vec<_> = {
            let media = self.media();
            media.iter().filter(|(_, one)| one.node == node.uuid).map(|(name, _)| name.clone()).collect()
        };
        let mut reads = None;
        for name in names {
            let path = self.note(&name);
            match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(ShelfError::Folder { path, source });
                }
                _ => reads = self.media().remove(&name).map(|published| published.reads),
            }
        }
        Ok(reads)
    }

    /// How what is there for a node was read; nothing where nothing is there.
    pub fn reads(&self, node: &Node) -> Option<Reads> {
        self.media().values().find(|published| published.node == node.uuid).map(|published| published.reads)
    }

    /// The medium with a name; nothing where there is none. It may touch the disk.
    pub fn medium(&self, name: &str) -> Option<Medium> {
        let Published { iso, additions, node, .. } = self.media().get(name).cloned()?;
        let medium = Medium::open(&iso, additions.as_ref());
        medium.inspect_err(|error| tracing::error!(%node, "a virtual medium is gone: {error}")).ok()
    }

    /// Takes note that bytes of a medium are sent.
    pub fn note_reading(&self, name: &str, bytes: u64) {
        if let Some(published) = self.media().get_mut(name) {
            if published.reads.requests == 0 {
                tracing::info!(node = %published.node, "the BMC reads its virtual medium");
            }
            published.reads.requests += 1;
            published.reads.bytes += bytes;
        }
    }

    fn note(&self, name: &str) -> PathBuf {
        self.0.folder.join(format!("{name}.json"))
    }

    fn media(&self) -> MutexGuard<'_, HashMap<String, Published>> {
        self.0.media.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Published {
    /// Writes the note, which nobody else may read: the token of an agent may be among the parameters.
    fn write(&self, note: &Path) -> io::Result<()> {
        let parameters = self.additions.as_ref().map(|additions| additions.parameters.to_string());
        let network_data = self.additions.as_ref().and_then(|additions| additions.network_data.as_ref());
        let text = json!({"node": self.node, "iso": self.iso, "parameters": parameters, "network_data": network_data});
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(note)?
            .write_all(text.to_string().as_bytes())
    }

    fn read(text: &[u8]) -> Option<Self> {
        let note: Value = serde_json::from_slice(text).ok()?;
        let network_data = note["network_data"].as_str().map(str::to_owned);
        let additions = match note["parameters"].as_str() {
            Some(parameters) => Some(Additions { parameters: parameters.parse().ok()?, network_data }),
            None => None,
        };
        let (node, iso) = (note["node"].as_str()?.parse().ok()?, note["iso"].as_str()?.into());
        Some(Self { node, iso, additions, reads: Reads::default() })
    }
}

impl Medium {
    /// An ISO, with what it gets for one boot.
    ///
    /// # Errors
    ///
    /// [`ShelfError::Iso`].
    pub fn open(path: &Path, additions: Option<&Additions>) -> Result<Self, ShelfError> {
        let failed = |source: BootIsoError| ShelfError::Iso { path: path.to_owned(), source };
        let mut file = File::open(path).map_err(|error| failed(error.into()))?;
        let added =
            additions.map(|additions| boot_iso::overlay(&mut file, additions).map_err(failed)).transpose()?;
        let length_of_file = file.metadata().map_err(|error| failed(error.into()))?.len();
        Ok(Self { file, added, length_of_file })
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.added.as_ref().map_or(self.length_of_file, Overlay::length)
    }

    /// Reads a part of it, which may be shorter than asked for at its end.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn read_at(&self, place: u64, bytes: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.length().saturating_sub(place)).unwrap_or(usize::MAX);
        let mut part = vec![0; bytes.min(left)];
        let of_file = self.length_of_file.saturating_sub(place);
        let of_file = part.len().min(usize::try_from(of_file).unwrap_or(usize::MAX));
        self.file.read_exact_at(&mut part[..of_file], place)?;
        if let Some(added) = &self.added {
            added.lay_over(place, &mut part);
        }
        Ok(part)
    }
}
