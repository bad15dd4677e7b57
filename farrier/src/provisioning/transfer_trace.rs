//! How much of a file was transferred to a machine, for the trace of its boot.

use farrier_drivers::netboot::names::Item;
use farrier_engine::Conductor;
use farrier_engine::evidence::boot_trace::{BootPeer, BootStage, Reached};

/// Traces the transfer of a file to a machine.
pub(crate) struct TransferTrace {
    conductor: Conductor,
    peer: BootPeer,
    stage: BootStage,
    what: String,
    total: u64,
    percent: Option<u64>,
}

impl TransferTrace {
    /// Of a file of so many bytes.
    pub(crate) fn new(
        conductor: Conductor,
        peer: BootPeer,
        stage: BootStage,
        what: &str,
        total: u64,
    ) -> Self {
        let what = what.trim_start_matches('/').to_owned();
        Self { conductor, peer, stage, what, total, percent: None }
    }

    /// It has all bytes up to this one. Recorded once for each hundredth.
    pub(crate) fn reached(&mut self, bytes: u64) {
        let percent = Some((bytes * 100).checked_div(self.total).unwrap_or(100));
        if self.percent != percent {
            self.percent = percent;
            let Self { stage, what, total, .. } = self;
            self.conductor
                .ramdisks()
                .boot_reached(self.peer, Reached { stage: *stage, what, bytes, total: *total });
        }
    }
}

/// What it means for a boot that a file is loaded.
pub(crate) fn stage(item: Item) -> BootStage {
    match item {
        Item::Config(_) => BootStage::Script,
        Item::Kernel(_) | Item::InstanceKernel | Item::BootIso => BootStage::Kernel,
        Item::Ramdisk(_) | Item::InstanceRamdisk => BootStage::Ramdisk,
    }
}
