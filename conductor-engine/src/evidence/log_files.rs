//! The logs of ramdisks that were kept, as operators find them again: one archive for each operation that failed, whose
//! name begins with the identity of its node, and what was on the screen of a machine that stayed silent.

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

/// Keeps a file, and removes older ones for which there is no room. It may tell secrets of the instance, so nobody else
/// reads it.
///
/// # Errors
///
/// What the system says.
pub(crate) async fn write(folder: &Path, file: &Path, content: Vec<u8>, room: LogRoom) -> io::Result<()> {
    let (folder, file) = (folder.to_owned(), file.to_owned());
    blocking(move || {
        write_now(&folder, &file, &content)?;
        make_room(&folder, &file, room)
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
    blocking(move || write_now(&folder, &aside(&folder, node), &content)).await
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

fn write_now(folder: &Path, file: &Path, content: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
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
fn make_room(folder: &Path, newest: &Path, room: LogRoom) -> io::Result<()> {
    let name = newest.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(node) = node_of(name) else { return Ok(()) };
    let others = |kept: Vec<KeptLog>| kept.into_iter().filter(|log| log.name != name).collect::<Vec<_>>();
    let own = fs::metadata(newest)?.len();
    let all = others(list(folder, |_| true)?);
    let of_node: Vec<_> = all.iter().filter(|log| node_of(&log.name) == Some(node)).cloned().collect();
    let mut removed = surplus(&of_node, room.files_per_node, room.bytes_per_node.saturating_sub(own));
    let left: Vec<_> = all.into_iter().filter(|log| !removed.contains(&log.name)).collect();
    removed.extend(surplus(&left, room.files, room.bytes.saturating_sub(own)));
    for name in removed {
        tracing::info!("{name} is removed from {}: there is no room for more logs", folder.display());
        fs::remove_file(folder.join(name))?;
    }
    Ok(())
}

/// The oldest ones of some files, which have to go for one more file and so many bytes to have room.
fn surplus(kept: &[KeptLog], files: usize, bytes: u64) -> Vec<String> {
    let (mut count, mut size) = (kept.len() + 1, kept.iter().map(|log| log.size_bytes).sum::<u64>());
    let mut surplus = Vec::new();
    for log in kept {
        if count <= files && size <= bytes {
            break;
        }
        (count, size) = (count - 1, size - log.size_bytes);
        surplus.push(log.name.clone());
    }
    surplus
}

/// The node whose file has this name.
fn node_of(name: &str) -> Option<Uuid> {
    name.get(..36)?.parse().ok()
}

/// The files of a folder whose names are wanted, the oldest first.
fn list(folder: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<KeptLog>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut kept = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if node_of(&name).is_none() || !wanted(&name) {
            continue;
        }
        // One that was removed meanwhile is none.
        let Ok(facts) = entry.metadata() else { continue };
        if facts.is_file() {
            let kept_at = facts.modified().map_or(OffsetDateTime::UNIX_EPOCH, OffsetDateTime::from);
            kept.push(KeptLog { name, size_bytes: facts.len(), kept_at });
        }
    }
    kept.sort_by(|one, other| (one.kept_at, &one.name).cmp(&(other.kept_at, &other.name)));
    Ok(kept)
}

/// The archives of a node in a folder, the oldest first.
///
/// # Errors
///
/// [`KeptLogError`], but not for a folder that there is not yet.
pub(crate) async fn of(folder: &Path, node: Uuid) -> Result<Vec<KeptLog>, KeptLogError> {
    let place = folder.to_owned();
    let listed = blocking(move || list(&place, |name| node_of(name) == Some(node))).await;
    listed.map_err(|source| KeptLogError { file: folder.to_owned(), source })
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
    let file = folder.join(log.name);
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
            let file = folder.path().join(format!("{node}_{number}.tar.gz"));
            write(folder.path(), &file, vec![0; size], room).await.unwrap();
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
        fs::create_dir(&folder).unwrap();
        let names = [format!("{node}_n1_cleaning.tar.gz"), format!("{}_n2.tar.gz", Uuid::nil())];
        for name in &names {
            fs::write(folder.join(name), name).unwrap();
        }
        fs::create_dir(folder.join(format!("{node}_folder"))).unwrap();
        let outside = format!("{node}_outside");
        fs::write(outer.path().join(&outside), "").unwrap();
        let kept = of(&folder, node).await.unwrap();
        assert_eq!(kept.iter().map(|log| &log.name).collect::<Vec<_>>(), [&names[0]]);
        assert_eq!(kept[0].size_bytes, names[0].len() as u64);
        assert_eq!(read(&folder, node, &names[0]).await.unwrap().unwrap(), names[0].as_bytes());
        let outsides = [format!("../{outside}"), format!("{node}_folder/../../{outside}")];
        for name in [&names[1], "", &format!("{node}_folder"), &outsides[0], &outsides[1]] {
            assert_eq!(read(&folder, node, name).await.unwrap(), None, "{name}");
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
