//! The logs of ramdisks that were kept, as operators find them again: one archive for each operation that failed, whose
//! name begins with the identity of its node, and what was on the screen of a machine that stayed silent.

use crate::model::{Family, Node};
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

/// The time in the name of a file.
const TIME: &[BorrowedFormatItem<'_>] = format_description!("[year]-[month]-[day]-[hour]-[minute]-[second]");

/// An archive of logs, or a picture, that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLog {
    /// Name of its file.
    pub name: String,
    /// How long it is.
    pub size_bytes: u64,
    /// When it was kept.
    #[serde(with = "time::serde::rfc3339")]
    pub kept_at: OffsetDateTime,
}

/// Logs that are kept cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {source}; check that the conductor may read it")]
pub struct KeptLogError {
    file: PathBuf,
    source: io::Error,
}

/// Name of a file without its ending: the node, its instance and its operation, where they have names, and the time
/// (UTC).
pub(crate) fn stem(node: &Node, now: OffsetDateTime) -> String {
    let label = match node.provision_state.family() {
        Some(Family::Clean) => Some("cleaning"),
        Some(Family::Service) => Some("service"),
        Some(Family::Rescue) => Some("rescue"),
        Some(Family::Inspect) => Some("inspection"),
        _ => None,
    };
    let time = now.to_offset(time::UtcOffset::UTC).format(TIME).unwrap_or_default();
    let instance = node.instance_uuid.get().map(|uuid| uuid.to_string());
    let parts =
        [Some(node.uuid.to_string()), node.name.clone(), instance, label.map(str::to_owned), Some(time)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("_")
}

/// Keeps a file. It may tell secrets of the instance, so nobody else reads it.
///
/// # Errors
///
/// What the system says.
pub(crate) async fn write(folder: &Path, file: &Path, content: &[u8]) -> io::Result<()> {
    tokio::fs::create_dir_all(folder).await?;
    let mut options = tokio::fs::OpenOptions::new();
    let mut kept = options.write(true).create(true).truncate(true).mode(0o600).open(file).await?;
    kept.write_all(content).await?;
    kept.flush().await
}

/// The archives of a node in a folder, the oldest first.
///
/// # Errors
///
/// [`KeptLogError`], but not for a folder that there is not yet.
pub(crate) fn of(folder: &Path, node: Uuid) -> Result<Vec<KeptLog>, KeptLogError> {
    let failed = |source| KeptLogError { file: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed)?,
    };
    let mut kept = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let (Ok(name), Ok(facts)) = (entry.file_name().into_string(), entry.metadata()) else { continue };
        if facts.is_file() && name.starts_with(&node.to_string()) {
            let kept_at = facts.modified().map_or(OffsetDateTime::UNIX_EPOCH, OffsetDateTime::from);
            kept.push(KeptLog { name, size_bytes: facts.len(), kept_at });
        }
    }
    kept.sort_by(|one, other| (one.kept_at, &one.name).cmp(&(other.kept_at, &other.name)));
    Ok(kept)
}

/// An archive of a node; nothing when there is none of this name.
///
/// # Errors
///
/// [`KeptLogError`].
pub(crate) fn read(folder: &Path, node: Uuid, name: &str) -> Result<Option<Vec<u8>>, KeptLogError> {
    // Only what is listed is read, so that no name leads elsewhere.
    let Some(log) = of(folder, node)?.into_iter().find(|log| log.name == name) else { return Ok(None) };
    let file = folder.join(log.name);
    std::fs::read(&file).map(Some).map_err(|source| KeptLogError { file, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{NewNode, ProvisionState};
    use std::fs;

    #[test]
    fn a_node_has_its_own_archives_and_no_others() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, node) = (outer.path().join("logs"), Uuid::from_u128(7));
        assert_eq!(of(&folder, node).unwrap(), []);
        fs::create_dir(&folder).unwrap();
        let names = [format!("{node}_n1_cleaning.tar.gz"), format!("{}_n2.tar.gz", Uuid::nil())];
        for name in &names {
            fs::write(folder.join(name), name).unwrap();
        }
        fs::create_dir(folder.join(format!("{node}_folder"))).unwrap();
        let outside = format!("{node}_outside");
        fs::write(outer.path().join(&outside), "").unwrap();
        let kept = of(&folder, node).unwrap();
        assert_eq!(kept.iter().map(|log| &log.name).collect::<Vec<_>>(), [&names[0]]);
        assert_eq!(kept[0].size_bytes, names[0].len() as u64);
        assert_eq!(read(&folder, node, &names[0]).unwrap().unwrap(), names[0].as_bytes());
        let outsides = [format!("../{outside}"), format!("{node}_folder/../../{outside}")];
        for name in [&names[1], "", &format!("{node}_folder"), &outsides[0], &outsides[1]] {
            assert_eq!(read(&folder, node, name).unwrap(), None, "{name}");
        }
    }

    #[test]
    fn files_are_named_as_in_the_contract() {
        let now = OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(61);
        let mut node = Node::enrol(NewNode { name: Some("n1".into()), ..NewNode::default() }, now);
        let instance = Uuid::nil();
        for (state, instance, expected) in [
            (ProvisionState::Deploying, None, "_n1_1970-01-01-00-01-01".to_owned()),
            (ProvisionState::Cleaning, None, "_n1_cleaning_1970-01-01-00-01-01".to_owned()),
            (
                ProvisionState::RescueWait,
                Some(instance),
                format!("_n1_{instance}_rescue_1970-01-01-00-01-01"),
            ),
        ] {
            node.provision_state = state;
            instance.into_iter().for_each(|uuid| node.instance_uuid.set(uuid).unwrap());
            assert_eq!(stem(&node, now), format!("{}{expected}", node.uuid), "{state}");
        }
    }
}
