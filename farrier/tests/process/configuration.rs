//! The configuration of `farrier serve` by files, through the program.

use crate::conductor::farrier;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Runs the program: its exit status, output and error output.
fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = farrier().args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A configuration file in a folder.
fn file(folder: &Path, text: &str) -> String {
    let file = folder.join("farrier.toml");
    fs::write(&file, text).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    file.to_str().unwrap().to_owned()
}

/// The options that the help of `farrier serve` describes, as keys.
fn options_of_help() -> BTreeSet<String> {
    let (_, help, _) = run(&["serve", "--help"]);
    let option = |line: &str| {
        let long = line
            .trim_start()
            .split_once("--")
            .filter(|(before, _)| before.is_empty() || before.ends_with(", "))?
            .1;
        Some(long.split([' ', '=']).next()?.replace('-', "_"))
    };
    // Texts are indented by more than names.
    help.lines().filter(|line| line.len() - line.trim_start().len() < 8).filter_map(option).collect()
}

#[test]
fn process_the_default_file_the_schema_and_the_effective_configuration_name_each_option_of_the_help() {
    let folder = tempfile::tempdir().unwrap();
    let (_, default, _) = run(&["config", "default"]);
    let file = file(folder.path(), &default);
    assert_eq!(run(&["config", "check", "--config-file", &file]).1, "The configuration is valid.\n");
    let not_in_files = ["config_file", "config_dir", "help", "version"].map(str::to_owned);
    let expected: BTreeSet<_> =
        options_of_help().into_iter().filter(|key| !not_in_files.contains(key)).collect();
    assert!(expected.len() > 80, "{expected:?}");
    let key = |line: &str| {
        Some(line.trim_start_matches("# ").split_once(" =")?.0.to_owned()).filter(|key| !key.contains(' '))
    };
    let (_, effective, _) = run(&["config", "show", "--effective", "--config-file", &file]);
    assert_eq!(effective.lines().filter_map(key).collect::<BTreeSet<_>>(), expected);
    assert_eq!(default.lines().filter_map(key).collect::<BTreeSet<_>>(), expected);
    let schema: serde_json::Value = serde_json::from_str(&run(&["config", "schema"]).1).unwrap();
    let mut named = BTreeSet::new();
    for (name, property) in schema["properties"].as_object().unwrap() {
        match property["properties"].as_object() {
            Some(table) => named.extend(table.keys().cloned()),
            None => drop(named.insert(name.clone())),
        }
    }
    assert_eq!(named, expected);
}

#[test]
fn process_a_configuration_file_that_cannot_be_used_stops_the_conductor_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    for (text, expected) in [
        (
            "[limits]\nmax_concurent_deploy = 3\n",
            "farrier.toml:2: unknown key [limits] max_concurent_deploy; the nearest key is [limits] max_concurrent_deploy",
        ),
        (
            "heartbeat_timeout = \"5m\"\n",
            "farrier.toml:1: heartbeat_timeout: invalid value \"5m\" for SECONDS: invalid digit found in string",
        ),
        ("listen = \"0.0.0.0:0\"\nlisten = \"127.0.0.1:0\"\n", "farrier.toml:2: duplicate key"),
    ] {
        let file = file(folder.path(), text);
        for command in [&["serve", "--state-dir", state.to_str().unwrap()][..], &["config", "check"]] {
            let (code, _, said) = run(&[command, &["--config-file", &file]].concat());
            assert!(
                said.contains(expected) && said.contains("FAR-0906") && said.lines().count() == 1,
                "{command:?}: {said}"
            );
            assert!(matches!(code, Some(1 | 2)), "{code:?}");
        }
    }
    assert!(!state.exists());
}

#[test]
fn process_the_example_of_the_book_is_valid_and_each_value_has_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let page =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/conductor-configuration.md"))
            .unwrap();
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let file = file(folder.path(), example);
    let mut command = farrier();
    command.args(["config", "show", "--config-file", &file]).env("FARRIER_MAX_CONCURRENT_CLEAN", "7");
    let shown = String::from_utf8(command.output().unwrap().stdout).unwrap();
    for line in example.lines().filter(|line| line.contains(" = ")) {
        assert!(
            shown.lines().any(|shown| shown.starts_with(&format!("{line}  # {file}:"))),
            "{line} in {shown}"
        );
    }
    assert!(
        shown.contains("max_concurrent_clean = 7  # environment FARRIER_MAX_CONCURRENT_CLEAN\n"),
        "{shown}"
    );
}
