//! When a server wants to be asked again (RFC 9110, section 10.2.3).

use reqwest::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// The pause that an answer asks for: seconds, or a time, which is compared with the server's own clock where the
/// answer tells that. A time that is over is no pause.
pub(super) fn of(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let time = |text: &str| httpdate::parse_http_date(text).ok();
    let wished = text(RETRY_AFTER)?;
    if !wished.is_empty() && wished.bytes().all(|digit| digit.is_ascii_digit()) {
        // More than fits is for ever.
        return Some(Duration::from_secs(wished.parse().unwrap_or(u64::MAX)));
    }
    let now = text(DATE).and_then(time).unwrap_or_else(SystemTime::now);
    Some(time(wished)?.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    #[test]
    fn a18_seconds_and_times_are_read() {
        let date = "Thu, 26 Nov 2026 12:00:00 GMT";
        for (wished, date, expected) in [
            ("120", None, Some(120)),
            (" 0 ", None, Some(0)),
            ("99999999999999999999999", None, Some(u64::MAX)),
            ("Thu, 26 Nov 2026 12:02:30 GMT", Some(date), Some(150)),
            ("Thursday, 26-Nov-26 12:02:30 GMT", Some(date), Some(150)),
            ("Thu Nov 26 12:02:30 2026", Some(date), Some(150)),
            ("Thu, 26 Nov 2026 11:00:00 GMT", Some(date), Some(0)),
            ("Sat, 01 Jan 2000 00:00:00 GMT", None, Some(0)),
            ("Sat, 01 Jan 2000 00:00:00 GMT", Some("yesterday"), Some(0)),
            ("", None, None),
            ("-1", None, None),
            ("1.5", None, None),
            ("soon", None, None),
        ] {
            let mut headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(wished))]);
            date.map(|date| headers.insert(DATE, HeaderValue::from_static(date)));
            assert_eq!(of(&headers).map(|pause| pause.as_secs()), expected, "{wished} {date:?}");
        }
        assert_eq!(of(&HeaderMap::new()), None);
    }
}
