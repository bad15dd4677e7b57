//! Putting files into the system that was deployed, and taking files out of it (section 9.12).
//!
//! Everything that can be judged from the list is judged before a disk is touched. Only partitions of the
//! root disk are ever mounted, and within them every path is resolved as if the partition were the root of a
//! system, so that links which the image brought lead nowhere else.

mod list;
mod place;
mod template;

use crate::error::StepError;
use crate::manager::StepCall;
use farrier_disk::{RootDisk, guard};
use farrier_linux::rooted::Rooted;
use farrier_protocol::error::{CommandError, ErrorKind};
use list::{Action, Content, Item};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use template::Fields;

/// Largest file that is fetched, in bytes: it lies in memory.
const MOST: usize = 64 << 20;
/// Where partitions are mounted.
const MOUNT_POINT: &str = "/run/farrier/inject-files";

/// A file was not put where it should be.
#[derive(Debug, thiserror::Error)]
pub enum InjectError {
    /// The list cannot be understood.
    #[error("{0}; correct the files argument, or the node's property inject_files")]
    Invalid(String),
    /// Another argument cannot be understood.
    #[error("{0}; correct the arguments of the step")]
    Arguments(String),
    /// No partition has the folder that a file is for.
    #[error(
        "no partition of {device} has the folder /{folder} (searched: {looked_at}); give the partition of {path}"
    )]
    NoPartition {
        /// Root disk.
        device: String,
        /// Folder that was looked for.
        folder: String,
        /// What was found instead.
        looked_at: String,
        /// Path of the file.
        path: String,
    },
    /// The partition that was named is not on the root disk.
    #[error(
        "{partition} is no partition of the root disk {device}, and no other disk is touched; it has {known}"
    )]
    ForeignPartition {
        /// What was named.
        partition: String,
        /// Root disk.
        device: String,
        /// Its partitions.
        known: String,
    },
    /// The root disk or one of its file systems cannot be used.
    #[error(transparent)]
    Disk(#[from] farrier_disk::Error),
    /// The content cannot be fetched.
    #[error("the content of /{path} cannot be fetched: {reason}")]
    Fetch {
        /// Path of the file.
        path: String,
        /// What happened.
        reason: String,
    },
    /// The file system refused.
    #[error("/{path} on {device}: {source}; compare it with what the image has there")]
    File {
        /// Path of the file.
        path: String,
        /// Device node of the partition.
        device: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl From<InjectError> for StepError {
    fn from(error: InjectError) -> Self {
        let kind = match &error {
            InjectError::Invalid(_) | InjectError::Arguments(_) => ErrorKind::InvalidCommandParamsError,
            InjectError::NoPartition { .. } | InjectError::ForeignPartition { .. } => {
                ErrorKind::DeviceNotFound
            }
            InjectError::Disk(error) => error.kind(),
            InjectError::Fetch { .. } | InjectError::File { .. } => ErrorKind::CommandExecutionError,
        };
        Self::Failed(CommandError::new(kind, error.to_string()))
    }
}

/// Does everything that the node's property `inject_files` and the step's argument `files` ask for, in this
/// order. Returns where each file is.
///
/// # Errors
///
/// [`InjectError`]. Files before the one that is named are done.
pub fn inject_files(call: &StepCall<'_>) -> Result<Value, StepError> {
    let fields = Fields { node: call.record, ports: call.ports };
    let property = call.node.properties.get("inject_files");
    let items = list::parse(property, call.arguments.get("files"), fields)?;
    let verifies = call.arguments.get("verify_ca");
    let verifies = list::switch("verify_ca", verifies, true).map_err(InjectError::Arguments)?;
    if items.is_empty() {
        return Ok(json!([]));
    }
    let devices = farrier_disk::list::list(Path::new("/sys")).map_err(InjectError::from)?;
    let root = guard::choose_root_disk(call.node, &devices).map_err(InjectError::from)?;
    let target = Target { root: &root, folder: Path::new(MOUNT_POINT), verifies };
    let done = items.iter().map(|item| inject(call, item, &target));
    Ok(done.collect::<Result<Vec<_>, _>>().map(Value::Array)?)
}

/// Where files go, and how they come.
struct Target<'a> {
    root: &'a RootDisk,
    /// Folder on which partitions are mounted.
    folder: &'a Path,
    /// Whether servers must prove who they are.
    verifies: bool,
}

fn inject(call: &StepCall<'_>, item: &Item, target: &Target<'_>) -> Result<Value, InjectError> {
    let content = match &item.action {
        Action::Write(Content::Bytes(bytes), _) => bytes.clone(),
        Action::Write(Content::Url(url), _) => fetch(call, item, url, target.verifies)?,
        Action::Delete => Vec::new(),
    };
    let (partition, mounted) = place::find(item, target)?;
    let device = partition.path();
    let failed = |source| InjectError::File { path: item.path.clone(), device: device.to_owned(), source };
    put(mounted.path(), item, &content).and_then(|()| mounted.flush()).map_err(failed)?;
    tracing::info!(path = item.path, device = %device.display(), "file injected");
    Ok(json!({"path": format!("/{}", item.path), "device": device.display().to_string()}))
}

fn fetch(call: &StepCall<'_>, item: &Item, url: &str, verifies: bool) -> Result<Vec<u8>, InjectError> {
    let fetched = call.host.download(url, MOST, verifies);
    fetched.map_err(|error| InjectError::Fetch { path: item.path.clone(), reason: error.details })
}

/// Does one thing below `folder`.
fn put(folder: &Path, item: &Item, content: &[u8]) -> io::Result<()> {
    let (root, path) = (Rooted::open(folder)?, Path::new(&item.path));
    let Action::Write(_, wish) = &item.action else { return root.remove(path) };
    if let Some(parent) = path.parent() {
        root.make_folders(parent, wish.folder_mode)?;
    }
    let mut file = root.create(path)?;
    file.write_all(content)?;
    wish.ownership.apply(&file)?;
    file.sync_all()
}

#[cfg(test)]
#[path = "inject_files/loop_tests.rs"]
mod tests;
