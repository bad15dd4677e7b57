//! What a fleet file says.

use super::error::{FileError, line_of};
use super::phases::Phases;
use super::span::Span;
use super::vendor::Vendor;
use crate::fault::{Class, Kind, Rate};
use crate::life::Operation;
use crate::seed::Seed;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

/// Most machines of a fleet.
pub const MOST_MACHINES: u32 = 100_000;

/// User and password that all BMCs know.
pub const LOGIN: (&str, &str) = ("fleet", "fleet-password");

/// After how long a fault passes, where it does and the file does not say it.
const USUAL_LENGTH: Duration = Duration::from_secs(60);

/// Most lives of a run: more take weeks.
const MOST_LIVES: u64 = 10_000_000;

/// Longest factor by which durations are shortened.
const MOST_SHORTENED: f64 = 10_000.0;

/// A fleet.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FleetFile {
    /// What faults and durations follow from.
    pub seed: Seed,
    /// How many machines there are.
    pub machines: u32,
    /// By which factor durations are shortened.
    #[serde(default = "unshortened")]
    pub shorten: f64,
    /// Where machines are reached.
    #[serde(default)]
    pub network: Network,
    /// How many parts of the fleet have a BMC of each maker.
    #[serde(default)]
    pub vendors: BTreeMap<Vendor, u32>,
    /// What agents are like.
    #[serde(default)]
    pub agents: Agents,
    /// How long phases take.
    #[serde(default)]
    pub phases: Phases,
    /// How often each class of faults strikes.
    #[serde(default)]
    faults: BTreeMap<Class, FaultTable>,
    /// Which lives are driven.
    #[serde(default)]
    pub lives: Lives,
}

fn unshortened() -> f64 {
    1.0
}

/// Where machines are reached: each has an address of its own, that of its BMC and of its agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Network {
    /// The address of the first machine; the next ones follow.
    pub first_address: Ipv4Addr,
    /// The port of all BMCs; with 0, one that is free.
    pub bmc_port: u16,
    /// The port of all agents.
    pub agent_port: u16,
}

impl Default for Network {
    fn default() -> Self {
        Self { first_address: Ipv4Addr::new(127, 64, 0, 1), bmc_port: 8000, agent_port: 9999 }
    }
}

/// What agents are like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Agents {
    /// Whose certificate an agent shows.
    pub certificates: Certificates,
}

/// Whose certificate an agent shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certificates {
    /// One that it makes at each boot, as real agents do.
    #[default]
    OwnKey,
    /// One for its address, with a key that all agents have: less is computed.
    SharedKey,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FaultTable {
    rate: f64,
    recoverable: bool,
    lasts: Option<Span>,
    /// Which kinds of the class; all of them unless they are given.
    #[serde(default)]
    kinds: Vec<Kind>,
}

impl FaultTable {
    /// How often a class strikes, by its table.
    fn rate(&self, class: Class) -> Rate {
        let lasts = self.lasts.map_or(USUAL_LENGTH, |span| span.0);
        let kinds = if self.kinds.is_empty() { class.kinds().to_vec() } else { self.kinds.clone() };
        Rate { rate: self.rate, recoverable: self.recoverable, lasts, kinds }
    }

    /// The key of a value that cannot be, and why.
    fn wrong_value(&self, class: Class) -> Option<(&'static str, String)> {
        if !(0.0..=1.0).contains(&self.rate) {
            return Some(("rate", format!("is {}; give a rate from 0 to 1", self.rate)));
        }
        let reason = match class.always_passes() {
            Some(false) if self.recoverable => {
                Some("is true, and no conductor may go on after it; give false")
            }
            Some(true) if !self.recoverable => Some("is false, and no life could begin after it; give true"),
            _ => None,
        };
        if let Some(reason) = reason {
            return Some(("recoverable", reason.to_owned()));
        }
        let is_strange = |kind: &&Kind| !class.kinds().contains(kind);
        let strange = self.kinds.iter().find(is_strange)?;
        Some((
            "kinds",
            format!("has {strange:?}, which is none of this class; give some of {:?}", class.kinds()),
        ))
    }
}

/// Which lives are driven, and how.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Lives {
    /// How many there are; machines have several, one after the other, where these are more than machines.
    pub count: u64,
    /// How many are lived at a time.
    pub at_once: u32,
    /// How long an operation may take before its life counts as failed. It is not shortened: conductors have clocks of
    /// their own.
    pub patience: Span,
    /// How long the lease of a conductor lasts: who comes back after it may have taken a machine over again.
    pub lease: Span,
    /// What is done in a life, in this order.
    pub operations: Vec<Operation>,
    /// Whether lives that are lived at a time wait for each other before each operation.
    pub together: bool,
}

impl Default for Lives {
    fn default() -> Self {
        Self {
            count: 0,
            at_once: 16,
            patience: Span(Duration::from_secs(1800)),
            lease: Span(Duration::from_secs(60)),
            operations: Operation::ALL.to_vec(),
            together: false,
        }
    }
}

impl FleetFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`FileError`].
    pub fn read(file: &Path) -> Result<Self, FileError> {
        let text = std::fs::read_to_string(file)
            .map_err(|source| FileError::Unreadable { file: file.to_owned(), source })?;
        Self::parse(file, &text)
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// [`FileError::Line`], [`FileError::Value`].
    pub fn parse(file: &Path, text: &str) -> Result<Self, FileError> {
        let read: Self = toml::from_str(text).map_err(|error| {
            let (line, reason) = line_of(text, &error);
            FileError::Line { file: file.to_owned(), line, reason }
        })?;
        match read.wrong_value() {
            Some((key, reason)) => Err(FileError::Value { file: file.to_owned(), key, reason }),
            None => Ok(read),
        }
    }

    /// How often each class of faults strikes.
    pub fn rates(&self) -> BTreeMap<Class, Rate> {
        self.faults.iter().map(|(class, table)| (*class, table.rate(*class))).collect()
    }

    /// How long something takes here that takes so long in the real world.
    pub fn shortened(&self, time: Duration) -> Duration {
        time.div_f64(self.shorten)
    }

    /// The first key whose value cannot be, and why.
    fn wrong_value(&self) -> Option<(String, String)> {
        let fault = |key: &str, reason: String| Some((key.to_owned(), reason));
        let Self { machines, shorten, network, vendors, phases, lives, .. } = self;
        if !(1..=MOST_MACHINES).contains(machines) {
            return fault("machines", format!("is {machines}; give 1 to {MOST_MACHINES}"));
        }
        let last = u32::from(network.first_address).checked_add(machines - 1).map(Ipv4Addr::from);
        let first = network.first_address;
        if last.is_none_or(|last| first.is_loopback() && !last.is_loopback()) {
            return fault(
                "network.first-address",
                format!("is {first}, which leaves no room for {machines} machines; give an earlier one"),
            );
        }
        if network.agent_port == 0 {
            return fault("network.agent-port", "is 0; give the port of all agents".to_owned());
        }
        if !(1.0..=MOST_SHORTENED).contains(shorten) {
            return fault("shorten", format!("is {shorten}; give a factor from 1 to {MOST_SHORTENED}"));
        }
        if !(0.0..1.0).contains(&phases.spread) {
            return fault(
                "phases.spread",
                format!("is {}; give a share from 0 to less than 1", phases.spread),
            );
        }
        if !vendors.is_empty() && vendors.values().all(|parts| *parts == 0) {
            return fault("vendors", "has no parts at all; give one of them more than 0".to_owned());
        }
        if lives.count > MOST_LIVES {
            return fault("lives.count", format!("is {}; give at most {MOST_LIVES}", lives.count));
        }
        if lives.at_once == 0 {
            return fault("lives.at-once", "is 0; give how many lives are lived at a time".to_owned());
        }
        if lives.together && lives.count != u64::from(lives.at_once.min(*machines)) {
            return fault(
                "lives.together",
                "is true, and not all lives are lived at a time; give as many as count and machines as at-once"
                    .to_owned(),
            );
        }
        self.faults.iter().find_map(|(class, table)| {
            let (key, reason) = table.wrong_value(*class)?;
            Some((format!("faults.{class}.{key}"), reason))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<FleetFile, String> {
        FleetFile::parse(Path::new("fleet.toml"), text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_says_what_a_fleet_is() {
        let file = parse(
            "seed = 7\nmachines = 50\nshorten = 60\n[vendors]\ndell = 2\nhpe = 1\n[phases]\nboot = \"2m\"\n\
             [agents]\ncertificates = \"shared-key\"\n[faults.bmc]\nrate = 0.03\nrecoverable = true\nlasts = \"20s\"\n\
             [lives]\ncount = 100\nat-once = 20\npatience = \"5m\"\n",
        );
        let file = file.unwrap();
        assert_eq!((file.seed, file.machines, file.vendors.len()), (Seed(7), 50, 2));
        assert_eq!(file.shortened(Duration::from_secs(60)), Duration::from_secs(1));
        assert_eq!(file.rates()[&Class::Bmc].lasts, Duration::from_secs(20));
        assert_eq!(file.agents.certificates, Certificates::SharedKey);
        let least = parse("seed = 1\nmachines = 1\n").unwrap();
        assert_eq!((least.shorten, least.network), (1.0, Network::default()));
    }

    #[test]
    fn what_is_wrong_is_named_with_file_key_and_what_to_do() {
        let with = |more: &str| format!("seed = 1\nmachines = 2\n{more}\n");
        for (text, expected) in [
            (with("machins = 3"), "fleet.toml, line 3: unknown field `machins`, expected one of `seed`"),
            (
                with("[vendors]\nasus = 1"),
                "fleet.toml, line 4: unknown variant `asus`, expected one of `generic`",
            ),
            (
                with("[faults.plague]\nrate = 0.1"),
                "fleet.toml, line 3: unknown variant `plague`, expected one of `bmc`",
            ),
            (with("[faults.bmc]\nrate = 0.1"), "missing field `recoverable`"),
            (
                with("[faults.bmc]\nrate = 1.5\nrecoverable = true"),
                "fleet.toml: faults.bmc.rate is 1.5; give a rate from 0 to 1",
            ),
            (with("[faults.bmc]\nrate = -0.1\nrecoverable = true"), "faults.bmc.rate is -0.1; give"),
            (with("[faults.bmc]\nrate = nan\nrecoverable = true"), "faults.bmc.rate is NaN; give"),
            (
                with("[faults.image-digest]\nrate = 0.1\nrecoverable = true"),
                "faults.image-digest.recoverable is true",
            ),
            (
                with("[faults.dhcp-lost]\nrate = 0.1\nrecoverable = true\nkinds = [\"hangs\"]"),
                "faults.dhcp-lost.kinds has Hangs, which is none of this class; give some of [Usual]",
            ),
            (
                with("[phases]\nboot = \"soon\""),
                "line 4: \"soon\" is no time; write it as 90s, 5m or 1h30m; correct",
            ),
            (with("[phases]\nspread = 1.0"), "phases.spread is 1; give a share"),
            (with("[network]\nagent-port = 0"), "network.agent-port is 0; give"),
            (
                with("[network]\nfirst-address = \"127.255.255.255\""),
                "network.first-address is 127.255.255.255, which leaves no room",
            ),
            (with("[network]\nfirst-address = \"here\""), "fleet.toml, line 4: invalid"),
            (with("shorten = 0.5"), "shorten is 0.5; give a factor from 1 to"),
            (with("[vendors]\nhpe = 0"), "vendors has no parts at all; give"),
            (with("[lives]\nat-once = 0"), "lives.at-once is 0; give"),
            (with("[lives]\ntogether = true\ncount = 9"), "lives.together is true, and not all lives are"),
            (with("[lives]\noperations = [\"sleep\"]"), "unknown variant `sleep`, expected one of `inspect`"),
            (with("[lives]\ncount = 10000001"), "lives.count is 10000001; give at most 10000000"),
            (
                with("[faults.conductor]\nrate = 0.1\nrecoverable = false"),
                "faults.conductor.recoverable is false, and no life could begin after it",
            ),
            (
                with("[faults.database]\nrate = 0.1\nrecoverable = true\nkinds = [\"killed\"]"),
                "faults.database.kinds has Killed, which is none of this class",
            ),
            ("seed = 1\nmachines = 0".to_owned(), "fleet.toml: machines is 0; give 1 to 100000"),
            ("seed = 1\nmachines = 100001".to_owned(), "fleet.toml: machines is 100001; give 1 to 100000"),
            ("machines = 1".to_owned(), "missing field `seed`"),
            ("seed = 1\nseed = 2".to_owned(), "fleet.toml, line 2: duplicate key"),
            ("seed =".to_owned(), "fleet.toml, line 1:"),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(expected) && !error.contains('\n'), "{expected}: {error}");
        }
        let missing = FleetFile::read(Path::new("/nonexistent/fleet.toml")).unwrap_err().to_string();
        assert!(
            missing.starts_with("/nonexistent/fleet.toml: ")
                && missing.ends_with("give the path of a fleet file")
        );
    }
}
