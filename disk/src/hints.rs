//! Root device hints: what to look for in a disk (section 8.2).
//!
//! Where the original behaviour is an accident (comparing encoded text, text operators on sizes that can
//! never match), this follows the sane reading or refuses the hint.

use crate::device::BlockDevice;
use crate::error::Error;
use serde::Serialize;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::fmt;

/// Bytes in the unit of the `size` hint.
const GIB: u128 = 1 << 30;

/// Text that stands for an attribute the device does not have.
const MISSING: &str = "none";

/// A set of hints, all of which a disk has to satisfy.
#[derive(Debug, Clone)]
pub struct Hints(Vec<Hint>);

#[derive(Debug, Clone)]
struct Hint {
    name: &'static str,
    attribute: Attribute,
    /// The value as the operator wrote it.
    given: String,
    condition: Condition,
}

#[derive(Debug, Clone)]
enum Condition {
    Size(Comparison, u64),
    Flag(bool),
    Text(Comparison, String),
    Contains(String),
    OneOf(Vec<String>),
}

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
        let object = hints.as_object().ok_or_else(|| Error::InvalidHint {
            hint: "root_device".to_owned(),
            value: hints.to_string(),
            reason: "hints must be an object of hint names and values".to_owned(),
        })?;
        Self::parse_object(object)
    }

    /// Reads the hints of an object that was already taken apart.
    ///
    /// # Errors
    ///
    /// As [`Hints::parse`].
    pub fn parse_object(object: &Map<String, Value>) -> Result<Self, Error> {
        object
            .iter()
            .map(|(name, value)| {
                Hint::parse(name, value).map_err(|reason| Error::InvalidHint {
                    hint: name.clone(),
                    value: value.to_string(),
                    reason,
                })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether there are no hints at all, which every disk satisfies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What each hint says of `device`.
    pub fn verdicts(&self, device: &BlockDevice) -> Vec<Verdict> {
        self.0.iter().map(|hint| hint.judge(device)).collect()
    }

    /// The first hint that `device` fails; nothing when it satisfies all.
    pub fn mismatch(&self, device: &BlockDevice) -> Option<Verdict> {
        self.0.iter().map(|hint| hint.judge(device)).find(|verdict| !verdict.holds)
    }
}

impl fmt::Display for Hints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, hint) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{} {:?}", hint.name, hint.given)?;
        }
        Ok(())
    }
}

impl Hint {
    fn parse(name: &str, value: &Value) -> Result<Self, String> {
        let (name, attribute) = *ATTRIBUTES
            .iter()
            .find(|(known, _)| *known == name)
            .ok_or_else(|| format!("unknown hint, known are {}", known_names()))?;
        let given = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) if matches!(attribute, Attribute::Rotational) => value.to_string(),
            Value::Number(_) if matches!(attribute, Attribute::Size | Attribute::Rotational) => {
                value.to_string()
            }
            _ => return Err("the value must be a string".to_owned()),
        };
        let text = given.trim().to_lowercase();
        let condition = match attribute {
            Attribute::Size => parse_size(&text)?,
            Attribute::Rotational => Condition::Flag(parse_flag(&text)?),
            Attribute::Text(_) | Attribute::Forms(_) => parse_text(&text)?,
        };
        Ok(Self { name, attribute, given, condition })
    }

    fn judge(&self, device: &BlockDevice) -> Verdict {
        Verdict {
            hint: self.name,
            wanted: self.given.clone(),
            actual: self.attribute.display(device),
            holds: self.holds(device),
        }
    }

    fn holds(&self, device: &BlockDevice) -> bool {
        match (&self.condition, self.attribute) {
            (Condition::Size(comparison, gib), _) => {
                comparison.holds(u128::from(device.disk.size).cmp(&(u128::from(*gib) * GIB)))
            }
            (Condition::Flag(flag), _) => device.disk.rotational == *flag,
            (condition, Attribute::Text(values)) => {
                values(device).iter().any(|value| condition.holds_for(&value.trim().to_lowercase()))
            }
            (condition, Attribute::Forms(forms)) => {
                let mut forms = forms(device).into_iter().map(|form| form.trim().to_lowercase());
                match condition {
                    Condition::Text(Comparison::NotEqual, _) => forms.all(|form| condition.holds_for(&form)),
                    _ => forms.any(|form| condition.holds_for(&form)),
                }
            }
            _ => false,
        }
    }
}

impl Condition {
    fn holds_for(&self, actual: &str) -> bool {
        let holds = match self {
            Self::Text(comparison, wanted) => comparison.holds(actual.cmp(wanted)),
            Self::Contains(wanted) => actual.contains(wanted.as_str()),
            Self::OneOf(wanted) => wanted.iter().any(|wanted| wanted == actual),
            Self::Size(..) | Self::Flag(_) => false,
        };
        holds && !actual.is_empty()
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

impl Attribute {
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

fn known_names() -> String {
    ATTRIBUTES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn one(value: &Option<String>) -> Vec<String> {
    vec![value.clone().unwrap_or_else(|| MISSING.to_owned())]
}

fn many(values: &[String]) -> Vec<String> {
    if values.is_empty() { vec![MISSING.to_owned()] } else { values.to_vec() }
}

#[derive(Debug, Clone, Copy)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
enum Operator {
    Number(Comparison),
    Text(Comparison),
    In,
    Or,
    Unsupported,
}

/// Operators as written; one that begins another comes after it.
const OPERATORS: &[(&str, Operator)] = &[
    ("<all-in>", Operator::Unsupported),
    ("<range-in>", Operator::Unsupported),
    ("<in>", Operator::In),
    ("<or>", Operator::Or),
    ("s==", Operator::Text(Comparison::Equal)),
    ("s!=", Operator::Text(Comparison::NotEqual)),
    ("s<=", Operator::Text(Comparison::LessOrEqual)),
    ("s>=", Operator::Text(Comparison::GreaterOrEqual)),
    ("s<", Operator::Text(Comparison::Less)),
    ("s>", Operator::Text(Comparison::Greater)),
    ("==", Operator::Number(Comparison::Equal)),
    ("!=", Operator::Number(Comparison::NotEqual)),
    ("<=", Operator::Number(Comparison::LessOrEqual)),
    (">=", Operator::Number(Comparison::GreaterOrEqual)),
    ("=", Operator::Number(Comparison::GreaterOrEqual)),
    ("<", Operator::Number(Comparison::Less)),
    (">", Operator::Number(Comparison::Greater)),
];

/// Splits off the operator; an operator counts at the start only.
fn split_operator(text: &str) -> (Option<Operator>, &str) {
    OPERATORS
        .iter()
        .find_map(|(written, operator)| Some((Some(*operator), text.strip_prefix(written)?.trim())))
        .unwrap_or((None, text))
}

fn parse_size(text: &str) -> Result<Condition, String> {
    let (operator, value) = split_operator(text);
    let comparison = match operator {
        None => Comparison::Equal,
        Some(Operator::Number(comparison)) => comparison,
        Some(_) => return Err("size is a number, compare it with ==, !=, <, <=, > or >=".to_owned()),
    };
    match value.parse() {
        Ok(gib) if gib > 0 => Ok(Condition::Size(comparison, gib)),
        _ => Err("size must be a whole number of GiB above 0".to_owned()),
    }
}

fn parse_flag(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "true" | "on" | "y" | "yes" => Ok(true),
        "0" | "f" | "false" | "off" | "n" | "no" => Ok(false),
        _ => Err("rotational must be true or false".to_owned()),
    }
}

fn parse_text(text: &str) -> Result<Condition, String> {
    let (operator, value) = split_operator(text);
    if value.is_empty() {
        return Err("the value is empty".to_owned());
    }
    match operator {
        None => Ok(Condition::Text(Comparison::Equal, value.to_owned())),
        Some(Operator::Text(comparison)) => Ok(Condition::Text(comparison, value.to_owned())),
        Some(Operator::In) => Ok(Condition::Contains(value.to_owned())),
        Some(Operator::Or) => {
            let values: Vec<_> = value.split("<or>").map(str::trim).map(str::to_owned).collect();
            if values.iter().any(String::is_empty) {
                return Err("a value between two <or> is empty".to_owned());
            }
            Ok(Condition::OneOf(values))
        }
        Some(Operator::Number(_)) => {
            Err("this hint is text, compare it with s==, s!=, <in> or <or>".to_owned())
        }
        Some(Operator::Unsupported) => Err("<all-in> and <range-in> do not apply to disks".to_owned()),
    }
}

#[cfg(test)]
mod tests;
