//! How far machines came that boot from the network: their server sees each file that they load.
//!
//! A trace begins when a machine is made ready to boot, and is kept with its node, so that every conductor that has the
//! record can tell in one line why no agent called. It has one mark for each stage. What is served is noted by a
//! journal first, which is written down from time to time.

pub(crate) mod journal;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;
use time::OffsetDateTime;
use uuid::Uuid;

/// What machines load, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootStage {
    /// An address.
    Address,
    /// A boot loader.
    Loader,
    /// The configuration of the loader.
    Script,
    /// A kernel, or a medium.
    Kernel,
    /// The ramdisk that goes with it.
    Ramdisk,
    /// The virtual medium that has all of it.
    Medium,
}

impl BootStage {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Address, Self::Loader, Self::Script, Self::Kernel, Self::Ramdisk, Self::Medium];

    /// Its name, as records and metrics have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Loader => "loader",
            Self::Script => "script",
            Self::Kernel => "kernel",
            Self::Ramdisk => "ramdisk",
            Self::Medium => "medium",
        }
    }
}

/// How far one of them is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootMark {
    /// Which one.
    pub stage: BootStage,
    /// Its name, or the address.
    pub what: String,
    /// The name by which the machine has asked for its address, where that identifies anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_name: Option<String>,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Its size in bytes.
    pub total: u64,
    /// When that was so.
    #[serde(with = "time::serde::rfc3339")]
    pub at: OffsetDateTime,
}

/// How far a machine came: at most one mark for each stage, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootTrace(Vec<BootMark>);

impl BootTrace {
    /// Takes note of how far it is. What it loads again, as after a failure, is recorded again, with what comes after
    /// it.
    pub fn reach(&mut self, mark: BootMark) {
        let goes_on = |known: &BootMark| {
            known.stage == mark.stage && known.what == mark.what && known.bytes <= mark.bytes
        };
        if !self.0.iter().any(goes_on) {
            // A loader may have several files, and addresses are asked for by firmware and loader.
            let begins_anew = mark.stage >= BootStage::Kernel;
            self.0.retain(|known| known.stage < mark.stage || !begins_anew && known.stage > mark.stage);
        }
        self.0.retain(|known| known.stage != mark.stage);
        self.0.push(mark);
        self.0.sort_by_key(|mark| mark.stage);
    }

    /// Whether the machine has loaded nothing yet.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The marks.
    pub fn marks(&self) -> &[BootMark] {
        &self.0
    }

    /// When anything was heard of the machine last.
    pub fn heard(&self) -> Option<OffsetDateTime> {
        self.0.iter().map(|mark| mark.at).max()
    }

    /// The name by which the machine has asked for its address, where that was noted.
    pub(crate) fn host_name(&self) -> Option<&str> {
        self.0.iter().find_map(|mark| mark.host_name.as_deref())
    }

    /// In words, at this time; nothing when nothing was heard.
    pub fn told(&self, now: OffsetDateTime) -> Option<String> {
        let silent = (now - self.heard()?).whole_seconds();
        Some(format!("{self}, silent for {silent} s"))
    }
}

impl fmt::Display for BootTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&words.join(", "))
    }
}

impl fmt::Display for BootMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stage, what, host_name, bytes, total, .. } = self;
        let percent = (bytes * 100).checked_div(*total).unwrap_or(100);
        match stage {
            BootStage::Address => match host_name {
                Some(name) => write!(f, "address {what} leased as {name}"),
                None => write!(f, "address {what} leased"),
            },
            BootStage::Loader if percent == 100 => write!(f, "loader {what} fetched"),
            BootStage::Loader => write!(f, "loader {what} {percent} %"),
            BootStage::Script => f.write_str("script fetched"),
            BootStage::Kernel => write!(f, "kernel {percent} %"),
            BootStage::Ramdisk => write!(f, "initramfs {percent} %"),
            BootStage::Medium => write!(f, "{} KiB of its virtual medium read", bytes.div_ceil(1 << 10)),
        }
    }
}

/// The stage of a machine, now.
#[derive(Debug, Clone, Copy)]
pub struct Reached<'a> {
    /// With which stage.
    pub stage: BootStage,
    /// The name of what is loaded, which is of some file that there is; or an address.
    pub what: &'a str,
    /// Bytes that were sent.
    pub bytes: u64,
    /// Its size in bytes.
    pub total: u64,
}

/// Who loads something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BootPeer {
    /// Its address.
    pub address: IpAddr,
    /// Its node, where that is known by what it loads.
    pub node: Option<Uuid>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::Duration;

    fn mark(stage: BootStage, what: &str, bytes: u64, total: u64) -> BootMark {
        BootMark { stage, what: what.into(), host_name: None, bytes, total, at: OffsetDateTime::UNIX_EPOCH }
    }

    #[test]
    fn a_trace_tells_where_a_machine_stopped() {
        let mut trace = BootTrace::default();
        let told = |trace: &BootTrace| trace.told(OffsetDateTime::UNIX_EPOCH + Duration::seconds(35));
        assert_eq!(told(&trace), None);
        trace.reach(mark(BootStage::Loader, "pxelinux.0", 5, 10));
        assert_eq!(told(&trace).as_deref(), Some("loader pxelinux.0 50 %, silent for 35 s"));
        trace.reach(mark(BootStage::Loader, "pxelinux.0", 10, 10));
        trace.reach(mark(BootStage::Address, "192.0.2.50", 0, 0));
        trace.reach(mark(BootStage::Script, "config", 9, 9));
        trace.reach(mark(BootStage::Kernel, "k", 7, 7));
        trace.reach(mark(BootStage::Ramdisk, "r", 43, 100));
        let all = "address 192.0.2.50 leased, loader pxelinux.0 fetched, script fetched, kernel 100 %, initramfs 43 %";
        assert_eq!(told(&trace).as_deref(), Some(&*format!("{all}, silent for 35 s")));
        let kept = serde_json::to_string(&trace).unwrap();
        assert_eq!(serde_json::from_str::<BootTrace>(&kept).unwrap(), trace);
        // It tries again.
        trace.reach(mark(BootStage::Kernel, "k", 1, 7));
        assert!(told(&trace).unwrap().contains("script fetched, kernel 14 %, silent"), "{trace}");
    }

    #[test]
    fn a_stage_is_called_the_same_in_records_and_metrics() {
        for stage in BootStage::ALL {
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.as_str());
        }
    }

    #[test]
    fn a_trace_has_one_mark_for_each_stage_whatever_is_loaded() {
        let mut trace = BootTrace::default();
        for n in 0..1000_u64 {
            let stage = [BootStage::Loader, BootStage::Script, BootStage::Ramdisk][n as usize % 3];
            trace.reach(mark(stage, &n.to_string(), n, 1000));
        }
        assert!(trace.marks().len() <= 3, "{trace}");
    }
}
