//! Exporting by `tgtd`, a program that the ramdisk may carry for kernels without a target.
//!
//! It serves a disk that this process holds for itself meanwhile, so nothing else in the ramdisk can write to it. What it
//! serves is told to it by `tgtadm`, on a socket. It ends with this process, and the export with it.

use super::terms::{Chap, Terms};
use super::{Medium, is_taken, port_in_use, portal};
use crate::error::Error;
use farrier_disk::device::exports::{self, Export};
use farrier_disk::{Sectors, WritableDisk};
use farrier_linux::block;
use farrier_linux::process::{Conditions, Program, RunError, TGTADM, TGTD};
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The folder of its socket, which it does not make.
const SOCKETS: &str = "/var/run/tgtd";
/// Time for it to listen.
const START: Duration = Duration::from_secs(20);
/// Time for each thing that it is told.
const ORDER: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(100);
/// Most bytes of a serial number that it takes, and of the identity beside it.
const MOST_SERIAL: usize = 36;
const MOST_IDENTITY: usize = 24;

/// What serves the export.
static SERVING: Mutex<Option<Served>> = Mutex::new(None);

/// An export. The program ends before the disk is let go of.
#[derive(Debug)]
struct Served {
    server: Server,
    terms: Terms,
    disk: Held,
}

/// A disk that nobody else on this machine opens for itself.
#[derive(Debug)]
struct Held {
    path: PathBuf,
    sector_size: u32,
    discards: bool,
    _claim: Claim,
}

/// What keeps others away.
#[derive(Debug)]
#[expect(dead_code, reason = "they are held")]
enum Claim {
    Writing(WritableDisk),
    Reading(File),
}

/// The program. Dropping it ends it.
#[derive(Debug)]
struct Server {
    is_stopped: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// Something that the program is told.
#[derive(Debug)]
enum Order {
    Plain(Vec<String>),
    /// With words that no error tells.
    Secret(Vec<String>),
}

/// Whether the ramdisk carries it.
pub(super) fn is_packed() -> bool {
    [TGTD, TGTADM].iter().all(Program::is_present)
}

/// Whether `disk` is what is exported by it, under these terms.
pub(super) fn has(disk: &Path, terms: &Terms) -> bool {
    serving(|now| now.as_ref().is_some_and(|one| one.disk.path == disk && one.terms == *terms))
}

/// Exports a disk.
///
/// # Errors
///
/// [`Error::Target`]: the port is in use, or the program does not do what it is told; [`Error::Disk`]. Nothing is
/// exported then.
pub(super) fn start(medium: Medium, serial: &str, terms: &Terms) -> Result<(), Error> {
    if is_taken(portal(terms)) {
        return Err(terms.failed(port_in_use(terms)));
    }
    let disk = Held::of(medium)?;
    fs::create_dir_all(SOCKETS)
        .map_err(|error| terms.failed(format!("{SOCKETS} cannot be made: {error}")))?;
    let server = Server::start(terms)?;
    for order in orders(&disk, serial, terms) {
        match order {
            Order::Plain(words) => tell(&words).map_err(|error| terms.failed(error.to_string()))?,
            Order::Secret(words) => tell(&words).map_err(|_| {
                terms.failed("tgtd does not take chap_user and chap_password; choose shorter ones".to_owned())
            })?,
        }
    }
    tracing::info!(disk = %disk.path.display(), target = %terms.target, port = terms.port,
        read_only = terms.read_only, "disk exported by iSCSI, by tgtd");
    exports::replace_served(Some(Export { disk: disk.path.clone(), target: Some(terms.target.to_string()) }));
    serving(|now| *now = Some(Served { server, terms: terms.clone(), disk }));
    Ok(())
}

/// Ends what is exported by it: its sessions are closed and the disk is free, but not flushed. Returns what it was.
pub(super) fn stop() -> Option<Export> {
    let Served { server, disk, .. } = serving(Option::take)?;
    if let Err(error) = tell(&words("target", "delete", &["--force"])) {
        tracing::warn!("tgtd does not close its sessions, and is ended: {error}");
    }
    drop(server);
    drop(disk);
    exports::replace_served(None)
}

fn serving<T>(look: impl FnOnce(&mut Option<Served>) -> T) -> T {
    look(&mut SERVING.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Held {
    fn of(medium: Medium) -> Result<Self, Error> {
        let path = match medium {
            Medium::ReadOnly(path) => path,
            Medium::Writable(disk) => {
                let (path, sector_size, discards) =
                    (disk.path().to_owned(), disk.sector_size(), disk.discards());
                return Ok(Self { path, sector_size, discards, _claim: Claim::Writing(disk) });
            }
        };
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_EXCL).open(&path);
        let opened = opened.and_then(|file| block::logical_sector_size(&file).map(|size| (file, size)));
        match opened {
            Ok((file, sector_size)) => {
                Ok(Self { path, sector_size, discards: false, _claim: Claim::Reading(file) })
            }
            Err(source) => Err(farrier_disk::Error::Device {
                device: path,
                action: "opening it for its export".to_owned(),
                source,
            }
            .into()),
        }
    }
}

impl Server {
    /// Starts the program, and makes the target as soon as it listens.
    fn start(terms: &Terms) -> Result<Self, Error> {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&is_stopped);
        let port = terms.port;
        // The program ends with the thread that waits for it.
        let thread = thread::spawn(move || serve(port, &told));
        let server = Self { is_stopped, thread };
        let deadline = Instant::now() + START;
        while let Err(error) = tell(&words("target", "new", &["--targetname", &terms.target.to_string()])) {
            if server.thread.is_finished() || Instant::now() >= deadline {
                return Err(terms.failed(format!("{error}; look into the agent's log for what tgtd says")));
            }
            thread::sleep(POLL);
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        while !self.thread.is_finished() {
            thread::sleep(POLL);
        }
    }
}

/// Runs the program until it is to be stopped.
fn serve(port: u16, is_stopped: &AtomicBool) {
    let portals = format!("portal=0.0.0.0:{port},portal=[::]:{port}");
    let conditions =
        Conditions { limit: Duration::MAX, is_stopped: &|| is_stopped.load(Ordering::Relaxed), folder: None };
    let ended = TGTD.finish(&["--foreground", "--iscsi", &portals], &conditions);
    match ended.map(|finished| finished.failure()) {
        Err(RunError::Stopped { .. }) => {}
        Ok(error) | Err(error) => tracing::error!("the iSCSI export ended by itself: {error}"),
    }
}

/// All that it is told once it has a target.
fn orders(disk: &Held, serial: &str, terms: &Terms) -> Vec<Order> {
    let path = disk.path.to_string_lossy();
    let unit = |operation, more: &[&str]| words("logicalunit", operation, &[&["--lun", "1"], more].concat());
    let mut orders = vec![
        Order::Plain(unit("new", &["--backing-store", &path, "--blocksize", &disk.sector_size.to_string()])),
        Order::Plain(unit("update", &["--params", &parameters(serial, disk.discards, terms)])),
    ];
    if let Some(Chap { user, secret }) = &terms.chap {
        // An account is of no target until it is bound.
        let account =
            ["--lld", "iscsi", "--mode", "account", "--op", "new", "--user", user, "--password", secret];
        orders.push(Order::Secret(account.map(str::to_owned).to_vec()));
        orders.push(Order::Plain(words("account", "bind", &["--user", user])));
    }
    let admitted = |word: &str, who: &str| Order::Plain(words("target", "bind", &[word, who]));
    let names = terms.initiators.iter().map(|name| admitted("--initiator-name", &name.to_string()));
    match terms.initiators.is_empty() {
        true => orders.push(admitted("--initiator-address", "ALL")),
        false => orders.extend(names),
    }
    orders
}

/// What the logical unit is: the digits of its serial number, which no other export has, are its identity, too.
fn parameters(serial: &str, discards: bool, terms: &Terms) -> String {
    // A comma would begin another parameter.
    let serial: String = serial.chars().take_while(|sign| *sign != ',').take(MOST_SERIAL).collect();
    let identity: String = serial.chars().take(MOST_IDENTITY).collect();
    let (thin, read_only) = (u8::from(discards && !terms.read_only), u8::from(terms.read_only));
    format!("scsi_sn={serial},scsi_id={identity},thin_provisioning={thin},readonly={read_only}")
}

/// Something that is done with what is the only target.
fn words(mode: &str, operation: &str, more: &[&str]) -> Vec<String> {
    let first = ["--lld", "iscsi", "--mode", mode, "--op", operation, "--tid", "1"];
    first.iter().chain(more).map(|&word| word.to_owned()).collect()
}

fn tell(words: &[String]) -> Result<(), RunError> {
    TGTADM.run(words, ORDER).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::layout::serial;
    use crate::target::terms::IscsiName;

    const IQN: &str = "iqn.2008-10.org.openstack:x";

    fn held(sector_size: u32, discards: bool) -> Held {
        let file = File::open("/dev/null").unwrap();
        Held { path: "/dev/vda".into(), sector_size, discards, _claim: Claim::Reading(file) }
    }

    fn told(disk: &Held, terms: &Terms) -> Vec<String> {
        let name = IscsiName::parse("iqn", IQN).unwrap();
        let orders = orders(disk, &serial(&name, "S4EV,NX0R"), terms);
        let text = |order| match order {
            Order::Plain(words) => words.join(" "),
            Order::Secret(words) => format!("{} (secret)", words.join(" ")),
        };
        let orders = orders.into_iter().map(text);
        orders.map(|text| text.replacen("--lld iscsi --mode ", "", 1).replacen("--tid 1 ", "", 1)).collect()
    }

    #[test]
    fn what_it_is_told_lets_in_those_of_the_terms_and_nobody_else() {
        let name = |text: &str| IscsiName::parse("initiators", text).unwrap();
        let open = Terms {
            target: name(IQN),
            port: 3260,
            read_only: false,
            wiped: false,
            chap: None,
            initiators: Vec::new(),
        };
        let orders = told(&held(512, true), &open);
        assert_eq!(orders[0], "logicalunit --op new --lun 1 --backing-store /dev/vda --blocksize 512");
        let (before, parameters) = orders[1].split_once("scsi_sn=").unwrap();
        assert_eq!(before, "logicalunit --op update --lun 1 --params ");
        // The identity is what no other export has; the serial number ends where a parameter would begin.
        let (serial, rest) = parameters.split_once(",scsi_id=").unwrap();
        let digits = serial.strip_suffix("-S4EV").unwrap();
        assert_eq!(rest, format!("{digits},thin_provisioning=1,readonly=0"));
        assert_eq!(orders[2..], ["target --op bind --initiator-address ALL"]);
        let closed = Terms {
            read_only: true,
            chap: Some(Chap::new("ann", "correct-horse").unwrap()),
            initiators: vec![name("iqn.2026-01.org.example:a"), name("iqn.2026-01.org.example:b")],
            ..open
        };
        let orders = told(&held(4096, true), &closed);
        assert!(orders[0].ends_with("--blocksize 4096"), "{orders:?}");
        assert!(orders[1].ends_with(",thin_provisioning=0,readonly=1"), "{orders:?}");
        assert_eq!(
            orders[2..],
            [
                "account --op new --user ann --password correct-horse (secret)",
                "account --op bind --user ann",
                "target --op bind --initiator-name iqn.2026-01.org.example:a",
                "target --op bind --initiator-name iqn.2026-01.org.example:b",
            ]
        );
    }

    #[test]
    fn a_serial_number_is_no_longer_than_it_takes() {
        let name = IscsiName::parse("iqn", IQN).unwrap();
        let terms = Terms {
            target: name.clone(),
            port: 3260,
            read_only: false,
            wiped: false,
            chap: None,
            initiators: Vec::new(),
        };
        let whole = serial(&name, &"x".repeat(128));
        let told = parameters(&whole, false, &terms);
        let told = told.strip_prefix("scsi_sn=").and_then(|rest| rest.split_once(',')).unwrap().0;
        assert_eq!(told, &whole[..MOST_SERIAL]);
    }
}
