//! Two conductors over one PostgreSQL database: one is on this host, and one on a host that is suspended in the middle of its
//! work, taken over, and resumed with a wrong clock.
//!
//! What is asked of machines and which conductor holds each lease is written down outside of both: by the simulated
//! machines and by the database, whose moments are those of one clock.

#![allow(clippy::unwrap_used)]

use farrier_fleet::drive::{Credentials, Drive, Ended, Endpoint, NodeApi, Report};
use farrier_fleet::journal::{Entry, LeaseChange, Side, without_lease};
use farrier_fleet::{Fleet, FleetFile};
use farrier_tests::conductor::farrier::Farrier;
use farrier_tests::conductor::first_pass::{loader_paths, write_loaders};
use farrier_tests::conductor::node_api::Conductor;
use farrier_tests::conductor::office::{self, Equipment, Office};
use farrier_tests::environment;
use farrier_tests::network::bridge;
use farrier_tests::postgres::Cluster;
use std::collections::BTreeSet;
use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// The conductor of this host.
const STAYS: &str = "stays";
/// That of the host which is suspended.
const SUSPENDED: &str = "suspended";
/// Where machines and the other host find the former.
const API: u16 = 6385;
const MACHINES: u8 = 16;
const FIRST_MACHINE: u8 = 16;
/// How many leases the host holds that is suspended, at least. It leads half of the nodes.
const LEAST_HELD: usize = 2;
/// How long a lease lasts, in seconds.
const LEASE: &str = "20";
const HOUR: Duration = Duration::from_secs(3600);
/// What takes longer hangs, also on a busy machine with an emulated processor.
const PATIENCE: Duration = Duration::from_secs(600);
const POLL: Duration = Duration::from_millis(50);

/// Has the database write down who holds each lease.
const LEDGER: &str = "
    CREATE TABLE lease_ledger (place BIGSERIAL PRIMARY KEY, at FLOAT8 NOT NULL, node TEXT NOT NULL, holder TEXT);
    CREATE FUNCTION note_lease() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO lease_ledger (at, node, holder)
            VALUES (extract(epoch FROM clock_timestamp()), NEW.name, NEW.reservation);
        RETURN NEW;
    END $$;
    CREATE TRIGGER note_lease AFTER UPDATE ON nodes FOR EACH ROW
        WHEN (OLD.reservation IS DISTINCT FROM NEW.reservation) EXECUTE FUNCTION note_lease()";

/// The conductors with their database and machines.
struct Site {
    office: Office,
    stays: Farrier,
    fleet: Arc<Fleet>,
    journal: PathBuf,
    database: (Cluster, String),
    runtime: Runtime,
}

/// The options of one of the conductors, which machines find at a URL and whose boot loaders are in a folder.
fn options(name: &str, url: &str, database: &str, folder: &Path) -> Vec<String> {
    let options = [
        ["--conductor-name", name],
        ["--database", database],
        ["--enabled-hardware-types", "redfish"],
        ["--api-url", url],
        ["--virtual-media-url", url],
        ["--loader-file-paths", &loader_paths(folder)],
        ["--deploy-logs-collect", "never"],
        ["--lease", LEASE],
    ];
    options.as_flattened().iter().map(|&option| option.to_owned()).collect()
}

fn fleet_file() -> FleetFile {
    let [a, b, c, _] = bridge::ADDRESS.octets();
    let text = format!(
        "seed = 6
         machines = {MACHINES}
         shorten = 100
         [network]
         first-address = \"{a}.{b}.{c}.{FIRST_MACHINE}\"
         [agents]
         certificates = \"shared-key\"
         [lives]
         count = {MACHINES}
         at-once = {MACHINES}
         patience = \"5m\"
         operations = [\"clean\"]"
    );
    FleetFile::parse(Path::new("fleet.toml"), &text).unwrap()
}

impl Site {
    /// Starts all of it in a network of its own, in which each machine has an address.
    fn start(folder: &Path) -> Self {
        let [a, b, c, _] = bridge::ADDRESS.octets();
        let machines = (0..MACHINES).map(|number| Ipv4Addr::new(a, b, c, FIRST_MACHINE + number));
        let addresses: Vec<_> = [bridge::ADDRESS].into_iter().chain(machines).collect();
        bridge::network_called("br0", &addresses, 1).unwrap();
        let cluster = Cluster::start_at(bridge::ADDRESS).unwrap();
        // An emulated processor encrypts slowly.
        let database = format!("{}?sslmode=disable", cluster.tls_database().unwrap());
        let (here, there) = (folder.join(STAYS), folder.join(SUSPENDED));
        for folder in [&here, &there] {
            fs::create_dir(folder).unwrap();
            write_loaders(folder).unwrap();
        }
        let farrier = environment::path("FARRIER_BIN");
        let url = format!("http://{}:{API}", bridge::ADDRESS);
        let serve = options(STAYS, &url, &database, &here);
        let stays = Farrier::start_at((bridge::ADDRESS, API).into(), &farrier, &here, &strs(&serve)).unwrap();
        cluster.ask(&database, LEDGER).unwrap();
        let equipment = Equipment {
            farrier: &farrier,
            dist: &environment::path("FARRIER_DIST"),
            modules: &environment::path("FARRIER_MODULES"),
            memory_mib: 512,
            has_open_iscsi: false,
        };
        let serve = options(SUSPENDED, &Office::url_for_agents(), &database, Path::new(office::FOLDER));
        let office = Office::start(equipment, 0, &there, &strs(&serve)).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let journal = folder.join("journal.jsonl");
        let fleet = runtime.block_on(Fleet::start(fleet_file(), None, Some(&journal))).unwrap();
        Self { office, stays, fleet: Arc::new(fleet), journal, database: (cluster, database), runtime }
    }

    /// Leads all lives by the conductor that stays.
    fn lead(&self) -> JoinHandle<(Report, Vec<Ended>)> {
        let url = format!("http://127.0.0.1:{}", self.stays.api().port());
        let api = Arc::new(NodeApi::new(vec![Endpoint { url, credentials: Credentials::None }]).unwrap());
        let fleet = Arc::clone(&self.fleet);
        self.runtime.spawn(async move {
            let mut lives = Vec::new();
            let report = Drive::by(api).run(&fleet, |ended| lives.push(ended.clone())).await;
            (report, lives)
        })
    }

    /// Suspends the host while its conductor holds leases in the middle of cleanings and waits for the BMC of each of these
    /// machines, until the other conductor has acted on all of them. Gives the machines.
    fn suspend(&mut self) -> BTreeSet<u32> {
        self.fleet.withheld().begin(SUSPENDED);
        let held = self.until("leases of the host that is to be suspended", |site| {
            (site.fleet.withheld().machines().len() >= LEAST_HELD).then_some(())?;
            site.office.suspend().unwrap();
            let held = site.held();
            let waits = held.len() >= LEAST_HELD && held.is_subset(&site.fleet.withheld().machines());
            if !waits {
                site.office.resume().unwrap();
            }
            waits.then_some(held)
        });
        println!("{} nodes are in work when their host is suspended", held.len());
        let before = self.acts_of(STAYS, &held);
        self.fleet.withheld().end();
        self.until("the takeover of all nodes of the suspended host", |site| {
            let now = site.acts_of(STAYS, &held);
            now.iter().zip(&before).all(|(now, before)| now > before).then_some(())
        });
        held
    }

    /// The machines whose nodes the conductor on the other host holds.
    fn held(&self) -> BTreeSet<u32> {
        let names = self.ask(&format!("SELECT name FROM nodes WHERE reservation = '{SUSPENDED}'"));
        names.lines().map(|name| self.machine(name)).collect()
    }

    /// How often a conductor has acted on each of some machines.
    fn acts_of(&self, conductor: &str, machines: &BTreeSet<u32>) -> Vec<usize> {
        let acts = |machine: &u32| {
            let entries = self.fleet.journal().read(*machine);
            entries.iter().filter(|entry| is_by(entry, conductor)).count()
        };
        machines.iter().map(acts).collect()
    }

    /// The number of the machine of a node.
    fn machine(&self, node: &str) -> u32 {
        let is_of = |number: &u32| node.starts_with(&self.fleet.machine(*number).unwrap().identity.serial());
        (0..u32::from(MACHINES)).find(is_of).unwrap()
    }

    /// When the journal began, in seconds since 1970, as the clock of the database has it.
    fn journal_start(&self) -> f64 {
        self.fleet.journal().note(0, None, Side::Driver, None, "compare clocks", "");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        now - self.fleet.journal().read(0).last().unwrap().at
    }

    /// All that was asked of a machine.
    fn entries(&self, machine: u32) -> Vec<Entry> {
        let text = fs::read_to_string(&self.journal).unwrap();
        let entries = text.lines().map(|line| serde_json::from_str::<Entry>(line).unwrap());
        entries.filter(|entry| entry.machine == machine).collect()
    }

    /// The changes of the lease of a machine's node, in seconds of the journal.
    fn leases(&self, machine: u32, journal_start: f64) -> Vec<LeaseChange> {
        let rows = self.ask("SELECT at, node, coalesce(holder, '') FROM lease_ledger ORDER BY place");
        let row = |line: &str| -> Option<LeaseChange> {
            let [at, node, holder] = line.split('|').collect::<Vec<_>>().try_into().unwrap();
            let holder = Some(holder.to_owned()).filter(|holder| !holder.is_empty());
            let at = at.parse::<f64>().unwrap() - journal_start;
            (self.machine(node) == machine).then_some(LeaseChange { at, holder })
        };
        rows.lines().filter_map(row).collect()
    }

    fn ask(&self, statement: &str) -> String {
        self.database.0.ask(&self.database.1, statement).unwrap()
    }

    /// Waits for something.
    fn until<T>(&mut self, what: &str, mut look: impl FnMut(&mut Self) -> Option<T>) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look(self) {
                return found;
            }
            assert!(Instant::now() < end, "waited for {what}; {}", self.said());
            thread::sleep(POLL);
        }
    }

    fn said(&self) -> String {
        format!("{}\nthe conductor that stays:\n{}", self.office.said(), self.stays.log_tail())
    }
}

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

fn is_by(entry: &Entry, conductor: &str) -> bool {
    entry.by.as_ref().is_some_and(|by| by.conductor() == Some(conductor))
}

#[test]
fn lifecycle_e06_e07_a_host_that_is_resumed_acts_on_no_machine_that_another_conductor_has_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut site = Site::start(folder.path());
    let journal_start = site.journal_start();
    let lives = site.lead();
    let held = site.suspend();
    let before = site.acts_of(SUSPENDED, &held);
    site.office.resume().unwrap();
    site.office.set_clock(SystemTime::now() + HOUR).unwrap();
    // Its nodes come back to it, each with a lease of its own.
    site.until("an act of the host that was resumed", |site| {
        (site.acts_of(SUSPENDED, &held) != before).then_some(())
    });
    site.office.set_clock(SystemTime::now() - HOUR).unwrap();
    let (report, lives) = site.runtime.block_on(lives).unwrap();
    println!("{report}");
    for ended in &lives {
        let failure = ended.failure.as_ref().map(|failure| &failure.said);
        assert_eq!((failure, &ended.twice[..]), (None, &[][..]), "life {}: {}", ended.life, site.said());
    }
    assert_eq!(lives.len(), usize::from(MACHINES));
    for machine in 0..u32::from(MACHINES) {
        let entries = site.entries(machine);
        let without = without_lease(&entries, &site.leases(machine, journal_start));
        let told: Vec<_> = without.iter().map(ToString::to_string).collect();
        assert!(told.is_empty(), "without the lease:\n{}\n{}", told.join("\n"), site.said());
    }
}
