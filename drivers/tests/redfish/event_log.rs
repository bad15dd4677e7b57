//! The log of a BMC, however long it is and wherever its newest entry stands.

use crate::stage::Stage;
use crate::stand_in::Manner;
use farrier_conductor::interfaces::ManagementInterface;
use farrier_conductor::model::LogEntry;
use time::{Duration, OffsetDateTime};

/// What is told of the last minute of a BMC with these manners, and so many entries, one for each second.
async fn read(manners: &[Manner], count: i64) -> (Stage, Vec<LogEntry>) {
    let stage = Stage::new(manners.iter().copied()).await;
    stage.bmc.inner().log =
        (0..count).map(|place| (count - 1 - place, format!("entry {}", count - 1 - place))).collect();
    let since = OffsetDateTime::now_utc() - Duration::MINUTE;
    let log = stage.management.get_event_log(&stage.node, since).await.unwrap();
    (stage, log)
}

#[tokio::test]
async fn the_latest_entries_are_read_the_oldest_first() {
    use Manner::{EntriesByPath, FastClock, NewestFirst};
    for (manners, count, least) in [
        (&[][..], 3, 3),
        (&[], 1000, 40),
        (&[NewestFirst], 3, 3),
        (&[NewestFirst], 1000, 40),
        (&[FastClock], 10, 10),
        (&[EntriesByPath], 5, 5),
        (&[EntriesByPath], 40, 12),
        (&[EntriesByPath, NewestFirst], 40, 12),
        (&[], 0, 0),
    ] {
        let (stage, log) = read(manners, count).await;
        assert_eq!(log.len(), least, "{manners:?} {count}: {log:#?}");
        let expected: Vec<_> =
            (0..least).rev().map(|ago| format!("Warning: entry {ago}, SEL.1.0.Oem")).collect();
        assert_eq!(log.iter().map(|entry| entry.said.clone()).collect::<Vec<_>>(), expected, "{manners:?}");
        let off = log.last().map_or(Duration::ZERO, |last| OffsetDateTime::now_utc() - last.at.unwrap());
        assert!(off.abs() < Duration::MINUTE, "{manners:?}: {off}");
        assert!(stage.bmc.asked().len() < 30, "{:?}", stage.bmc.asked());
        assert!(
            !stage.bmc.asked().iter().any(|asked| asked.ends_with("AuditLog")),
            "{:?}",
            stage.bmc.asked()
        );
    }
}

#[tokio::test]
async fn what_is_older_is_left_out() {
    let (_stage, log) = read(&[], 70).await;
    assert_eq!(log.len(), 40, "as many as are read");
    let stage = Stage::new([]).await;
    stage.bmc.inner().log = vec![(7200, "old".into()), (5, "666172726965726C696E6B0000".into())];
    let since = OffsetDateTime::now_utc() - Duration::MINUTE;
    let log = stage.management.get_event_log(&stage.node, since).await.unwrap();
    assert_eq!(log.len(), 1, "{log:?}");
    assert!(log[0].said.contains("666172726965726C696E6B0000"), "{log:?}");
}
