//! Which disks root device hints mean (section 8.2): what a disk has of what a hint is about.

use crate::device::BlockDevice;
use crate::error::Error;
use farrier_protocol::hints::{self, Comparison, Condition, Hint, HintError};
use serde::Serialize;
use serde_json::{Map, Value};
use std::fmt;

/// Bytes in the unit of the `size` hint.
const GIB: u128 = 1 << 30;

/// Text that stands for an attribute the device does not have.
const MISSING: &str = "none";

/// Hints by which a disk is known wherever it is found, and the place that it is connected to.
const IDENTITIES: [&str; 4] = ["serial", "wwn", "wwn_with_extension", "by_path"];

/// A set of hints, all of which a disk has to satisfy.
#[derive(Debug, Clone)]
pub struct Hints(hints::Hints);

/// What one hint says of one disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Name of the hint.
    pub hint: &'static str,
    /// Its value as given.
    pub wanted: String,
    /// What the disk has; several values where any of them would do.
    pub actual: String,
    /// Whether the disk satisfies the hint.
    pub holds: bool,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}, wanted {:?}", self.hint, self.actual, self.wanted)
    }
}

impl Hints {
    /// Reads a hints object.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidHint`] for the first hint that is unknown or malformed.
    pub fn parse(hints: &Value) -> Result<Self, Error> {
        hints::Hints::parse(hints).map(Self).map_err(not_understood)
    }

    /// Reads the hints of an object that was already taken apart.
    ///
    /// # Errors
    ///
    /// As [`Hints::parse`].
    pub fn parse_object(object: &Map<String, Value>) -> Result<Self, Error> {
        hints::Hints::parse_object(object).map(Self).map_err(not_understood)
    }

    /// Whether there are no hints at all, which every disk satisfies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What each hint says of `device`.
    pub fn verdicts(&self, device: &BlockDevice) -> Vec<Verdict> {
        self.0.iter().map(|hint| judge(hint, device)).collect()
    }

    /// Whether one of them names the identity of `device`, which no other one has, and all of them fit.
    pub fn identify(&self, device: &BlockDevice) -> bool {
        let is_identity = |hint: &&Hint| {
            let is_whole =
                matches!(hint.condition, Condition::Text(Comparison::Equal, _) | Condition::OneOf(_));
            is_whole && IDENTITIES.contains(&hint.name)
        };
        self.0.iter().any(|hint| is_identity(&hint)) && self.mismatch(device).is_none()
    }

    /// The first hint that `device` fails; nothing when it satisfies all.
    pub fn mismatch(&self, device: &BlockDevice) -> Option<Verdict> {
        self.0.iter().map(|hint| judge(hint, device)).find(|verdict| !verdict.holds)
    }
}

impl fmt::Display for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn not_understood(HintError { hint, value, reason }: HintError) -> Error {
    Error::InvalidHint { hint, value, reason }
}

fn judge(hint: &Hint, device: &BlockDevice) -> Verdict {
    let attribute = attribute(hint.name);
    Verdict {
        hint: hint.name,
        wanted: hint.given.clone(),
        actual: attribute.display(device),
        holds: attribute.satisfies(&hint.condition, device),
    }
}

/// What a hint looks at.
#[derive(Debug, Clone, Copy)]
enum Attribute {
    Size,
    Rotational,
    /// Every value the attribute has; one that fits is enough, for `s!=` too.
    Text(fn(&BlockDevice) -> Vec<String>),
    /// The one value of the attribute, in every form that tools write it: it differs from what no form is.
    Forms(fn(&BlockDevice) -> Vec<String>),
}

/// Hint names and what they look at, in the contract's order.
const ATTRIBUTES: &[(&str, Attribute)] = &[
    ("size", Attribute::Size),
    ("model", Attribute::Forms(|device| many(&device.models))),
    ("vendor", Attribute::Text(|device| one(&device.disk.vendor))),
    ("name", Attribute::Text(|device| vec![device.disk.name.clone()])),
    ("hctl", Attribute::Text(|device| one(&device.disk.hctl))),
    ("by_path", Attribute::Forms(|device| many(&device.by_paths))),
    ("tran", Attribute::Text(|device| one(&device.disk.tran))),
    ("serial", Attribute::Text(|device| many(&device.serials))),
    ("wwn", Attribute::Text(|device| many(&device.wwns))),
    ("wwn_with_extension", Attribute::Text(|device| one(&device.disk.wwn_with_extension))),
    ("wwn_vendor_extension", Attribute::Text(|device| one(&device.disk.wwn_vendor_extension))),
    ("rotational", Attribute::Rotational),
];

/// What the hint of this name looks at.
fn attribute(name: &str) -> Attribute {
    let found = ATTRIBUTES.iter().find(|(known, _)| *known == name);
    found.expect("a test holds every hint to have its attribute").1
}

impl Attribute {
    fn satisfies(self, condition: &Condition, device: &BlockDevice) -> bool {
        match (condition, self) {
            (Condition::Size(comparison, gib), _) => {
                comparison.holds(u128::from(device.disk.size).cmp(&(u128::from(*gib) * GIB)))
            }
            (Condition::Flag(flag), _) => device.disk.rotational == *flag,
            (condition, Self::Text(values)) => {
                values(device).iter().any(|value| condition.holds_for(&value.trim().to_lowercase()))
            }
            (condition, Self::Forms(forms)) => {
                let mut forms = forms(device).into_iter().map(|form| form.trim().to_lowercase());
                match condition {
                    Condition::Text(Comparison::NotEqual, _) => forms.all(|form| condition.holds_for(&form)),
                    _ => forms.any(|form| condition.holds_for(&form)),
                }
            }
            _ => false,
        }
    }

    fn display(self, device: &BlockDevice) -> String {
        match self {
            Self::Size => gib_text(device.disk.size),
            Self::Rotational => device.disk.rotational.to_string(),
            Self::Text(values) | Self::Forms(values) => values(device).join(" or "),
        }
    }
}

/// A size as operators read it.
pub(crate) fn gib_text(bytes: u64) -> String {
    let gib = bytes as f64 / GIB as f64;
    if gib.fract() == 0.0 { format!("{gib} GiB") } else { format!("{gib:.2} GiB") }
}

fn one(value: &Option<String>) -> Vec<String> {
    vec![value.clone().unwrap_or_else(|| MISSING.to_owned())]
}

fn many(values: &[String]) -> Vec<String> {
    if values.is_empty() { vec![MISSING.to_owned()] } else { values.to_vec() }
}

#[cfg(test)]
mod tests;
