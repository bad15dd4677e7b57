//! `farrier-agent plan`: which disk a deployment would write, and what speaks for and against each.
//!
//! Disks are only read. The hints come from the command line, so that they can be tried on any
//! machine before a conductor gets them.

use super::failure::CommandFailure;
use crate::device_settle::{self, facts};
use clap::{Arg, ArgAction, ArgMatches, Command};
use farrier_disk::guard::{self, Survey, SurveyedDisk};
use farrier_disk::list;
use farrier_protocol::lookup::Node;
use serde_json::{Map, Value};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

/// The properties of a node that a plan rests on, each the name of a flag too.
const PROPERTIES: &[(&str, &str, &str)] = &[
    ("root_device", "root-device", "Root device hints, such as {\"size\": \">= 100\"}"),
    ("skip_block_devices", "skip-block-devices", "Disks to keep, such as [{\"serial\": \"X\"}]"),
];

/// The subcommand.
pub fn command() -> Command {
    let json = Arg::new("json").long("json").help("Print an object").action(ArgAction::SetTrue);
    let properties =
        PROPERTIES.iter().map(|(_, flag, help)| Arg::new(*flag).long(*flag).value_name("JSON").help(*help));
    Command::new("plan")
        .about("Print the disk that root device hints choose, with the reasons; writes nothing")
        .arg(json)
        .args(properties)
}

/// Prints the plan on standard output: as text, or as an object.
///
/// # Errors
///
/// The hints cannot be read, or no disk would be written.
pub fn print(matches: &ArgMatches) -> anyhow::Result<()> {
    let awaited = facts::awaited(Path::new("/"));
    if !awaited.is_empty() {
        tracing::warn!("more disks may appear: {}", device_settle::text(&awaited));
    }
    let devices = list::list(Path::new("/sys"))?;
    let survey = guard::survey(&node(matches)?, &devices)?;
    let text = if matches.get_flag("json") {
        serde_json::to_string_pretty(&survey)? + "\n"
    } else {
        render(&survey)
    };
    io::stdout().write_all(text.as_bytes())?;
    match survey.target() {
        Some(_) => Ok(()),
        None => Err(CommandFailure::NoDisk.into()),
    }
}

/// A node with the properties given as flags.
fn node(matches: &ArgMatches) -> Result<Node, CommandFailure> {
    let mut properties = Map::new();
    for (name, flag, _) in PROPERTIES {
        if let Some(text) = matches.get_one::<String>(flag) {
            let value: Value = serde_json::from_str(text)
                .map_err(|source| CommandFailure::NotJson { option: flag, source })?;
            properties.insert((*name).to_owned(), value);
        }
    }
    Ok(Node { properties, ..Node::default() })
}

fn render(survey: &Survey) -> String {
    let mut text = format!("Wanted: {}\n", survey.wanted);
    for disk in &survey.disks {
        text += &format!("\n{}", render_disk(disk));
        if survey.chosen.as_ref() == Some(&disk.disk.name) {
            text += "  chosen\n";
        }
    }
    for warning in &survey.warnings {
        write!(text, "\nWarning: {warning}.\n").expect("writing to a String never fails");
    }
    let outcome = match (&survey.chosen, survey.target()) {
        (None, _) => "No disk fits.".to_owned(),
        (Some(name), None) => format!("{name} is chosen and would be refused."),
        (Some(name), Some(disk)) => {
            format!("{name} would be overwritten as a whole; {} on it would be lost.", contents(disk))
        }
    };
    text + "\n" + &outcome + "\n"
}

fn render_disk(found: &SurveyedDisk) -> String {
    let disk = &found.disk;
    let facts = [&disk.tran, &disk.vendor, &disk.model, &disk.serial].into_iter().flatten().cloned();
    let size = format!("{:.1} GiB", disk.size as f64 / f64::from(1 << 30));
    let head: Vec<_> = [disk.name.clone(), size].into_iter().chain(facts).collect();
    let mut text = head.join("  ") + "\n";
    for verdict in &found.verdicts {
        let answer = if verdict.holds { "yes" } else { "no" };
        writeln!(text, "  {answer:<4}{verdict}").expect("writing to a String never fails");
    }
    for obstacle in &found.obstacles {
        writeln!(text, "  no  {obstacle}").expect("writing to a String never fails");
    }
    text
}

fn contents(disk: &SurveyedDisk) -> String {
    match (disk.table, disk.partitions) {
        (Some(table @ ("gpt" | "msdos")), 1) => format!("a {table} table with 1 partition"),
        (Some(table @ ("gpt" | "msdos")), count) => format!("a {table} table with {count} partitions"),
        (Some("damaged"), _) => "a damaged partition table".to_owned(),
        _ => "whatever is".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_disk::guard::Obstacle;
    use farrier_disk::hints::Verdict;
    use farrier_protocol::inventory::Disk;

    fn disk(name: &str, holds: bool, obstacles: Vec<Obstacle>) -> SurveyedDisk {
        SurveyedDisk {
            disk: Disk { name: name.into(), size: 20 << 30, serial: Some("SN-1".into()), ..Disk::default() },
            verdicts: vec![Verdict { hint: "size", wanted: ">= 10".into(), actual: "20 GiB".into(), holds }],
            obstacles,
            table: Some("gpt"),
            partitions: 3,
        }
    }

    fn survey(chosen: Option<&str>, disks: Vec<SurveyedDisk>) -> Survey {
        Survey {
            wanted: "the root device hints size \">= 10\"".into(),
            chosen: chosen.map(str::to_owned),
            disks,
            warnings: Vec::new(),
        }
    }

    #[test]
    fn f28_the_choice_is_explained_hint_by_hint() {
        let used = vec![Obstacle::InUse("sdb1 is mounted on /data".into())];
        let found =
            survey(Some("/dev/sda"), vec![disk("/dev/sda", true, vec![]), disk("/dev/sdb", false, used)]);
        assert_eq!(
            render(&found),
            "Wanted: the root device hints size \">= 10\"\n\n\
             /dev/sda  20.0 GiB  SN-1\n  yes size is 20 GiB, wanted \">= 10\"\n  chosen\n\n\
             /dev/sdb  20.0 GiB  SN-1\n  no  size is 20 GiB, wanted \">= 10\"\n  no  in use: sdb1 is mounted on /data\n\n\
             /dev/sda would be overwritten as a whole; a gpt table with 3 partitions on it would be lost.\n"
        );
    }

    #[test]
    fn a_chosen_disk_that_cannot_be_written_is_no_target() {
        for (chosen, obstacles, expected) in [
            (None, vec![], "No disk fits."),
            (Some("/dev/sda"), vec![Obstacle::ReadOnly], "/dev/sda is chosen and would be refused."),
        ] {
            let found = survey(chosen, vec![disk("/dev/sda", true, obstacles)]);
            assert!(found.target().is_none());
            assert!(render(&found).ends_with(&format!("\n{expected}\n")));
        }
    }

    #[test]
    fn x04_an_entry_that_protects_nothing_stands_before_the_outcome() {
        let mut found = survey(Some("/dev/sda"), vec![disk("/dev/sda", true, vec![])]);
        found.warnings = vec!["the entry x matches no disk".into()];
        let text = render(&found);
        let (_, end) = text.split_once("  chosen\n").unwrap();
        assert!(end.starts_with("\nWarning: the entry x matches no disk.\n\n/dev/sda would be"), "{text}");
    }

    #[test]
    fn hints_come_from_the_command_line() {
        let given = ["plan", "--root-device", r#"{"size": 10}"#, "--skip-block-devices", "[]"];
        let node_of = |line: &[&str]| node(&command().get_matches_from(line));
        assert_eq!(node_of(&given).unwrap().root_device(), Some(&serde_json::json!({"size": 10})));
        assert!(node_of(&["plan"]).unwrap().root_device().is_none());
        let error = node_of(&["plan", "--root-device", "size=10"]).unwrap_err();
        assert_eq!(error.to_string(), "--root-device must be JSON");
    }
}
