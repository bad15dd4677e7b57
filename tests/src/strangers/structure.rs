//! Strangers whose JSON is small as text and large as values: nests, long lists, many keys, repeated keys, long names.

use super::conductor::{Honest, Victim, request};
use super::{Extent, Row, agent};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// How many KiB a stranger without credentials may add.
const WITHOUT_CREDENTIALS: u64 = 16 << 10;
/// How many KiB one with the token of an agent may add.
const WITH_A_TOKEN: u64 = 64 << 10;
/// How long an honest client may wait meanwhile, in milliseconds.
const HONEST_LIMIT_MS: f64 = 2000.0;
/// The longest report that is read, in bytes.
const REPORT: usize = 16 << 20;
/// A shorter one, in bytes.
const REPORT_TEXT: usize = 1 << 20;
/// The longest heartbeat that anybody reads, in bytes.
const HEARTBEAT: usize = 256 << 10;
/// The longest answers of an agent that are read: one result, and the list of all commands, in bytes.
const RESULT: usize = 1 << 20;
const LIST: usize = 4 << 20;
/// The longest answer of an agent, in bytes.
const ANSWER: usize = 64 << 20;

/// A shape of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Objects in objects, as deep as is allowed, again and again.
    Nests,
    /// A list of one-digit numbers.
    LongList,
    /// A list of empty lists.
    EmptyLists,
    /// An object with as many keys as fit.
    ManyKeys,
    /// The same key again and again.
    RepeatedKeys,
    /// A few keys that are as long as can be.
    LongNames,
}

impl Shape {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Nests, Self::LongList, Self::EmptyLists, Self::ManyKeys, Self::RepeatedKeys, Self::LongNames];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nests => "nests",
            Self::LongList => "a long list",
            Self::EmptyLists => "empty lists",
            Self::ManyKeys => "many keys",
            Self::RepeatedKeys => "repeated keys",
            Self::LongNames => "long names",
        }
    }

    /// A value of this shape of at most so many bytes.
    pub fn value(self, bytes: usize) -> String {
        /// One less than what is refused because of its depth, and what stands around it.
        const DEEP: usize = 22;
        let list = |one: &str| {
            let count = (bytes - 2) / (one.len() + 1);
            format!("[{}]", vec![one; count].join(","))
        };
        match self {
            Self::Nests => list(&format!("{}0{}", "{\"\":".repeat(DEEP), "}".repeat(DEEP))),
            Self::LongList => list("0"),
            Self::EmptyLists => list("[]"),
            Self::ManyKeys => {
                let keys: Vec<_> = (0..(bytes - 2) / 11).map(|index| format!("\"{index:06x}\":0")).collect();
                format!("{{{}}}", keys.join(","))
            }
            Self::RepeatedKeys => {
                let pairs = vec!["\"k\":{\"k\":0}"; (bytes - 2) / 12];
                format!("{{{}}}", pairs.join(","))
            }
            Self::LongNames => {
                let name = "n".repeat((bytes - 30) / 4);
                let keys: Vec<_> = (0..4).map(|index| format!("\"{index}{name}\":0")).collect();
                format!("{{{}}}", keys.join(","))
            }
        }
    }
}

/// One row for each of them.
///
/// # Errors
///
/// A conductor did not start.
pub fn rows(program: &Path, folder: &Path, extent: Extent) -> Result<Vec<Row>> {
    let shapes = if extent == Extent::Quick { &Shape::ALL[..1] } else { &Shape::ALL[..] };
    let mut rows = Vec::new();
    for shape in shapes {
        let folder = folder.join(shape.name().replace(' ', "-"));
        rows.extend(without_credentials(program, &folder.join("none"), *shape)?);
        rows.extend(with_a_token(program, &folder.join("token"), *shape)?);
    }
    Ok(rows)
}

/// What nobody proves to be entitled to.
fn without_credentials(program: &Path, folder: &Path, shape: Shape) -> Result<Vec<Row>> {
    let victim = Victim::start(program, folder, &["--enabled-hardware-types", "fake-hardware"])?;
    // The first answers of a process take memory of their own.
    request(victim.ramdisk, "POST", "/v1/heartbeat/nobody", "{}")?;
    request(victim.ramdisk, "POST", "/v1/continue_inspection", &report_with("0"))?;
    let mut rows = Vec::new();
    for (what, path, body) in [
        ("report", "/v1/continue_inspection", report_with(&shape.value(REPORT - 200))),
        ("short report", "/v1/continue_inspection", report_with(&shape.value(REPORT_TEXT - 200))),
        (
            "heartbeat",
            "/v1/heartbeat/nobody",
            format!("{{\"callback_url\":\"\",\"x\":{}}}", shape.value(HEARTBEAT - 100)),
        ),
    ] {
        let stranger = format!("{what}: {}", shape.name());
        rows.push(row(&victim, &stranger, WITHOUT_CREDENTIALS, || {
            let answer = request(victim.ramdisk, "POST", path, &body)?;
            Ok(answer.chars().take(3).collect())
        })?);
    }
    Ok(rows)
}

/// What an agent in the hands of a stranger answers.
fn with_a_token(program: &Path, folder: &Path, shape: Shape) -> Result<Vec<Row>> {
    fs::create_dir_all(folder)?;
    let own = folder.display().to_string();
    let victim = Victim::start(program, folder, &agent::options(&own))?;
    // One that answers with little, for what the first operation takes by itself.
    agent::answer(&victim, folder, 0, "0")?;
    let mut rows = Vec::new();
    for (index, (what, bytes)) in
        [("answer", ANSWER - 400), ("answer that is read", RESULT - 400), ("list that is read", LIST - 400)]
            .into_iter()
            .enumerate()
    {
        let stranger = format!("agent's {what}: {}", shape.name());
        let value = shape.value(bytes);
        rows.push(row(&victim, &stranger, WITH_A_TOKEN, || {
            let failure = agent::answer(&victim, folder, index + 1, &value)?;
            Ok(failure.chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect())
        })?);
    }
    Ok(rows)
}

/// A report of a machine that nobody knows, with something beside it.
fn report_with(value: &str) -> String {
    format!("{{\"inventory\":{{\"interfaces\":[{{\"mac_address\":\"02:00:00:00:00:01\"}}]}},\"x\":{value}}}")
}

fn row(
    victim: &Victim,
    stranger: &str,
    allowed_kib: u64,
    act: impl FnOnce() -> Result<String>,
) -> Result<Row> {
    let before_kib = victim.peak_kib()?;
    let honest = Honest::begin(victim.ramdisk);
    let answer = act();
    let honest_ms = honest.longest().as_secs_f64() * 1000.0;
    let answer = answer.with_context(|| format!("{stranger}\n{}", victim.log_tail()))?;
    let stranger = stranger.to_owned();
    let (after_kib, honest_limit_ms) = (victim.peak_kib()?, HONEST_LIMIT_MS);
    Ok(Row { stranger, answer, before_kib, after_kib, allowed_kib, honest_ms, honest_limit_ms })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_shape_is_json_and_fills_its_room() {
        for shape in Shape::ALL {
            let text = shape.value(10_000);
            assert!(text.len() <= 10_000 && text.len() > 9_800, "{shape:?} {}", text.len());
            assert!(serde_json::from_str::<Value>(&text).is_ok(), "{shape:?}");
        }
    }
}
