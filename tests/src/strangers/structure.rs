//! Strangers whose JSON is small as text and large as values: nests, long lists, many keys, repeated keys, long names. They
//! call the conductor, or are agents that it asks.

use super::conductor::{Victim, request, request_as};
use super::shape::Shape;
use super::{Row, WITH_A_TOKEN, WITHOUT_CREDENTIALS, agent};
use anyhow::Result;
use std::fs;
use std::path::Path;

/// The longest report that is read, in bytes.
const REPORT: usize = 16 << 20;
/// A shorter one, in bytes.
const REPORT_TEXT: usize = 1 << 20;
/// The longest heartbeat that anybody reads, in bytes.
const HEARTBEAT: usize = 256 << 10;
/// The longest request of an operator that is read, but for config drives, in bytes.
const ORDER: usize = 1 << 20;
/// The longest answers of an agent that are read: one result, and the list of all commands, in bytes.
const RESULT: usize = 1 << 20;
const LIST: usize = 4 << 20;
/// The longest answer of an agent, in bytes.
const ANSWER: usize = 64 << 20;

/// One row for each of them.
///
/// # Errors
///
/// A conductor did not start.
pub fn rows(program: &Path, folder: &Path, shapes: &[Shape]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for shape in shapes {
        let folder = folder.join(shape.name().replace(' ', "-"));
        rows.extend(without_credentials(program, &folder.join("none"), *shape)?);
        rows.extend(with_a_token(program, &folder.join("token"), *shape)?);
    }
    Ok(rows)
}

/// What nobody proves to be entitled to, and what operators send.
fn without_credentials(program: &Path, folder: &Path, shape: Shape) -> Result<Vec<Row>> {
    // Whoever shows no token to this conductor is nobody, and tokens are all unknown to it.
    let options = ["--enabled-hardware-types", "fake-hardware", "--auth-strategy", "http_basic"];
    let victim = Victim::start(program, folder, &options)?;
    let operators = victim.operators_address();
    let token = victim.token()?;
    // The first answers of a process take memory of their own.
    request(victim.ramdisk, "POST", "/v1/heartbeat/nobody", "{}")?;
    request(victim.ramdisk, "POST", "/v1/continue_inspection", &report_with("0"))?;
    request(operators, "POST", "/v1/nodes", "{}")?;
    request_as(&token, operators, "POST", "/v1/nodes", "{}")?;
    let order = format!("{{\"driver\":\"fake-hardware\",\"extra\":{}}}", shape.value(ORDER - 100));
    let heartbeat = format!("{{\"callback_url\":\"\",\"x\":{}}}", shape.value(HEARTBEAT - 100));
    let (report, short) = (shape.value(REPORT - 200), shape.value(REPORT_TEXT - 200));
    let (nobody, ramdisk) = ("", victim.ramdisk);
    let strangers = [
        ("report of 16 MiB", nobody, ramdisk, "/v1/continue_inspection", report_with(&report)),
        ("report of 1 MiB", nobody, ramdisk, "/v1/continue_inspection", report_with(&short)),
        ("heartbeat of 256 KiB", nobody, ramdisk, "/v1/heartbeat/nobody", heartbeat.clone()),
        ("node of 1 MiB, without credentials", nobody, operators, "/v1/nodes", order.clone()),
        ("node of 1 MiB, of an administrator", &token, operators, "/v1/nodes", order),
    ];
    let subject = victim.subject();
    let row = |(what, token, address, path, body): (&str, &str, _, &str, String)| {
        let stranger = format!("{what}: {}", shape.name());
        let allowed = if token.is_empty() { WITHOUT_CREDENTIALS } else { WITH_A_TOKEN };
        subject.meets(&stranger, allowed, || {
            Ok(request_as(token, address, "POST", path, &body)?.chars().take(3).collect())
        })
    };
    strangers.into_iter().map(row).collect()
}

/// What an agent in the hands of a stranger answers.
fn with_a_token(program: &Path, folder: &Path, shape: Shape) -> Result<Vec<Row>> {
    fs::create_dir_all(folder)?;
    let own = folder.display().to_string();
    let victim = Victim::start(program, folder, &agent::options(&own))?;
    // One that answers with little, for what the first operation takes by itself.
    agent::answer(&victim, folder, 0, "0")?;
    let subject = victim.subject();
    let answers = [
        ("agent's answer of 64 MiB", ANSWER - 400),
        ("agent's answer of 16 MiB", (16 << 20) - 400),
        ("agent's answer of 1 MiB", RESULT - 400),
        ("agent's list of 4 MiB", LIST - 400),
    ];
    let row = |(index, (what, bytes)): (usize, (&str, usize))| {
        let stranger = format!("{what}: {}", shape.name());
        let value = shape.value(bytes);
        subject.meets(&stranger, WITH_A_TOKEN, || agent::answer(&victim, folder, index + 1, &value))
    };
    answers.into_iter().enumerate().map(row).collect()
}

/// A report of a machine that nobody knows, with something beside it.
fn report_with(value: &str) -> String {
    format!("{{\"inventory\":{{\"interfaces\":[{{\"mac_address\":\"02:00:00:00:00:01\"}}]}},\"x\":{value}}}")
}
