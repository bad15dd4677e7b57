//! Media that BMCs may read now.
//!
//! Each has a name of its own for one boot: 128 bits that nobody can guess, since the parameters of a machine are in it,
//! and `.iso` at the end, without which some BMCs refuse it (F56). What is known of a medium is kept in a small file, so
//! that a conductor that was killed goes on serving it. The record of its reading is the proof that the BMC took it:
//! several say that a medium is inserted and never look at it.

use super::error::MediumError;
use super::iso_spec::{CopyLimits, IsoSpec, Marks, MediumBuilder};
use super::loaders::MediaLoaders;
use super::source;
use super::virtual_medium::Medium;
use crate::netboot::images::Image;
use farrier_conductor::inventory::bmc_addresses;
use farrier_conductor::model::{BootDevice, Node};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// How many media stay open: a BMC asks often, and for little.
const MOST_OPEN: usize = 64;
/// Most parts of a medium that are copied.
const MOST_COPIES: usize = 3;
/// How the files end that hold copies and notes.
const COPY: &str = "copy";
const NOTE: &str = "json";

/// How much of a medium was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    /// Requests.
    pub requests: u64,
    /// Bytes that were sent.
    pub bytes: u64,
}

/// The published media. Clones are the same ones.
#[derive(Debug, Clone)]
pub struct PublishedMedia(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    url: String,
    builder: MediumBuilder,
    media: Mutex<HashMap<String, PublishedMedium>>,
    /// The last that were read, the very last at the end.
    open: Mutex<Vec<(String, Arc<Medium>)>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct PublishedMedium {
    node: Uuid,
    drive: BootDevice,
    #[serde(rename = "recipe")]
    spec: IsoSpec,
    #[serde(default)]
    marks: Marks,
    /// The addresses of the BMC; none where they are not known.
    #[serde(default)]
    bmc: BTreeSet<IpAddr>,
    /// Whether it was logged that others read the medium.
    #[serde(skip)]
    is_logged: bool,
    /// How much of it was read; nothing where another process published it and nobody has read it since.
    #[serde(skip)]
    reads: Option<Reads>,
}

/// A medium that is being built, by its name. Unless it is published nothing of it is left, also where an abort cancels
/// the caller.
struct UnpublishedMedium<'a> {
    media: &'a PublishedMedia,
    name: String,
}

impl<'a> UnpublishedMedium<'a> {
    fn new(media: &'a PublishedMedia, drive: BootDevice) -> Self {
        Self { media, name: name(drive) }
    }

    /// It is made, and its copies stay.
    fn made(mut self) -> String {
        std::mem::take(&mut self.name)
    }
}

impl Drop for UnpublishedMedium<'_> {
    fn drop(&mut self) {
        if self.name.is_empty() {
            return;
        }
        if let Err(error) = self.media.remove(&self.name) {
            tracing::warn!("something is left of a medium that was not made: {error}");
        }
    }
}

impl PublishedMedia {
    /// The media that are recorded in a folder. BMCs reach them below a URL.
    ///
    /// # Errors
    ///
    /// [`MediumError::Folder`], [`MediumError::Client`].
    pub fn open(folder: PathBuf, url: &str, loaders: MediaLoaders) -> Result<Self, MediumError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            |source| MediumError::Folder { path, source }
        };
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let (mut media, mut copies) = (HashMap::new(), Vec::new());
        for entry in folder.read_dir().map_err(failed(&folder))? {
            let file = entry.map_err(failed(&folder))?.path();
            if file.extension().is_some_and(|kind| kind == COPY) {
                copies.push(file);
                continue;
            }
            let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
            match fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()) {
                Some(published) => drop(media.insert(name, published)),
                None => {
                    tracing::warn!("{} does not describe a virtual medium, and is ignored", file.display())
                }
            }
        }
        let url = url.trim_end_matches('/').to_owned();
        let builder = MediumBuilder { client: source::client()?, loaders, limits: CopyLimits::USUAL };
        let (media, open) = (Mutex::new(media), Mutex::default());
        let media = Self(Arc::new(Inner { folder, url, builder, media, open }));
        // Of media that a conductor was killed over before it had noted them.
        let kept: Vec<_> = media.media().keys().flat_map(|name| media.copies(name)).collect();
        for copy in copies.iter().filter(|copy| !kept.contains(copy)) {
            fs::remove_file(copy).map_err(failed(copy))?;
        }
        Ok(media)
    }

    /// Publishes a medium for a drive of a node's machine, replaces the one that was published for it, and returns its URL.
    ///
    /// # Errors
    ///
    /// [`MediumError`].
    pub async fn publish(
        &self,
        node: &Node,
        drive: BootDevice,
        spec: IsoSpec,
    ) -> Result<String, MediumError> {
        let unpublished = UnpublishedMedium::new(self, drive);
        let spec = self.0.builder.copy(spec, |index| self.copy(&unpublished.name, index)).await?;
        self.add(node, drive, unpublished, spec).await
    }

    /// The same for the config drive of an instance: base64 of gzip, or the URL of that.
    ///
    /// # Errors
    ///
    /// [`MediumError`].
    pub async fn publish_config_drive(
        &self,
        node: &Node,
        drive: BootDevice,
        text: &str,
    ) -> Result<String, MediumError> {
        let (unpublished, bytes) =
            (UnpublishedMedium::new(self, drive), self.0.builder.config_drive(text).await?);
        let file = self.copy(&unpublished.name, 0);
        write(&file, &bytes)?;
        self.add(node, drive, unpublished, IsoSpec::AsItIs { image: Image::File(file) }).await
    }

    async fn add(
        &self,
        node: &Node,
        drive: BootDevice,
        unpublished: UnpublishedMedium<'_>,
        spec: IsoSpec,
    ) -> Result<String, MediumError> {
        let mut marks = Marks::new();
        let medium = self.0.builder.open(spec.clone(), &mut marks).await?;
        self.withdraw_from(node, drive)?;
        let bmc = bmc_addresses::of(node).await;
        let (reads, is_logged) = (Some(Reads::default()), false);
        let published = PublishedMedium { node: node.uuid, drive, spec, marks, bmc, is_logged, reads };
        let text = serde_json::to_vec(&published).map_err(io::Error::other);
        let note = self.note(&unpublished.name);
        let text = text.map_err(|source| MediumError::Folder { path: note.clone(), source })?;
        write(&note, &text)?;
        let name = unpublished.made();
        self.media().insert(name.clone(), published);
        self.keep_open(&name, Arc::new(medium));
        Ok(format!("{}/{name}", self.0.url))
    }

    /// Checks whether a medium can be made, as far as that is known without asking servers.
    ///
    /// # Errors
    ///
    /// [`MediumError`].
    pub async fn check(&self, spec: IsoSpec) -> Result<(), MediumError> {
        self.0.builder.check(spec).await
    }

    /// Withdraws the media of a node.
    ///
    /// # Errors
    ///
    /// [`MediumError::Folder`].
    pub fn withdraw(&self, node: &Node) -> Result<(), MediumError> {
        self.withdraw_those(|published| published.node == node.uuid)
    }

    /// The same for one of its drives.
    ///
    /// # Errors
    ///
    /// [`MediumError::Folder`].
    pub fn withdraw_from(&self, node: &Node, drive: BootDevice) -> Result<(), MediumError> {
        self.withdraw_those(|published| published.node == node.uuid && published.drive == drive)
    }

    fn withdraw_those(&self, is_one: impl Fn(&PublishedMedium) -> bool) -> Result<(), MediumError> {
        let names: Vec<_> = {
            let media = self.media();
            media.iter().filter(|(_, one)| is_one(one)).map(|(name, _)| name.clone()).collect()
        };
        for name in names {
            self.remove(&name)?;
            self.media().remove(&name);
            self.open_media().retain(|(open, _)| *open != name);
        }
        Ok(())
    }

    /// Whether there is a medium for a drive of a node.
    pub fn has(&self, node: &Node, drive: BootDevice) -> bool {
        self.media().values().any(|one| one.node == node.uuid && one.drive == drive)
    }

    /// How much was read of the medium for a drive of a node; nothing where there is none, or that is not known.
    pub fn reads(&self, node: &Node, drive: BootDevice) -> Option<Reads> {
        let media = self.media();
        media.values().find(|one| one.node == node.uuid && one.drive == drive)?.reads
    }

    /// The medium with a name; nothing where there is none.
    pub async fn medium(&self, name: &str) -> Option<Arc<Medium>> {
        let PublishedMedium { spec, mut marks, node, .. } = self.media().get(name).cloned()?;
        let found =
            self.open_media().iter().find(|(open, _)| open == name).map(|(_, medium)| Arc::clone(medium));
        let medium = match found {
            Some(medium) => medium,
            None => {
                let medium = self.0.builder.open(spec, &mut marks).await;
                Arc::new(
                    medium
                        .inspect_err(|error| tracing::error!(%node, "a virtual medium is gone: {error}"))
                        .ok()?,
                )
            }
        };
        self.keep_open(name, Arc::clone(&medium));
        Some(medium)
    }

    /// Whether a client may have the address of the BMC for which a medium is. That others ask is logged once.
    pub fn is_for(&self, name: &str, client: IpAddr) -> bool {
        let client = client.to_canonical();
        let mut media = self.media();
        let Some(published) = media.get_mut(name) else { return true };
        if published.bmc.is_empty() || published.bmc.contains(&client) {
            return true;
        }
        if !std::mem::replace(&mut published.is_logged, true) {
            let known: Vec<_> = published.bmc.iter().map(IpAddr::to_string).collect();
            tracing::warn!(node = %published.node, %client, bmc = known.join(","),
                "a virtual medium is asked for from another address than its BMC's");
        }
        false
    }

    fn keep_open(&self, name: &str, medium: Arc<Medium>) {
        let mut open = self.open_media();
        open.retain(|(other, _)| other != name);
        if open.len() == MOST_OPEN {
            open.remove(0);
        }
        open.push((name.to_owned(), medium));
    }

    /// Takes note that bytes of a medium are sent. Gives the node whose machine starts from that medium, and how much of it
    /// was read; nothing of a medium that is for something else.
    pub fn note_reading(&self, name: &str, bytes: u64) -> Option<(Uuid, Reads)> {
        let mut media = self.media();
        let published = media.get_mut(name)?;
        let reads = published.reads.get_or_insert_default();
        if reads.requests == 0 {
            tracing::info!(node = %published.node, "the BMC reads its virtual medium");
        }
        reads.requests += 1;
        reads.bytes += bytes;
        let reads = *reads;
        (published.drive == BootDevice::Cdrom).then_some((published.node, reads))
    }

    fn note(&self, name: &str) -> PathBuf {
        self.0.folder.join(format!("{name}.{NOTE}"))
    }

    fn copy(&self, name: &str, index: usize) -> PathBuf {
        self.0.folder.join(format!("{name}.{index}.{COPY}"))
    }

    fn copies(&self, name: &str) -> Vec<PathBuf> {
        (0..MOST_COPIES).map(|index| self.copy(name, index)).collect()
    }

    /// Removes the files of a medium.
    fn remove(&self, name: &str) -> Result<(), MediumError> {
        remove(&self.note(name))?;
        self.copies(name).iter().try_for_each(|copy| remove(copy))
    }

    fn media(&self) -> MutexGuard<'_, HashMap<String, PublishedMedium>> {
        self.0.media.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_media(&self) -> MutexGuard<'_, Vec<(String, Arc<Medium>)>> {
        self.0.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name that nobody can guess. It ends as BMCs want it.
fn name(drive: BootDevice) -> String {
    let end = if drive == BootDevice::Floppy { "img" } else { "iso" };
    format!("{:032x}.{end}", rand::rng().random::<u128>())
}

/// Writes a file that nobody else may read: the token of an agent may be in it, and the secrets of an instance.
fn write(file: &Path, bytes: &[u8]) -> Result<(), MediumError> {
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(true).mode(0o600).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(bytes));
    written.map_err(|source| MediumError::Folder { path: file.to_owned(), source })
}

fn remove(file: &Path) -> Result<(), MediumError> {
    match fs::remove_file(file) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(MediumError::Folder { path: file.to_owned(), source })
        }
        _ => Ok(()),
    }
}
