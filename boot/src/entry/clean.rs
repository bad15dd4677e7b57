//! Removing the boot entries that systems of earlier users have left (section 9.10).

use super::store::{BootStore, entry_name};
use super::{device_path, load_option};
use crate::error::Error;
use farrier_linux::efivars::EfiVariables;
use regex_lite::{Regex, RegexBuilder};

/// What the device path of an entry matches that an installed system has made.
pub const DEFAULT_PATTERNS: &[&str] = &[r"^HD\(", r"shim.*\.efi", r"grub.*\.efi"];

/// With these a path begins that leads to a medium or into the firmware. Entries with other paths, as of
/// network cards, are the firmware's own and stay.
const BEGINNINGS: &[&str] = &["BBS", "HD", "FvFile", "FvVol", "PciRoot", "VenMsg", "VenHw", "UsbClass"];

/// Patterns of device paths.
#[derive(Debug)]
pub struct Patterns(Vec<Regex>);

impl Patterns {
    /// Reads regular expressions, which are looked for anywhere in a path and in either case.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPattern`].
    pub fn parse<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let compiled = patterns.into_iter().map(|pattern| {
            RegexBuilder::new(pattern).case_insensitive(true).build().map_err(|error| Error::InvalidPattern {
                pattern: pattern.to_owned(),
                reason: error.to_string(),
            })
        });
        Ok(Self(compiled.collect::<Result<_, _>>()?))
    }

    fn fit(&self, path: &str) -> bool {
        let name = path.split('(').next().unwrap_or_default();
        BEGINNINGS.contains(&name) && self.0.iter().any(|pattern| pattern.is_match(path))
    }
}

/// An entry that was removed.
#[derive(Debug, PartialEq, Eq)]
pub struct Removed {
    /// Number in the variable's name, `Boot####`.
    pub number: u16,
    /// Text in the firmware's menu.
    pub label: String,
    /// Where it led.
    pub path: String,
}

/// Removes every boot entry whose device path fits one of the patterns, and looks that it is gone. One that cannot be
/// removed takes no other with it.
///
/// # Errors
///
/// [`Error::BootVariable`] with the first one that cannot be removed, after all others were.
pub fn remove(patterns: &Patterns, variables: &EfiVariables) -> Result<Vec<Removed>, Error> {
    let path = |data: &[u8]| load_option::device_path(data).map(device_path::text);
    let fits = |data: &[u8]| path(data).is_some_and(|path| patterns.fit(&path));
    let (removed, refused) = BootStore::read(variables)?.delete(fits);
    if let Some(refusal) = refused.into_iter().next() {
        return Err(refusal.into());
    }
    if let Some((number, _)) = BootStore::read(variables)?.entries().iter().find(|(_, data)| fits(data)) {
        return Err(Error::BootVariable {
            name: entry_name(*number),
            reason: "it is still there after it was deleted".to_owned(),
        });
    }
    let described = removed.into_iter().map(|(number, data)| Removed {
        number,
        label: load_option::label(&data).unwrap_or_default(),
        path: path(&data).unwrap_or_default(),
    });
    Ok(described.collect())
}
