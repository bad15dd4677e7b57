//! Lengths of time as people write them: `90s`, `5m`, `1h30m`, `200ms`.

use serde::Deserialize;
use std::time::Duration;

/// A length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Span(pub Duration);

/// The units and their milliseconds. One that another begins with comes after it.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];

/// Longest length of time.
const LONGEST: Duration = Duration::from_secs(30 * 24 * 3600);

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let span = read(&text).ok_or_else(|| format!("{text:?} is no time; write it as 90s, 5m or 1h30m"))?;
        match span > LONGEST {
            true => Err(format!("{text:?} is longer than 30 days; give a shorter time")),
            false => Ok(Self(span)),
        }
    }
}

fn read(text: &str) -> Option<Duration> {
    let (mut rest, mut sum) = (text, 0_u64);
    while !rest.is_empty() {
        let digits = rest.find(|one: char| !one.is_ascii_digit())?;
        let count: u64 = rest[..digits].parse().ok()?;
        let (unit, millis) = *UNITS.iter().find(|(unit, _)| rest[digits..].starts_with(unit))?;
        sum = sum.checked_add(count.checked_mul(millis)?)?;
        rest = &rest[digits + unit.len()..];
    }
    (!text.is_empty()).then_some(Duration::from_millis(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_numbers_with_units() {
        for (text, expected) in [
            ("90s", Some(90_000)),
            ("200ms", Some(200)),
            ("1h30m", Some(5_400_000)),
            ("2m5s10ms", Some(125_010)),
            ("0s", Some(0)),
            ("", None),
            ("5", None),
            ("m", None),
            ("-5s", None),
            ("1.5h", None),
            ("5 m", None),
            ("99999999999999999999s", None),
            ("721h", None),
        ] {
            let read = Span::try_from(text.to_owned()).ok().map(|span| span.0.as_millis());
            assert_eq!(read, expected, "{text}");
        }
    }
}
