//! The logs of a machine and of what manages it (DMTF LogService and LogEntry).
//!
//! A BMC may have a thousand entries, in pages, of which either the first or the last is the newest: the newest end is
//! looked for, and dozens are read of it. Its clock is read too, and the conductor's clock sets the times.

use super::client::bmc::Bmc;
use super::client::error::RedfishError;
use super::client::resource::Resource;
use super::system::System;
use farrier_conductor::model::LogEntry;
use farrier_conductor::model::clock::{Clock, SystemClock};
use serde_json::Value;
use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// Most logs that are read.
const MOST_LOGS: usize = 4;

/// Most entries that are read of a log.
const MOST_ENTRIES: usize = 40;

/// Most entries that are read one by one, where a list has their paths alone.
const MOST_SINGLE: usize = 12;

/// Words in the names of logs that tell nothing of a machine that does not boot.
const OTHER_LOGS: &[&str] =
    &["audit", "crash", "dump", "fault", "journal", "postcode", "security", "telemetry"];

/// What was written into the logs since a moment, the oldest first. A log that cannot be read takes nothing from the
/// others.
///
/// # Errors
///
/// [`RedfishError`] when the machine cannot be read.
pub(super) async fn read(system: &System, since: OffsetDateTime) -> Result<Vec<LogEntry>, RedfishError> {
    let (seen, bmc) = (system.read().await?, &system.bmc);
    let mut places: Vec<_> = seen.link("/LogServices").map(str::to_owned).into_iter().collect();
    let mut ahead = Duration::ZERO;
    let managers = system.managers(&seen).await.inspect_err(|error| tracing::debug!("{error}"));
    for manager in managers.unwrap_or_default() {
        let Ok(manager) = bmc.get(&manager).await else { continue };
        if let Some(clock) = time(manager.at("/DateTime")) {
            ahead = clock - SystemClock.now();
        }
        places.extend(manager.link("/LogServices").map(str::to_owned));
    }
    let mut found = Vec::new();
    for list in lists(bmc, &places).await {
        match entries(bmc, &list, ahead).await {
            Ok(entries) => found.extend(LogEntry::since(entries, since)),
            Err(error) => tracing::debug!("{error}"),
        }
    }
    // Entries without a time stay where they stand.
    let mut last = since;
    found.sort_by_cached_key(|entry| {
        last = entry.at.unwrap_or(last);
        last
    });
    Ok(found)
}

/// The paths of the lists of entries of those logs that may tell something.
async fn lists(bmc: &Bmc, places: &[String]) -> Vec<String> {
    let mut lists = Vec::new();
    for place in places {
        for log in bmc.members(place).await.unwrap_or_default() {
            let name = log.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_lowercase();
            if lists.len() == MOST_LOGS || OTHER_LOGS.iter().any(|word| name.contains(word)) {
                continue;
            }
            let Ok(log) = bmc.get(&log).await else { continue };
            let is_on = log.at("/ServiceEnabled").as_bool().unwrap_or(true);
            let is_meant = is_on && !is_named_otherwise(&log);
            lists.extend(log.link("/Entries").filter(|_| is_meant).map(str::to_owned));
        }
    }
    lists
}

/// Whether the name of a log says that it is another kind of log: the security log of an iLO is at `SL`.
fn is_named_otherwise(log: &Resource) -> bool {
    let name = log.text("/Name").unwrap_or_default().to_lowercase();
    name.split_whitespace().any(|word| OTHER_LOGS.contains(&word))
}

/// The newest entries of a log, the oldest of them first.
async fn entries(bmc: &Bmc, list: &str, ahead: Duration) -> Result<Vec<LogEntry>, RedfishError> {
    let first = bmc.get(list).await?;
    let members = newest(bmc, list, &first).await;
    let mut found: Vec<_> = members.iter().filter_map(|entry| read_entry(entry, ahead)).collect();
    if is_newest_first(&members) {
        found.reverse();
    }
    Ok(found.split_off(found.len().saturating_sub(MOST_ENTRIES)))
}

/// The members of a list at its newest end. Where it has several pages and begins with the oldest, that is asked for by
/// its place, or else by its pages.
async fn newest(bmc: &Bmc, list: &str, first: &Resource) -> Vec<Value> {
    let members = members(first);
    let total = first.at("/Members@odata.count").as_u64().unwrap_or_default() as usize;
    let is_all = first.text("/Members@odata.nextLink").is_none() || total <= members.len();
    let members = match is_all || is_newest_first(&members) {
        true => members,
        false => {
            let end = format!("{list}?$skip={}", total.saturating_sub(MOST_ENTRIES));
            match bmc.get(&end).await {
                Ok(page) if page.at("/Members") != first.at("/Members") => self::members(&page),
                _ => members,
            }
        }
    };
    if members.iter().any(|entry| entry.get("Created").is_some() || entry.get("Message").is_some()) {
        return members;
    }
    one_by_one(bmc, &members).await
}

/// Reads entries of which the list has the paths alone: some of the end that is newer.
async fn one_by_one(bmc: &Bmc, members: &[Value]) -> Vec<Value> {
    let mut paths: Vec<_> = members.iter().filter_map(|entry| entry["@odata.id"].as_str()).collect();
    let ends = [paths.first(), paths.last()].into_iter().flatten().copied();
    let mut ends_read = Vec::new();
    for path in ends {
        ends_read.extend(bmc.get(path).await.ok().map(|entry| entry.at("").clone()));
    }
    if !is_newest_first(&ends_read) {
        paths.reverse();
    }
    let mut found = Vec::new();
    for path in paths.into_iter().take(MOST_SINGLE) {
        found.extend(bmc.get(path).await.ok().map(|entry| entry.at("").clone()));
    }
    found
}

fn members(page: &Resource) -> Vec<Value> {
    page.at("/Members").as_array().cloned().unwrap_or_default()
}

fn is_newest_first(entries: &[Value]) -> bool {
    let mut times = entries.iter().filter_map(|entry| time(&entry["Created"]));
    let first = times.next();
    first.zip(times.next_back()).is_some_and(|(first, last)| first > last)
}

/// An entry, with what it says in words and, where it has such, in bytes.
fn read_entry(entry: &Value, ahead: Duration) -> Option<LogEntry> {
    let text = |key: &str| entry[key].as_str().map(str::trim).filter(|text| !text.is_empty());
    let severity =
        text("Severity").filter(|severity| *severity != "OK").map(|severity| format!("{severity}: "));
    let message = text("Message").or(text("Description"));
    let identifier = text("MessageId").filter(|id| message.is_none_or(|message| !message.contains(id)));
    let said =
        [message, text("OemRecordFormat"), identifier].into_iter().flatten().collect::<Vec<_>>().join(", ");
    if said.is_empty() {
        return None;
    }
    let at = time(&entry["Created"]).map(|at| at - ahead);
    Some(LogEntry { at, said: format!("{}{said}", severity.unwrap_or_default()) })
}

/// A time, unless it is from before the BMC knew one.
fn time(value: &Value) -> Option<OffsetDateTime> {
    let time = OffsetDateTime::parse(value.as_str()?, &Rfc3339).ok()?;
    (time.year() > 2000).then_some(time)
}
