//! The logs of ramdisks that were kept, as operators find them again: one archive for each operation that failed, whose
//! name begins with the identity of its node, and what was on the screen of a machine that stayed silent. Each node has a
//! folder, so that a request for the logs of one node does not list those of all.

use farrier_conductor::agent::LogRoom;
use farrier_conductor::model::{Family, Node};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;
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

/// Where a file of a node is kept.
pub(crate) fn place(folder: &Path, node: Uuid, name: &str) -> PathBuf {
    folder.join(node.to_string()).join(name)
}

/// Keeps a file of a node, and removes older ones for which there is no room. It may tell secrets of the instance, so
/// nobody else reads it.
///
/// # Errors
///
/// What the system says.
pub(crate) async fn write(
    folder: &Path,
    node: Uuid,
    name: &str,
    content: Vec<u8>,
    room: LogRoom,
) -> io::Result<()> {
    let (folder, name) = (folder.to_owned(), name.to_owned());
    blocking(move || {
        write_now(&place(&folder, node, &name), &content)?;
        make_room(&folder, node, &name, room)
    })
    .await
}

/// Sets logs of a node aside, in place of those that were before.
///
/// # Errors
///
/// What the system says.
pub(crate) async fn set_aside(folder: &Path, node: Uuid, content: &[u8]) -> io::Result<()> {
    let (folder, content) = (folder.to_owned(), content.to_owned());
    blocking(move || write_now(&aside(&folder, node), &content)).await
}

/// Takes back what was set aside of a node, which is there no more.
pub(crate) async fn take_back(folder: &Path, node: Uuid) -> Option<Vec<u8>> {
    let file = aside(folder, node);
    let taken = blocking(move || {
        let content = fs::read(&file)?;
        fs::remove_file(&file)?;
        Ok(content)
    });
    taken.await.ok()
}

/// Where logs are set aside: a name that no list has.
fn aside(folder: &Path, node: Uuid) -> PathBuf {
    folder.join(format!(".{node}.received"))
}

fn write_now(file: &Path, content: &[u8]) -> io::Result<()> {
    file.parent().map_or(Ok(()), fs::create_dir_all)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).open(file)?.write_all(content)
}

/// Does something with files away from the threads that serve others.
async fn blocking<T: Send + 'static>(act: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    match tokio::task::spawn_blocking(act).await {
        Ok(done) => done,
        Err(error) => Err(io::Error::other(error)),
    }
}

/// Removes the oldest files beside the newest one, until those of its node and those of all nodes have room.
fn make_room(folder: &Path, node: Uuid, newest: &str, room: LogRoom) -> io::Result<()> {
    let own = fs::metadata(place(folder, node, newest))?.len();
    let mut all = Vec::new();
    for other in nodes(folder)? {
        all.extend(list(folder, other)?.into_iter().map(|log| (other, log)));
    }
    all.retain(|(_, log)| log.name != newest);
    all.sort_by(|(_, one), (_, other)| by_age(one).cmp(&by_age(other)));
    let of_node = all.iter().filter(|(other, _)| *other == node);
    let mut removed = surplus(of_node, room.files_per_node, room.bytes_per_node.saturating_sub(own));
    let left = all.iter().filter(|kept| !removed.contains(kept));
    removed.extend(surplus(left, room.files, room.bytes.saturating_sub(own)));
    for (node, log) in removed {
        tracing::info!("{} is removed from {}: there is no room for more logs", log.name, folder.display());
        fs::remove_file(place(folder, node, &log.name))?;
    }
    Ok(())
}

/// The order in which files were kept.
fn by_age(log: &KeptLog) -> (OffsetDateTime, &str) {
    (log.kept_at, &log.name)
}

/// The oldest ones of some files, which have to go for one more file and so many bytes to have room.
fn surplus<'a>(
    kept: impl Iterator<Item = &'a (Uuid, KeptLog)> + Clone,
    files: usize,
    bytes: u64,
) -> Vec<(Uuid, KeptLog)> {
    let size = kept.clone().map(|(_, log)| log.size_bytes).sum::<u64>();
    let (mut count, mut size) = (kept.clone().count() + 1, size);
    let too_many = kept.take_while(|(_, log)| {
        let is_surplus = count > files || size > bytes;
        (count, size) = (count - 1, size - log.size_bytes);
        is_surplus
    });
    too_many.cloned().collect()
}

/// The nodes of which there are files.
fn nodes(folder: &Path) -> io::Result<Vec<Uuid>> {
    let mut nodes = Vec::new();
    for entry in fs::read_dir(folder)? {
        nodes.extend(entry?.file_name().to_str().and_then(|name| name.parse::<Uuid>().ok()));
    }
    Ok(nodes)
}

/// The files of a node, the oldest first.
fn list(folder: &Path, node: Uuid) -> io::Result<Vec<KeptLog>> {
    let entries = match fs::read_dir(folder.join(node.to_string())) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut kept = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        // One that was removed meanwhile is none.
        let Ok(facts) = entry.metadata() else { continue };
        if facts.is_file() && name.starts_with(&node.to_string()) {
            let kept_at = facts.modified().map_or(OffsetDateTime::UNIX_EPOCH, OffsetDateTime::from);
            kept.push(KeptLog { name, size_bytes: facts.len(), kept_at });
        }
    }
    kept.sort_by(|one, other| by_age(one).cmp(&by_age(other)));
    Ok(kept)
}

/// The archives of a node in a folder, the oldest first.
///
/// # Errors
///
/// [`KeptLogError`], but not for a folder that there is not yet.
pub(crate) async fn of(folder: &Path, node: Uuid) -> Result<Vec<KeptLog>, KeptLogError> {
    let outer = folder.to_owned();
    let listed = blocking(move || list(&outer, node)).await;
    listed.map_err(|source| KeptLogError { file: folder.join(node.to_string()), source })
}

/// An archive of a node; nothing when there is none of this name.
///
/// # Errors
///
/// [`KeptLogError`].
pub(crate) async fn read(folder: &Path, node: Uuid, name: &str) -> Result<Option<Vec<u8>>, KeptLogError> {
    // Only what is listed is read, so that no name leads elsewhere.
    let listed = of(folder, node).await?.into_iter().find(|log| log.name == name);
    let Some(log) = listed else { return Ok(None) };
    let file = place(folder, node, &log.name);
    let content = {
        let file = file.clone();
        blocking(move || fs::read(file)).await
    };
    content.map(Some).map_err(|source| KeptLogError { file, source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::{NewNode, ProvisionState};

    #[tokio::test]
    async fn e16_logs_have_a_limit_and_the_oldest_go_first() {
        let folder = tempfile::tempdir().unwrap();
        let room = LogRoom { files_per_node: 3, bytes_per_node: 100, files: 5, bytes: 1000 };
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut time = std::time::SystemTime::UNIX_EPOCH;
        let mut keep = async |node: Uuid, number: u32, size: usize| {
            let name = format!("{node}_{number}.tar.gz");
            write(folder.path(), node, &name, vec![0; size], room).await.unwrap();
            let file = place(folder.path(), node, &name);
            time += std::time::Duration::from_secs(60);
            fs::File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        };
        for number in 0..5 {
            keep(one, number, 10).await;
        }
        let numbers = async |node: Uuid| -> Vec<String> {
            let kept = of(folder.path(), node).await.unwrap();
            kept.into_iter().map(|log| log.name[37..38].to_owned()).collect()
        };
        assert_eq!(numbers(one).await, ["2", "3", "4"]);
        keep(one, 5, 90).await;
        assert_eq!(numbers(one).await, ["4", "5"]);
        // One that has no room at all is kept alone.
        keep(one, 6, 500).await;
        assert_eq!(numbers(one).await, ["6"]);
        for number in 0..3 {
            keep(other, number, 10).await;
        }
        for number in 7..9 {
            keep(one, number, 10).await;
        }
        assert_eq!(
            (numbers(one).await, numbers(other).await),
            (vec!["7".into(), "8".into()], vec!["0".into(), "1".into(), "2".into()])
        );
        // Those of all nodes: the oldest of whichever.
        keep(Uuid::from_u128(3), 0, 10).await;
        assert_eq!(numbers(other).await, ["1", "2"]);
        // What is no log of a node stays.
        fs::write(folder.path().join("README"), "").unwrap();
        set_aside(folder.path(), one, b"posted").await.unwrap();
        keep(one, 9, 10).await;
        assert!(folder.path().join("README").exists());
        assert_eq!(take_back(folder.path(), one).await.unwrap(), b"posted");
        assert_eq!(take_back(folder.path(), one).await, None);
    }

    #[tokio::test]
    async fn a_node_has_its_own_archives_and_no_others() {
        let outer = tempfile::tempdir().unwrap();
        let (folder, node) = (outer.path().join("logs"), Uuid::from_u128(7));
        assert_eq!(of(&folder, node).await.unwrap(), []);
        let names = [format!("{node}_n1_cleaning.tar.gz"), format!("{}_n2.tar.gz", Uuid::nil())];
        for (node, name) in [(node, &names[0]), (Uuid::nil(), &names[1])] {
            write_now(&place(&folder, node, name), name.as_bytes()).unwrap();
        }
        fs::create_dir(place(&folder, node, &format!("{node}_folder"))).unwrap();
        let outside = format!("{node}_outside");
        fs::write(outer.path().join(&outside), "").unwrap();
        let kept = of(&folder, node).await.unwrap();
        assert_eq!(kept.iter().map(|log| &log.name).collect::<Vec<_>>(), [&names[0]]);
        assert_eq!(kept[0].size_bytes, names[0].len() as u64);
        assert_eq!(read(&folder, node, &names[0]).await.unwrap().unwrap(), names[0].as_bytes());
        let outsides = [format!("../../{outside}"), format!("{node}_folder/../../../{outside}")];
        for name in [&names[1], "", &format!("{node}_folder"), &outsides[0], &outsides[1]] {
            assert_eq!(read(&folder, node, name).await.unwrap(), None, "{name}");
        }
    }

    /// One unreadable entry would fail a request that lists the entries of all nodes.
    #[tokio::test]
    async fn l03_the_logs_of_a_node_are_found_without_those_of_others() {
        let folder = tempfile::tempdir().unwrap();
        let (node, other) = (Uuid::from_u128(7), Uuid::from_u128(8));
        let name = format!("{node}_n1.tar.gz");
        write(folder.path(), node, &name, b"kept".to_vec(), LogRoom::default()).await.unwrap();
        // No folder, where the other node has its own.
        fs::write(folder.path().join(other.to_string()), "").unwrap();
        assert_eq!(of(folder.path(), node).await.unwrap().len(), 1);
        assert_eq!(read(folder.path(), node, &name).await.unwrap().unwrap(), b"kept");
        assert!(of(folder.path(), other).await.is_err());
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
