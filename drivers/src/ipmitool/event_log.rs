//! The event log of a BMC (SEL), as ipmitool lists it.
//!
//! The clock of the BMC is read first: many of them are wrong, and the conductor's clock sets the times.

use super::bmcs::Bmc;
use super::error::IpmiError;
use farrier_conductor::model::LogEntry;
use farrier_conductor::model::clock::{Clock, SystemClock};
use time::{Date, Duration, Month, OffsetDateTime, PrimitiveDateTime, Time};

const CLOCK: &[&str] = &["sel", "time", "get"];

/// The latest entries: each costs a question and an answer.
const LATEST: &[&str] = &["sel", "list", "last", "40"];

/// What was written into the event log since a moment.
///
/// # Errors
///
/// [`IpmiError`].
pub(super) async fn read(bmc: &Bmc, since: OffsetDateTime) -> Result<Vec<LogEntry>, IpmiError> {
    let clock = bmc.run(CLOCK).await?;
    // A clock that was never set counts from the start of the BMC; then the entries bear no times either.
    let ahead = time(&clock).map_or(Duration::ZERO, |clock| clock - SystemClock.now());
    let log = bmc.run(LATEST).await?;
    Ok(LogEntry::since(entries(&log, ahead), since))
}

/// The entries of a list, by a clock that is ahead by so much.
fn entries(list: &str, ahead: Duration) -> Vec<LogEntry> {
    let entry = |line: &str| {
        // A number, the time where there is one, and the rest.
        let (_number, said) = line.split_once('|')?;
        let fields: Vec<_> = said.split('|').map(str::trim).collect();
        let (at, said) = match fields.as_slice() {
            ["Pre-Init", _, said @ ..] => (None, said),
            [date, of_day, rest @ ..] => match time(&format!("{date} {of_day}")) {
                Some(at) => (Some(at - ahead), rest),
                None => (None, fields.as_slice()),
            },
            said => (None, said),
        };
        Some(LogEntry { at, said: said.join(", ") })
    };
    list.lines().filter_map(entry).collect()
}

/// A time such as `11/24/26 22:28:36 UTC`, or with all digits of the year.
fn time(text: &str) -> Option<OffsetDateTime> {
    let mut words = text.split_whitespace();
    let (date, of_day) = (words.next()?, words.next()?);
    let [month, day, year] = numbers(date, '/')?;
    let [hour, minute, second] = numbers(of_day, ':')?;
    let year = if year < 100 { year + 2000 } else { year };
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let date = Date::from_calendar_date(i32::from(year), month, u8::try_from(day).ok()?).ok()?;
    let byte = |number: u16| u8::try_from(number).ok();
    let of_day = Time::from_hms(byte(hour)?, byte(minute)?, byte(second)?).ok()?;
    Some(PrimitiveDateTime::new(date, of_day).assume_utc())
}

fn numbers(text: &str, between: char) -> Option<[u16; 3]> {
    let numbers: Option<Vec<u16>> = text.split(between).map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_both_kinds_of_ipmitool_are_read() {
        let list = "   1 |  Pre-Init  |0000000515| System Event #0x01 | OEM System boot event | Asserted\n   \
                    2 | OEM record e0 | 666172726965726c696e6b0000\n   \
                    4 | 11/24/26 | 22:28:36 UTC | Power Supply #0x51 | Power Supply AC lost | Asserted\n   \
                    a | 11/24/2026 | 22:28:37 | OS Critical Stop #0x01 | Run-time critical stop | Asserted\n\
                    \n";
        let found = entries(list, Duration::seconds(36));
        let read: Vec<_> = found
            .iter()
            .map(|entry| (entry.at.map(OffsetDateTime::unix_timestamp), entry.said.as_str()))
            .collect();
        let noon = 1_795_559_280; // 2026-11-24 22:28:00
        assert_eq!(
            read,
            [
                (None, "System Event #0x01, OEM System boot event, Asserted"),
                (None, "OEM record e0, 666172726965726c696e6b0000"),
                (Some(noon), "Power Supply #0x51, Power Supply AC lost, Asserted"),
                (Some(noon + 1), "OS Critical Stop #0x01, Run-time critical stop, Asserted"),
            ]
        );
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in
            ["S+ 00:08:35", "13/24/26 22:28:36 UTC", "11/24 22:28", "11/24/26 25:00:00", "", "11/24/26"]
        {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
