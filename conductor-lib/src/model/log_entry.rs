//! What the controller of a machine writes down of it by itself.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

/// An entry of the log that a machine's controller keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// When that was so, by the conductor's clock; nothing where the entry does not tell.
    #[serde(with = "time::serde::rfc3339::option")]
    pub at: Option<OffsetDateTime>,
    /// What it says.
    pub said: String,
}

impl LogEntry {
    /// Those of a log, the oldest first, that were written since a moment. What bears no time counts as written right
    /// after what stands before it.
    pub fn since(log: Vec<Self>, since: OffsetDateTime) -> Vec<Self> {
        let is_earlier = |entry: &Self| entry.at.is_some_and(|at| at < since);
        let begin = log.iter().rposition(is_earlier).map_or(0, |last| last + 1);
        log.into_iter().skip(begin).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::Duration;

    #[test]
    fn entries_without_a_time_stay_with_those_before_them_where_these_are_recent() {
        let at = |seconds: i64| Some(OffsetDateTime::UNIX_EPOCH + Duration::seconds(seconds));
        let log = [("a", at(1)), ("b", None), ("c", at(7)), ("d", None), ("e", at(9))]
            .map(|(said, at)| LogEntry { at, said: said.to_owned() });
        for (since, expected) in [(0, "abcde"), (5, "bcde"), (8, "de"), (10, "")] {
            let found = LogEntry::since(log.to_vec(), OffsetDateTime::UNIX_EPOCH + Duration::seconds(since));
            assert_eq!(found.into_iter().map(|entry| entry.said).collect::<String>(), expected, "{since}");
        }
    }
}
