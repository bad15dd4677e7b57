//! Times as people read them, in UTC to the second.

use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// A time.
pub(crate) fn text(time: OffsetDateTime) -> String {
    let time = time.to_offset(UtcOffset::UTC);
    time.replace_nanosecond(0).unwrap_or(time).format(&Rfc3339).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::Duration;

    #[test]
    fn times_are_in_utc_to_the_second() {
        assert_eq!(text(OffsetDateTime::UNIX_EPOCH + Duration::milliseconds(1500)), "1970-01-01T00:00:01Z");
    }
}
