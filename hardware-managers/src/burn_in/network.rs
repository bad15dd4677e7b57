//! The network between two machines, by `fio`: one writes, the other one reads, then the other way round.

use super::fio::{Job, Outcome, fio};
use super::{BurnInError, GRACE, OutputFile, pairing, wait};
use crate::error::StepError;
use crate::manager::StepCall;
use crate::setting::Section;
use farrier_linux::process::FIO;
use serde_json::{Map, Value, json};
use std::fmt;
use std::time::{Duration, Instant};

/// First of the ports, one for each job.
const PORT: u16 = 9000;
const JOBS: u32 = 16;
const SIX_HOURS: Duration = Duration::from_secs(21_600);
/// How often a reader looks whether the writer listens.
const CYCLE: Duration = Duration::from_secs(30);
/// fio's exit code is the number of jobs that failed: all of them without a listener there.
const ALL_FAILED: i32 = JOBS as i32;
/// How long a machine waits for its partner, which may have to be booted first.
const PATIENCE: Duration = Duration::from_secs(86_400);

/// What a machine does in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It listens, and writes to each client.
    Writer,
    /// It connects and reads.
    Reader,
}

/// A role, and who has the other one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairing {
    /// The role in the first direction.
    pub role: Role,
    /// Name or address of the other machine.
    pub partner: String,
}

/// Sends data to a partner and takes data from it. Returns how many bytes went each way.
///
/// # Errors
///
/// [`StepError::InvalidSetting`], or what [`BurnInError`] says.
pub fn burn_in(call: &StepCall<'_>) -> Result<Value, StepError> {
    let section = Section::driver_info(call.node);
    let runtime = section.duration("agent_burnin_fio_network_runtime", SIX_HOURS)?;
    let pairing = match configured(section)? {
        Some(pairing) => pairing,
        None => pairing::find_partner(call, section)?,
    };
    tracing::info!(partner = pairing.partner, role = %pairing.role, "burn-in of the network");
    let mut result = Map::from_iter([("partner".to_owned(), json!(pairing.partner))]);
    for role in [pairing.role, pairing.role.other()] {
        let key = "agent_burnin_fio_network_outputfile";
        let mut file = OutputFile::create(section, key, &format!(".{role}"))?;
        let bytes = run(call, role, &pairing.partner, runtime, &mut file)?;
        result.insert(format!("{role}_bytes"), json!(bytes));
    }
    Ok(Value::Object(result))
}

/// The pair in the settings; nothing for a search.
fn configured(section: Section<'_>) -> Result<Option<Pairing>, StepError> {
    section.read(
        "agent_burnin_fio_network_config",
        "an object with the role (writer or reader) and the partner (a host name or address)",
        |config| {
            let role = match config.get("role")?.as_str()? {
                "writer" => Role::Writer,
                "reader" => Role::Reader,
                _ => return None,
            };
            let partner = config.get("partner")?.as_str().filter(|partner| is_host(partner))?.to_owned();
            Some(Pairing { role, partner })
        },
    )
}

/// Whether a text can be a host name or an address, and nothing else.
pub fn is_host(text: &str) -> bool {
    let is_fitting = |byte: u8| byte.is_ascii_alphanumeric() || b".:_-%".contains(&byte);
    text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == ':')
        && text.bytes().all(is_fitting)
}

/// One direction. A reader whose writer is not ready yet tries again.
fn run(
    call: &StepCall<'_>,
    role: Role,
    partner: &str,
    runtime: Duration,
    file: &mut OutputFile,
) -> Result<u64, BurnInError> {
    let started = Instant::now();
    // A writer listens until its partner is there. A reader ends at once when nobody listens; once it reads,
    // it must not outlast a partner that went away.
    let partner_wait = if role == Role::Writer { PATIENCE } else { Duration::ZERO };
    let limit = runtime.saturating_add(partner_wait).saturating_add(GRACE);
    loop {
        let outcome = fio(call, arguments(role, partner, runtime), limit)?;
        let is_alone = role == Role::Reader && outcome.code == Some(ALL_FAILED);
        if !is_alone {
            file.write(&outcome.text)?;
            return transferred(outcome, role);
        }
        if started.elapsed() >= PATIENCE {
            let hours = PATIENCE.as_secs() / 3600;
            let text =
                format!("nothing came from {partner} on port {PORT} for {hours} h: look after that machine");
            return Err(BurnInError::Unprepared(format!("{text} (at last: {})", outcome.failure)));
        }
        let reason = outcome.failure.to_string();
        tracing::info!(
            partner,
            reason,
            "nothing comes from there yet; trying again in {} s",
            CYCLE.as_secs()
        );
        wait(call, CYCLE);
    }
}

fn arguments(role: Role, partner: &str, runtime: Duration) -> Vec<String> {
    let mut arguments: Vec<_> = ["--ioengine=net", "--fill_device=1", "--group_reporting", "--gtod_reduce=1"]
        .map(str::to_owned)
        .to_vec();
    arguments.extend([format!("--port={PORT}"), format!("--numjobs={JOBS}"), format!("--name={role}")]);
    match role {
        Role::Writer => arguments.extend([
            "--rw=write".to_owned(),
            format!("--runtime={}", runtime.as_secs()),
            "--time_based".to_owned(),
            "--listen".to_owned(),
        ]),
        Role::Reader => arguments.extend(["--rw=read".to_owned(), format!("--hostname={partner}")]),
    }
    arguments
}

/// How many bytes went over the network, when nothing is wrong with that.
fn transferred(outcome: Outcome, role: Role) -> Result<u64, BurnInError> {
    if !outcome.is_success {
        return Err(outcome.failure);
    }
    let jobs = outcome.report.map(|report| report.jobs).unwrap_or_default();
    let direction = |job: &Job| if role == Role::Writer { job.write.io_bytes } else { job.read.io_bytes };
    match jobs.iter().map(direction).sum() {
        0 => Err(BurnInError::NoProof { program: FIO.name, reason: format!("no bytes as {role}") }),
        bytes => Ok(bytes),
    }
}

impl Role {
    fn other(self) -> Self {
        match self {
            Self::Writer => Self::Reader,
            Self::Reader => Self::Writer,
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Writer => "writer",
            Self::Reader => "reader",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::lookup::Node;

    fn pairing(config: Value) -> Result<Option<Pairing>, StepError> {
        let settings = json!({"agent_burnin_fio_network_config": config});
        let node = Node { driver_info: serde_json::from_value(settings).unwrap(), ..Node::default() };
        configured(Section::driver_info(&node))
    }

    #[test]
    fn the_configured_pairing_is_read_and_its_partner_is_no_option() {
        let found = |role, partner: &str| Some(Pairing { role, partner: partner.to_owned() });
        for (config, expected) in [
            (json!({"role": "writer", "partner": "horse-2"}), found(Role::Writer, "horse-2")),
            (json!({"role": "reader", "partner": "2001:db8::1"}), found(Role::Reader, "2001:db8::1")),
            (json!(null), None),
        ] {
            assert_eq!(pairing(config).unwrap(), expected);
        }
        for config in [
            json!({"role": "both", "partner": "horse-2"}),
            json!({"role": "writer"}),
            json!({"role": "writer", "partner": ""}),
            json!({"role": "writer", "partner": "--exec=/bin/sh"}),
            json!({"role": "writer", "partner": "a b"}),
            json!("writer"),
        ] {
            assert!(pairing(config.clone()).is_err(), "{config}");
        }
    }

    #[test]
    fn the_reader_connects_to_the_partner_for_whom_the_writer_listens() {
        let words = |role| arguments(role, "horse-2", Duration::from_secs(60)).join(" ");
        let common =
            "--ioengine=net --fill_device=1 --group_reporting --gtod_reduce=1 --port=9000 --numjobs=16";
        for (role, expected) in [
            (Role::Writer, "--name=writer --rw=write --runtime=60 --time_based --listen"),
            (Role::Reader, "--name=reader --rw=read --hostname=horse-2"),
        ] {
            assert_eq!(words(role), format!("{common} {expected}"));
            assert_eq!(role.other().other(), role);
        }
    }
}
