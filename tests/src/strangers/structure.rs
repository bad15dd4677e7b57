//! Strangers whose JSON is small as text and large as values: nests, long lists, many keys, repeated keys, long names.

use super::conductor::{Honest, Victim, request};
use super::{Extent, Row};
use anyhow::Result;
use std::path::Path;

/// How many KiB a stranger without credentials may add.
const WITHOUT_CREDENTIALS: u64 = 16 << 10;
/// How long an honest client may wait meanwhile, in milliseconds.
const HONEST_LIMIT_MS: f64 = 1000.0;
/// The longest report that is read, in bytes.
const REPORT: usize = 16 << 20;
/// The longest heartbeat that anybody reads, in bytes.
const HEARTBEAT: usize = 1 << 20;

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
                let name = "n".repeat((bytes - 20) / 4);
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
        let victim = Victim::start(
            program,
            &folder.join(shape.name().replace(' ', "-")),
            &["--enabled-hardware-types", "fake-hardware"],
        )?;
        // The first answers of a process take memory of their own.
        request(victim.ramdisk, "POST", "/v1/heartbeat/nobody", "{}")?;
        let report = report_with(&shape.value(REPORT - 200));
        rows.push(row(&victim, &format!("report: {}", shape.name()), "/v1/continue_inspection", &report)?);
        let heartbeat = format!("{{\"callback_url\":\"\",\"x\":{}}}", shape.value(HEARTBEAT - 100));
        rows.push(row(&victim, &format!("heartbeat: {}", shape.name()), "/v1/heartbeat/nobody", &heartbeat)?);
    }
    Ok(rows)
}

/// A report of a machine that nobody knows, with something beside it.
fn report_with(value: &str) -> String {
    format!("{{\"inventory\":{{\"interfaces\":[{{\"mac_address\":\"02:00:00:00:00:01\"}}]}},\"x\":{value}}}")
}

fn row(victim: &Victim, stranger: &str, path: &str, body: &str) -> Result<Row> {
    let before_kib = victim.peak_kib()?;
    let honest = Honest::begin(victim.ramdisk);
    let answer = request(victim.ramdisk, "POST", path, body)?;
    let honest_ms = honest.longest().as_secs_f64() * 1000.0;
    Ok(Row {
        stranger: stranger.to_owned(),
        answer: answer.chars().take(3).collect(),
        before_kib,
        after_kib: victim.peak_kib()?,
        allowed_kib: WITHOUT_CREDENTIALS,
        honest_ms,
        honest_limit_ms: HONEST_LIMIT_MS,
    })
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
