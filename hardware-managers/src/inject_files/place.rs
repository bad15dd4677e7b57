//! Finding the partition of a file, among those of the root disk.

use super::list::{Item, Partition};
use super::{InjectError, Target};
use farrier_disk::guard::RootPartition;
use farrier_linux::mount::WritableMount;
use farrier_linux::rooted::Rooted;
use std::path::Path;

/// A partition, and where its files are.
type Place = (RootPartition, WritableMount);

/// Mounts the partition that a file names, or else the first one with the first folder of its path.
///
/// # Errors
///
/// [`InjectError::ForeignPartition`], [`InjectError::NoPartition`] or [`InjectError::Disk`].
pub fn find(item: &Item, target: &Target<'_>) -> Result<Place, InjectError> {
    let partitions = target.root.partitions()?;
    match &item.partition {
        Some(wanted) => named(wanted, partitions, target),
        None => first_with_folder(item, partitions, target),
    }
}

fn named(
    wanted: &Partition,
    partitions: Vec<RootPartition>,
    target: &Target<'_>,
) -> Result<Place, InjectError> {
    let known = names(&partitions);
    let is_wanted = |partition: &RootPartition| match wanted {
        Partition::Number(number) => partition.number() == *number,
        // A link such as /dev/disk/by-partuuid/… leads to the node itself.
        Partition::Device(path) => path.canonicalize().is_ok_and(|path| path == partition.path()),
    };
    let partition = partitions.into_iter().find(is_wanted).ok_or_else(|| InjectError::ForeignPartition {
        partition: match wanted {
            Partition::Number(number) => format!("number {number}"),
            Partition::Device(path) => path.display().to_string(),
        },
        device: target.root.device().disk.name.clone(),
        known,
    })?;
    let kind = partition.file_system()?.ok_or_else(|| {
        let device = partition.path().display();
        InjectError::Invalid(format!("partition {device} has no file system that can be mounted"))
    })?;
    let mounted = partition.mount(kind, target.folder)?;
    Ok((partition, mounted))
}

/// Partitions that cannot be looked into are passed over: another one may have the folder.
fn first_with_folder(
    item: &Item,
    partitions: Vec<RootPartition>,
    target: &Target<'_>,
) -> Result<Place, InjectError> {
    let name = item.path.split('/').next().unwrap_or_default();
    let mut looked_at = Vec::new();
    for partition in partitions {
        let device = partition.path().display().to_string();
        let mounted = match partition.file_system() {
            Ok(Some(kind)) => partition.mount(kind, target.folder),
            Ok(None) => {
                looked_at.push(format!("{device}: no file system"));
                continue;
            }
            Err(error) => Err(error),
        };
        match mounted {
            Ok(mounted) if has_folder(mounted.path(), name) => return Ok((partition, mounted)),
            Ok(_) => looked_at.push(format!("{device}: other folders")),
            Err(error) => looked_at.push(error.to_string()),
        }
    }
    let looked_at = if looked_at.is_empty() { "no partition".to_owned() } else { looked_at.join("; ") };
    let (device, path) = (target.root.device().disk.name.clone(), format!("/{}", item.path));
    Err(InjectError::NoPartition { device, folder: name.to_owned(), looked_at, path })
}

fn has_folder(root: &Path, name: &str) -> bool {
    Rooted::open(root).and_then(|root| root.has_folder(Path::new(name))).unwrap_or(false)
}

fn names(partitions: &[RootPartition]) -> String {
    let names: Vec<_> = partitions.iter().map(|partition| partition.path().display().to_string()).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
