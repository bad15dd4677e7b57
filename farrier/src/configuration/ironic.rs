//! `ironic.conf` as a configuration file of `farrier serve`.
//!
//! An option has Ironic's name wherever Ironic has the option, so the name decides. The section of Ironic decides too, since
//! Ironic's drivers use the same names for other things.

use super::command_line::serve_of;
use super::file::check;
use super::option::ServeOption;
use super::pages::literal;
use clap::Command;
use configparser::ini::{Ini, IniDefault};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The sections of Ironic whose options `farrier serve` has by the same names.
const SECTIONS: [&str; 11] = [
    "DEFAULT",
    "agent",
    "api",
    "auto_discovery",
    "conductor",
    "deploy",
    "dhcp",
    "inspector",
    "neutron",
    "pxe",
    "service_catalog",
];

/// Options that have another name in Ironic: section, name, and the name here.
const NAMES: &[(&str, &str, &str)] = &[
    ("DEFAULT", "host", "conductor_name"),
    ("DEFAULT", "http_basic_auth_user_file", "auth_file"),
    ("api", "public_endpoint", "admin_url"),
    ("auto_discovery", "driver", "auto_discovery_driver"),
    ("inspector", "extra_kernel_params", "inspection_kernel_params"),
    ("inspector", "hooks", "inspection_hooks"),
    ("inspector", "power_off", "inspection_power_off"),
    ("service_catalog", "endpoint_override", "api_url"),
];

/// The file cannot be read as `ironic.conf`.
#[derive(Debug, thiserror::Error)]
#[error("{0}; correct the line")]
pub(crate) struct NotIronic(String);

/// The configuration file for the options of `ironic.conf` that `farrier serve` has. The others follow as comments.
///
/// # Errors
///
/// [`NotIronic`].
pub(crate) fn import(cli: &Command, text: &str) -> Result<String, NotIronic> {
    let serve = serve_of(cli);
    let mut style = IniDefault::default();
    (style.case_sensitive, style.multiline) = (true, true);
    // A value may have such a character: oslo.config knows comments only in lines of their own.
    style.inline_comment_symbols = Some(Vec::new());
    let given = Ini::new_from_defaults(style).read(text.to_owned()).map_err(NotIronic)?;
    let given: BTreeMap<_, BTreeMap<_, _>> =
        given.into_iter().map(|(section, options)| (section, options.into_iter().collect())).collect();
    let mut tables: BTreeMap<String, String> = BTreeMap::new();
    let mut others = String::new();
    for (section, properties) in &given {
        for (name, value) in properties {
            match imported(&serve, section, name, value.as_deref().unwrap_or_default()) {
                Ok((option, value)) => {
                    let line = format!("{} = {}\n", option.key(), literal(option, &value));
                    tables.entry(option.table()).or_default().push_str(&line);
                }
                Err(reason) => {
                    let _ = writeln!(others, "# [{section}] {name}: {reason}");
                }
            }
        }
    }
    let mut file = String::new();
    for (table, lines) in &tables {
        let title = if table.is_empty() { String::new() } else { format!("[{table}]\n") };
        let _ = writeln!(file, "{title}{lines}");
    }
    if !others.is_empty() {
        let _ = write!(file, "# Options of ironic.conf that farrier serve did not take over:\n{others}");
    }
    Ok(file)
}

/// The option for one of Ironic's, with its values; or why there is none.
fn imported<'a>(
    serve: &'a Command,
    section: &str,
    name: &str,
    value: &str,
) -> Result<(ServeOption<'a>, Vec<String>), String> {
    let other_name = NAMES.iter().find(|(of, theirs, _)| (*of, *theirs) == (section, name));
    let key = other_name.map_or(name, |(_, _, key)| key);
    let option = ServeOption::all(serve)
        .find(|option| option.is_called(key) && (other_name.is_some() || SECTIONS.contains(&section)))
        .ok_or("no such option")?;
    let values: Vec<_> = match option.is_list() {
        true => value
            .split([',', '\n'])
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect(),
        false => vec![truth(value).map_or_else(|| value.trim().to_owned(), |is_on| is_on.to_string())],
    };
    if option.is_switch() {
        return truth(value)
            .map(|is_on| (option, vec![is_on.to_string()]))
            .ok_or("neither true nor false".to_owned());
    }
    values.iter().try_for_each(|value| check(serve, option, value))?;
    Ok((option, values))
}

/// A truth value as oslo.config writes it.
fn truth(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}
