//! The picture at the top of a VGA screen. The log continues below it.

use super::view::View;
use crate::agent::VERSION;
use farrier_protocol::progress::{Phase, Progress};

/// Rows of the picture, the line below it included.
pub const ROWS: usize = 8;
/// Columns that every screen has.
const COLUMNS: usize = 80;
/// Columns of the labels.
const LABELS: usize = 12;
/// Columns of the bar.
const BAR: u64 = 20;

/// Remembers what is on the screen.
#[derive(Debug, Default)]
pub struct Painter {
    shown: Vec<String>,
}

impl Painter {
    /// The rows that changed since the last picture, with their numbers; the first is 0.
    pub fn changes(&mut self, view: &View) -> Vec<(usize, String)> {
        let rows = picture(view);
        let changed = rows.iter().enumerate().filter(|(number, row)| self.shown.get(*number) != Some(row));
        let changed = changed.map(|(number, row)| (number, row.clone())).collect();
        self.shown = rows;
        changed
    }
}

fn picture(view: &View) -> Vec<String> {
    let progress = match view.progress.phase {
        Phase::Idle => "-".to_owned(),
        _ => bar(&view.progress) + &sentence(&view.progress),
    };
    // An error says at its end what to do, so that it has two rows.
    let trouble: Vec<_> = view.trouble.chars().filter(|c| !c.is_control()).collect();
    let (trouble, more) = trouble.split_at(trouble.len().min(COLUMNS - 1 - LABELS));
    let (trouble, more) = (trouble.iter().collect(), more.iter().collect());
    let facts = [
        ("Node", &view.node),
        ("Addresses", &view.addresses),
        ("Now", &view.doing),
        ("Progress", &progress),
        ("Last error", &trouble),
        ("", &more),
    ];
    let rows = facts.into_iter().map(|(label, value)| row(&format!("{label:<LABELS$}{value}")));
    let head = row(&format!("Farrier {VERSION}"));
    std::iter::once(head).chain(rows).chain([row(&"-".repeat(COLUMNS))]).collect()
}

/// One row of plain text: what others sent must not move the cursor. The last column stays free, because
/// the cursor would move to the next row.
fn row(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(COLUMNS - 1).collect()
}

fn bar(progress: &Progress) -> String {
    let Some(total) = progress.total_bytes.filter(|total| *total > 0) else { return String::new() };
    let done = (progress.bytes.min(total) * BAR / total) as usize;
    format!("[{}{}] ", "#".repeat(done), ".".repeat(BAR as usize - done))
}

/// The progress in words.
pub fn sentence(progress: &Progress) -> String {
    let gib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 30));
    let phase = match progress.phase {
        Phase::Idle => return "idle".to_owned(),
        Phase::Finishing => return "finishing".to_owned(),
        Phase::Done => return "image written and proven".to_owned(),
        Phase::Failed => return "image not written".to_owned(),
        Phase::Writing => "writing",
        Phase::Verifying => "verifying",
    };
    let mut facts = Vec::new();
    match progress.total_bytes {
        Some(total) => {
            facts.push(format!("{} %", progress.bytes * 100 / total.max(1)));
            facts.push(format!("{} of {} GiB", gib(progress.bytes), gib(total)));
        }
        None => facts.push(format!("{} GiB", gib(progress.bytes))),
    }
    facts.push(format!("{} MiB/s", progress.bytes_per_second >> 20));
    facts.extend(match progress.retry_in_seconds {
        Some(seconds) => Some(format!("asking the server again in {seconds} s")),
        None => progress.eta_seconds.map(|seconds| format!("{seconds} s left")),
    });
    format!("{phase} {}", facts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writing(bytes: u64) -> View {
        View {
            node: "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11".into(),
            addresses: "eth0 192.0.2.15/24".into(),
            doing: "deploy step write_image".into(),
            progress: Progress {
                phase: Phase::Writing,
                bytes,
                total_bytes: Some(4 << 30),
                bytes_per_second: 100 << 20,
                eta_seconds: Some(10),
                retry_in_seconds: None,
            },
            trouble: format!("[   12.1]  WARN \u{1b}[2Jlookup failed{}: check the network", ".".repeat(35)),
        }
    }

    #[test]
    fn the_picture_names_everything_in_plain_text() {
        let rows = picture(&writing(3 << 30));
        assert_eq!(rows.len(), ROWS);
        assert_eq!(rows[1], "Node        1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11");
        assert_eq!(rows[2], "Addresses   eth0 192.0.2.15/24");
        assert_eq!(rows[3], "Now         deploy step write_image");
        let progress =
            "Progress    [###############.....] writing 75 %, 3.0 of 4.0 GiB, 100 MiB/s, 10 s left";
        assert_eq!(rows[4], progress[..COLUMNS - 1]);
        assert_eq!(rows[5], format!("Last error  [   12.1]  WARN [2Jlookup failed{}", ".".repeat(35)));
        assert_eq!(rows[6], "            : check the network");
    }

    #[test]
    fn only_rows_that_changed_are_painted() {
        let mut painter = Painter::default();
        assert_eq!(painter.changes(&writing(1 << 30)).len(), ROWS);
        assert_eq!(painter.changes(&writing(1 << 30)), []);
        let changed = painter.changes(&writing(2 << 30));
        assert_eq!(changed.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let progress = Progress { phase: Phase::Writing, bytes: 1 << 30, ..Progress::default() };
        assert_eq!(sentence(&progress), "writing 1.0 GiB, 0 MiB/s");
        assert_eq!(bar(&progress), "");
        let empty = Progress { phase: Phase::Verifying, total_bytes: Some(0), ..Progress::default() };
        assert_eq!(sentence(&empty), "verifying 0 %, 0.0 of 0.0 GiB, 0 MiB/s");
    }
}
