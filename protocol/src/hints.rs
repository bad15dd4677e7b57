//! Root device hints: what to look for in a disk (section 8.2). What a disk has is for those to say who see it.
//!
//! Where the original behaviour is an accident (comparing encoded text, text operators on sizes that can
//! never match), this follows the sane reading or refuses the hint.

use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::fmt;

/// A hint that cannot be understood. Such hints match no disk (section 8.1).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("root device hint {hint} with value {value}: {reason}")]
pub struct HintError {
    /// Name of the hint.
    pub hint: String,
    /// The value as given.
    pub value: String,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

/// A set of hints, all of which a disk has to satisfy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hints(Vec<Hint>);

/// What one hint wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// Its name, one of `NAMES`.
    pub name: &'static str,
    /// The value as the operator wrote it.
    pub given: String,
    /// What it means.
    pub condition: Condition,
}

/// What a value must be. Texts are in lower case and without spaces around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// A size that compares so with a number of GiB.
    Size(Comparison, u64),
    /// Yes or no.
    Flag(bool),
    /// A text that compares so with this one.
    Text(Comparison, String),
    /// A text that contains this one.
    Contains(String),
    /// One of these texts.
    OneOf(Vec<String>),
}

/// What a hint is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Size,
    Flag,
    Text,
}

/// The hints and what they are about, in the contract's order.
const SUBJECTS: [(&str, Subject); 12] = [
    ("size", Subject::Size),
    ("model", Subject::Text),
    ("vendor", Subject::Text),
    ("name", Subject::Text),
    ("hctl", Subject::Text),
    ("by_path", Subject::Text),
    ("tran", Subject::Text),
    ("serial", Subject::Text),
    ("wwn", Subject::Text),
    ("wwn_with_extension", Subject::Text),
    ("wwn_vendor_extension", Subject::Text),
    ("rotational", Subject::Flag),
];

/// The names of all hints, in the contract's order.
pub fn names() -> impl Iterator<Item = &'static str> {
    SUBJECTS.iter().map(|(name, _)| *name)
}

impl Hints {
    /// Reads a hints object.
    ///
    /// # Errors
    ///
    /// [`HintError`] for the first hint that is unknown or malformed.
    pub fn parse(hints: &Value) -> Result<Self, HintError> {
        let object = hints.as_object().ok_or_else(|| HintError {
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
    pub fn parse_object(object: &Map<String, Value>) -> Result<Self, HintError> {
        let read = |(name, value): (&String, &Value)| {
            let refused = |reason| HintError { hint: name.clone(), value: value.to_string(), reason };
            Hint::parse(name, value).map_err(refused)
        };
        object.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Whether there are no hints at all, which every disk satisfies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each hint.
    pub fn iter(&self) -> impl Iterator<Item = &Hint> {
        self.0.iter()
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
        let known = || names().collect::<Vec<_>>().join(", ");
        let subject = SUBJECTS.iter().find(|(known, _)| *known == name);
        let (name, subject) = *subject.ok_or_else(|| format!("unknown hint, known are {}", known()))?;
        let given = match value {
            Value::String(text) => text.clone(),
            Value::Bool(_) if subject == Subject::Flag => value.to_string(),
            Value::Number(_) if subject != Subject::Text => value.to_string(),
            _ => return Err("the value must be a string".to_owned()),
        };
        let text = given.trim().to_lowercase();
        let condition = match subject {
            Subject::Size => parse_size(&text)?,
            Subject::Flag => Condition::Flag(parse_flag(&text)?),
            Subject::Text => parse_text(&text)?,
        };
        Ok(Self { name, given, condition })
    }
}

impl Condition {
    /// Whether a text satisfies it, which is in lower case; an empty one never does.
    pub fn holds_for(&self, actual: &str) -> bool {
        let holds = match self {
            Self::Text(comparison, wanted) => comparison.holds(actual.cmp(wanted)),
            Self::Contains(wanted) => actual.contains(wanted.as_str()),
            Self::OneOf(wanted) => wanted.iter().any(|wanted| wanted == actual),
            Self::Size(..) | Self::Flag(_) => false,
        };
        holds && !actual.is_empty()
    }
}

/// How a value is compared with the one of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// It is the same.
    Equal,
    /// It is another.
    NotEqual,
    /// It comes before.
    Less,
    /// It comes before, or is the same.
    LessOrEqual,
    /// It comes after.
    Greater,
    /// It comes after, or is the same.
    GreaterOrEqual,
}

impl Comparison {
    /// Whether a value that compares so with the one of the hint satisfies it.
    pub fn holds(self, ordering: Ordering) -> bool {
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
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_hint_is_what_it_means() {
        for (hint, value, expected) in [
            ("size", json!(100), Condition::Size(Comparison::Equal, 100)),
            ("size", json!("= 99"), Condition::Size(Comparison::GreaterOrEqual, 99)),
            ("rotational", json!(0), Condition::Flag(false)),
            ("rotational", json!("Yes"), Condition::Flag(true)),
            ("model", json!(" Fancy "), Condition::Text(Comparison::Equal, "fancy".into())),
            ("serial", json!("s!= SN"), Condition::Text(Comparison::NotEqual, "sn".into())),
            ("wwn", json!("<in>0x5"), Condition::Contains("0x5".into())),
            ("name", json!("<or> a <or>b"), Condition::OneOf(vec!["a".into(), "b".into()])),
        ] {
            let hints = Hints::parse(&json!({hint: value})).unwrap();
            let conditions: Vec<_> = hints.iter().map(|hint| (hint.name, hint.condition.clone())).collect();
            assert_eq!(conditions, [(hint, expected)], "{value}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_its_name() {
        for (hints, hint) in [
            (json!("x"), "root_device"),
            (json!({"seriall": "x"}), "seriall"),
            (json!({"size": "s== 5"}), "size"),
            (json!({"size": 0}), "size"),
            (json!({"serial": 5}), "serial"),
            (json!({"serial": ""}), "serial"),
            (json!({"serial": "== 5"}), "serial"),
            (json!({"name": "<or> a <or>"}), "name"),
            (json!({"rotational": "maybe"}), "rotational"),
            (json!({"model": "<all-in> a b"}), "model"),
        ] {
            assert_eq!(Hints::parse(&hints).unwrap_err().hint, hint, "{hints}");
        }
    }
}
