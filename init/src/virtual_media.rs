//! Parameters and configuration from virtual media (section 3.4).
//!
//! A conductor that cannot change the kernel command line of what it boots attaches a floppy with
//! more parameters, and may put configuration on the boot medium. Both are read only if the kernel
//! command line says that the boot came from virtual media, and only from a drive whose bus and type
//! prove what it is ([`ramdisk_media`](farrier_media::ramdisk_media)).
//!
//! Media are read once per boot: what they said is kept, so that a restarted agent does not depend on
//! a medium that was ejected, and nobody can slip other settings in later.

use farrier_linux::drive::{self, Drive};
use farrier_linux::kernel_line::{self, Parameters};
use farrier_linux::mount::ReadOnlyMount;
use farrier_media::ramdisk_media::{FLOPPY_LABEL, Inserted, Purpose};
use farrier_media::volume::Volume;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The file with parameters in the floppy's root.
const PARAMETERS: &str = "parameters.txt";
/// Folders whose files are copied, to the same places.
const CONFIG_FOLDERS: [&str; 2] = ["etc/ironic-python-agent", "etc/ironic-python-agent.d"];
/// The network as the conductor describes it, on the boot medium.
pub const NETWORK_DATA_ON_MEDIUM: &str = "openstack/latest/network_data.json";
/// Where that is kept, below the root directory.
pub const NETWORK_DATA: &str = "run/farrier/network_data.json";
/// Largest file that is read from a medium, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// Parameters of the media of this boot, below the root directory.
const KEPT: &str = "run/farrier/virtual-media.txt";
/// Where media are mounted while they are read, below the root directory.
const MOUNT_POINT: &str = "run/farrier/virtual-media";

/// How long media may take to appear. Without a parameter that names a server they must.
const PATIENCE: Duration = Duration::from_secs(60);
/// The same when the kernel command line names one.
const SHORT_PATIENCE: Duration = Duration::from_secs(10);
/// How often to look.
const POLL: Duration = Duration::from_millis(200);

/// Virtual media were there and could not be used.
#[derive(Debug, thiserror::Error)]
pub enum VirtualMediaError {
    /// A medium that belongs to this boot cannot be read.
    #[error("virtual medium {device} cannot be read ({source}): attach it again through the BMC")]
    Medium {
        /// Device file of its drive.
        device: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
    /// What was read cannot be kept.
    #[error("{path} cannot be written: {source}")]
    Keep {
        /// File that was wanted.
        path: PathBuf,
        /// Cause.
        #[source]
        source: io::Error,
    },
}

/// The parameters of the kernel command line, with those of virtual media on top if the machine was
/// booted from them; copies the configuration that they carry.
///
/// # Errors
///
/// [`VirtualMediaError`]. Media that do not appear are no error: the command line may be enough.
pub fn merge(kernel: Parameters) -> Result<Parameters, VirtualMediaError> {
    Bay { kernel, root: Path::new("/"), drives: &DriveBay, patience: [PATIENCE, SHORT_PATIENCE] }.merge()
}

/// What the boot medium of this boot said of the network; nothing when it said nothing, which is
/// normal (S14).
pub fn network_data(root: &Path) -> Option<String> {
    let bytes = fs::read(root.join(NETWORK_DATA)).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The drives of a machine; tests put folders in their place.
trait Drives {
    /// Those that can be virtual ones, as of now.
    fn list(&self) -> Vec<Drive>;
    /// What is in a drive.
    fn volume(&self, drive: &Drive) -> Option<Volume>;
    /// Shows the files of a drive to `read`.
    fn visit(
        &self,
        drive: &Drive,
        file_system: &'static str,
        mount_point: &Path,
        read: &mut dyn FnMut(&Path) -> io::Result<()>,
    ) -> io::Result<()>;
}

/// The drives of this machine.
struct DriveBay;

impl Drives for DriveBay {
    fn list(&self) -> Vec<Drive> {
        drive::list(Path::new("/sys"))
    }

    fn volume(&self, drive: &Drive) -> Option<Volume> {
        // A drive that is not ready is looked at again soon.
        Volume::read(&mut File::open(&drive.device).ok()?).ok().flatten()
    }

    fn visit(
        &self,
        drive: &Drive,
        file_system: &'static str,
        mount_point: &Path,
        read: &mut dyn FnMut(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        let mounted = ReadOnlyMount::new(&drive.device, file_system, mount_point)?;
        read(mounted.path())
    }
}

/// One boot from virtual media.
struct Bay<'a, D> {
    kernel: Parameters,
    root: &'a Path,
    drives: &'a D,
    /// Without and with a server on the kernel command line.
    patience: [Duration; 2],
}

/// The media of a boot, found one after the other.
#[derive(Default)]
struct Media {
    floppy: Option<(Drive, Volume)>,
    config: BTreeMap<Drive, Volume>,
}

impl<D: Drives> Bay<'_, D> {
    fn merge(self) -> Result<Parameters, VirtualMediaError> {
        if !Purpose::Parameters.is_expected(&self.kernel) {
            return Ok(self.kernel);
        }
        let kept = self.root.join(KEPT);
        let text = match fs::read_to_string(&kept) {
            Ok(text) => text,
            Err(_) => self.read(&kept)?,
        };
        let mut parameters = self.kernel;
        parameters.extend(kernel_line::parse(&text));
        Ok(parameters)
    }

    /// Waits for the media and takes from them what they carry.
    fn read(&self, kept: &Path) -> Result<String, VirtualMediaError> {
        let media = self.wait();
        let text = match &media.floppy {
            Some((drive, volume)) => self.parameters(drive, volume)?,
            None => String::new(),
        };
        for (drive, volume) in &media.config {
            self.copy(drive, volume)?;
        }
        if names_server(&self.kernel) || names_server(&kernel_line::parse(&text)) {
            keep(kept, text.as_bytes())
                .map_err(|source| VirtualMediaError::Keep { path: kept.to_owned(), source })?;
        } else {
            tracing::error!(
                "no virtual medium named {FLOPPY_LABEL} says where the conductor is, and the kernel command \
                 line does not either: attach the floppy through the BMC, or add ipa-api-url"
            );
        }
        Ok(text)
    }

    /// Looks until there is a medium of each kind that this boot needs. The floppy is not needed
    /// when the kernel command line says where the conductor is.
    fn wait(&self) -> Media {
        let is_server_known = names_server(&self.kernel);
        let started = Instant::now();
        loop {
            let media = self.find();
            let is_complete = !media.config.is_empty() && (is_server_known || media.floppy.is_some());
            // A floppy beside a boot medium without configuration: nothing more has to appear.
            let patience = self.patience[usize::from(is_server_known || media.floppy.is_some())];
            if is_complete || started.elapsed() >= patience {
                return media;
            }
            thread::sleep(POLL);
        }
    }

    fn find(&self) -> Media {
        let drives = self.drives.list().into_iter();
        let mut found: Vec<_> =
            drives.filter_map(|drive| Some((self.drives.volume(&drive)?, drive))).map(Some).collect();
        let media: Vec<_> = found.iter().flatten().map(|(volume, drive)| inserted(volume, drive)).collect();
        let floppy = Purpose::Parameters.served_by(&media, &self.kernel);
        let config = Purpose::Configuration.served_by(&media, &self.kernel);
        let mut take = |number: usize| found[number].take().map(|(volume, drive)| (drive, volume));
        let config = config.into_iter().filter_map(&mut take).collect();
        Media { config, floppy: floppy.into_iter().find_map(take) }
    }

    fn parameters(&self, drive: &Drive, volume: &Volume) -> Result<String, VirtualMediaError> {
        let mut text = String::new();
        self.visit(drive, volume, &mut |folder| {
            let path = folder.join(PARAMETERS);
            if !path.is_file() {
                tracing::warn!(device = %drive.device.display(), "the virtual floppy has no {PARAMETERS}");
                return Ok(());
            }
            text = String::from_utf8_lossy(&read_small(&path)?).into_owned();
            Ok(())
        })?;
        let names: Vec<_> = kernel_line::parse(&text).into_keys().collect();
        tracing::info!(device = %drive.device.display(), parameters = names.join(","), "virtual floppy read");
        Ok(text)
    }

    /// Copies the files that lie directly in the folders of configuration, and the description of the
    /// network. There need be none (S14).
    fn copy(&self, drive: &Drive, volume: &Volume) -> Result<(), VirtualMediaError> {
        self.visit(drive, volume, &mut |medium| {
            for folder in CONFIG_FOLDERS {
                for file in plain_files(&medium.join(folder)) {
                    let target = self.root.join(folder);
                    fs::create_dir_all(&target)?;
                    let target = target.join(file.file_name().unwrap_or_default());
                    fs::write(&target, read_small(&file)?)?;
                    let device = drive.device.display();
                    tracing::info!(%device, file = %target.display(), "configuration copied");
                }
            }
            let network_data = medium.join(NETWORK_DATA_ON_MEDIUM);
            if network_data.is_file() {
                keep(&self.root.join(NETWORK_DATA), &read_small(&network_data)?)?;
            }
            Ok(())
        })
    }

    fn visit(
        &self,
        drive: &Drive,
        volume: &Volume,
        read: &mut dyn FnMut(&Path) -> io::Result<()>,
    ) -> Result<(), VirtualMediaError> {
        let mount_point = self.root.join(MOUNT_POINT);
        self.drives
            .visit(drive, volume.file_system, &mount_point, read)
            .map_err(|source| VirtualMediaError::Medium { device: drive.device.clone(), source })
    }
}

/// A volume in a drive, as far as that says what it is for.
fn inserted<'a>(volume: &'a Volume, drive: &'a Drive) -> Inserted<'a> {
    let (is_optical, may_be_virtual) = (drive.is_optical, drive.may_be_virtual());
    Inserted { volume, model: &drive.model, is_optical, may_be_virtual }
}

/// Whether the parameters say where a conductor is.
fn names_server(parameters: &Parameters) -> bool {
    ["ipa-api-url", "ipa-inspection-callback-url"].iter().any(|name| parameters.contains_key(*name))
}

/// Regular files of a folder; links could lead out of the medium.
fn plain_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.map(|entry| entry.path()).collect()
}

/// Reads a file that is not too large to be a setting.
///
/// # Errors
///
/// It cannot be read, or is larger than 1 MiB.
pub fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        let name = path.file_name().unwrap_or_default().display();
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("{name} has more than 1 MiB")));
    }
    Ok(bytes)
}

/// The parameters may hold a token.
fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests;
