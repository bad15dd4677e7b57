//! Times as people read them, in UTC to the second.

use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime, UtcOffset};

/// A time.
pub(crate) fn text(time: OffsetDateTime) -> String {
    let time = time.to_offset(UtcOffset::UTC);
    time.replace_nanosecond(0).unwrap_or(time).format(&Rfc3339).unwrap_or_default()
}

/// A span of time, in its two largest units.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.whole_seconds().unsigned_abs();
    let units = [("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)];
    let first = units.iter().position(|(_, unit)| seconds >= *unit).unwrap_or(units.len() - 1);
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (name, unit) in units.iter().skip(first).take(2) {
        parts.push((rest / unit, name));
        rest %= unit;
    }
    let said = parts.iter().enumerate().filter(|(place, (count, _))| *place == 0 || *count > 0);
    said.map(|(_, (count, name))| format!("{count} {name}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units_at_most() {
        for (seconds, expected) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (61, "1 min 1 s"),
            (3_600, "1 h"),
            (3_661, "1 h 1 min"),
            (90_000, "1 d 1 h"),
            (-5, "5 s"),
        ] {
            assert_eq!(span(Duration::seconds(seconds)), expected);
        }
        assert_eq!(text(OffsetDateTime::UNIX_EPOCH + Duration::milliseconds(1500)), "1970-01-01T00:00:01Z");
    }
}
