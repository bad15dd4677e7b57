//! The boot entries of the firmware and their order, as variables.

use super::load_option;
use crate::error::Error;
use farrier_linux::efivars::{EfiVariables, PERSISTENT, Variable};
use std::fmt;
use std::io;

/// Vendor GUID of the variables that UEFI itself defines.
pub const GLOBAL: &str = "8be4df61-93ca-11d2-aa0d-00e098032b8c";

/// A variable that could not be read, written or deleted.
#[derive(Debug)]
pub struct Refusal {
    name: String,
    action: &'static str,
    source: io::Error,
}

impl Refusal {
    fn new(name: &str, action: &'static str, source: io::Error) -> Self {
        Self { name: name.to_owned(), action, source }
    }

    /// Whether the firmware, or the kernel in its place, lets no variable be written.
    pub fn is_of_all_variables(&self) -> bool {
        matches!(self.source.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::Unsupported)
    }

    fn reason(&self) -> String {
        format!("{} failed: {}", self.action, self.source)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UEFI variable {}: {}", self.name, self.reason())
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::BootVariable { reason: refusal.reason(), name: refusal.name }
    }
}

/// An entry that was deleted: its number and its content.
pub type Deleted = (u16, Vec<u8>);

/// The boot entries of the firmware and their order.
#[derive(Debug)]
pub struct BootStore<'a> {
    variables: &'a EfiVariables,
    /// Number and content of each entry, by number.
    entries: Vec<(u16, Vec<u8>)>,
}

impl<'a> BootStore<'a> {
    /// Reads the entries. An entry that cannot be read has no owner, and its number is taken.
    ///
    /// # Errors
    ///
    /// The variables cannot be listed.
    pub fn read(variables: &'a EfiVariables) -> Result<Self, Refusal> {
        let directory = variables.directory().display().to_string();
        let names = variables.names().map_err(|error| Refusal::new(&directory, "listing", error))?;
        let mut entries = Vec::new();
        for number in names.iter().filter_map(|name| entry_number(name)) {
            let name = entry_name(number);
            let data = match variables.read(&name) {
                Ok(variable) => variable.map(|variable| variable.data),
                Err(error) => {
                    let refusal = Refusal::new(&name, "reading", error);
                    tracing::warn!("the boot entry is left alone: {refusal}");
                    None
                }
            };
            entries.push((number, data.unwrap_or_default()));
        }
        Ok(Self { variables, entries })
    }

    /// Number and content of each entry, by number.
    pub fn entries(&self) -> &[(u16, Vec<u8>)] {
        &self.entries
    }

    /// Deletes every entry with one of these labels, and returns the variables that refused that. An entry that
    /// cannot be decoded is foreign and stays (F12).
    pub fn delete_labelled(&mut self, labels: &[String]) -> Vec<Refusal> {
        self.delete(|data| load_option::replaceable_label(data).is_some_and(|found| labels.contains(&found)))
            .1
    }

    /// Deletes the entries whose content is as said, also from the boot order, and returns those that are gone, and
    /// which variables refused that.
    pub fn delete(&mut self, is_doomed: impl Fn(&[u8]) -> bool) -> (Vec<Deleted>, Vec<Refusal>) {
        let (doomed, mut kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.entries).into_iter().partition(|(_, data)| is_doomed(data));
        let (mut deleted, mut refused) = (Vec::new(), Vec::new());
        for entry in doomed {
            let name = entry_name(entry.0);
            match self.variables.delete(&name) {
                Ok(()) => deleted.push(entry),
                Err(error) => {
                    refused.push(Refusal::new(&name, "deleting", error));
                    kept.push(entry);
                }
            }
        }
        kept.sort_by_key(|(number, _)| *number);
        self.entries = kept;
        if !deleted.is_empty() {
            let is_kept = |number: &u16| deleted.iter().all(|(deleted, _)| deleted != number);
            let order = self.order().map(|order| order.into_iter().filter(is_kept).collect::<Vec<_>>());
            refused.extend(order.and_then(|order| self.write_order(&order)).err());
        }
        (deleted, refused)
    }

    /// Creates an entry under the lowest free number.
    ///
    /// # Errors
    ///
    /// There is none, or the variable cannot be written.
    pub fn create(&mut self, data: Vec<u8>) -> Result<u16, Refusal> {
        let is_free = |number: &u16| self.entries.iter().all(|(used, _)| used != number);
        let number = (0..=u16::MAX).find(is_free).ok_or_else(|| {
            Refusal::new("Boot####", "finding a number", io::Error::other("every number is used"))
        })?;
        self.write(&entry_name(number), data.clone())?;
        self.entries.push((number, data));
        Ok(number)
    }

    /// Puts `numbers` before all others in the boot order (F24).
    ///
    /// # Errors
    ///
    /// The variable cannot be read or written.
    pub fn put_first(&self, numbers: &[u16]) -> Result<(), Refusal> {
        let others = self.order()?.into_iter().filter(|number| !numbers.contains(number));
        let order: Vec<u16> = numbers.iter().copied().chain(others).collect();
        self.write_order(&order)
    }

    /// Numbers of the entries in the order in which the firmware tries them.
    ///
    /// # Errors
    ///
    /// The variable cannot be read.
    pub fn order(&self) -> Result<Vec<u16>, Refusal> {
        let name = order_name();
        let variable = self.variables.read(&name).map_err(|error| Refusal::new(&name, "reading", error))?;
        let data = variable.map_or_else(Vec::new, |variable| variable.data);
        // A stray odd byte at the end belongs to no number.
        Ok(data.chunks_exact(2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]])).collect())
    }

    fn write_order(&self, order: &[u16]) -> Result<(), Refusal> {
        self.write(&order_name(), order.iter().flat_map(|number| number.to_le_bytes()).collect())
    }

    /// Writes a variable and reads it back, since firmware is known to forget.
    fn write(&self, name: &str, data: Vec<u8>) -> Result<(), Refusal> {
        let variable = Variable { attributes: PERSISTENT, data };
        self.variables.write(name, &variable).map_err(|error| Refusal::new(name, "writing", error))?;
        let found = self.variables.read(name).map_err(|error| Refusal::new(name, "reading", error))?;
        if found.is_some_and(|found| found.data == variable.data) {
            return Ok(());
        }
        let forgotten = io::Error::other("it reads back differently from what was written");
        Err(Refusal::new(name, "writing", forgotten))
    }
}

/// Name of the variable with an entry.
pub fn entry_name(number: u16) -> String {
    format!("Boot{number:04X}-{GLOBAL}")
}

/// Name of the variable with the order.
pub fn order_name() -> String {
    format!("BootOrder-{GLOBAL}")
}

/// Number of the entry that a variable of this name has.
pub fn entry_number(name: &str) -> Option<u16> {
    let digits = name.strip_prefix("Boot")?.strip_suffix(GLOBAL)?.strip_suffix('-')?;
    let is_number = digits.len() == 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u16::from_str_radix(digits, 16).ok().filter(|_| is_number)
}
