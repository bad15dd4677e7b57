//! A machine, and what is so of it now.

use super::boot::{Boot, Override};
use super::power::Power;
use crate::address::Identity;
use crate::fault::Armed;
use crate::file::{FleetFile, Phase, Vendor};
use crate::journal::{Journal, Side, Who};
use crate::life::Operation;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// What is on a disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Disk {
    /// Nothing.
    #[default]
    Blank,
    /// A part of an image: writing it was cut off.
    Cut,
    /// An image, by its URL.
    Image(String),
}

/// A virtual drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drive {
    /// That for CDs.
    Cd,
    /// That for sticks.
    Usb,
}

/// A machine.
#[derive(Debug)]
pub struct Machine {
    /// By what it is known.
    pub identity: Identity,
    /// Whose BMC it has.
    pub vendor: Vendor,
    pub(super) file: Arc<FleetFile>,
    journal: Arc<Journal>,
    pub(super) boots: mpsc::UnboundedSender<Boot>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) power: Power,
    /// Whether it has no mains power, so that no order has an effect.
    pub(super) is_dead: bool,
    pub(super) boot: Override,
    pub(super) media: [Option<String>; 2],
    pub(super) disk: Disk,
    /// How often it has started.
    pub(super) starts: u64,
    /// Dropped when what runs ends.
    pub(super) runs: Option<watch::Sender<()>>,
    pub(super) life: Option<u64>,
    pub(super) operation: Option<Operation>,
    pub(super) faults: Vec<Armed>,
}

impl Machine {
    /// A machine that is off and blank. What leads to the ramdisk is sent to `boots`.
    pub fn new(
        number: u32,
        file: &Arc<FleetFile>,
        journal: &Arc<Journal>,
        boots: mpsc::UnboundedSender<Boot>,
    ) -> Self {
        Self {
            identity: Identity::of(number, file.network.first_address),
            vendor: Vendor::of(number, &file.vendors),
            file: Arc::clone(file),
            journal: Arc::clone(journal),
            boots,
            state: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fleet that it is of.
    pub fn file(&self) -> &FleetFile {
        &self.file
    }

    /// How long a phase takes it, in this boot.
    pub fn length(&self, phase: Phase) -> Duration {
        let number = u64::from(self.identity.number) << 32 | self.state().starts;
        self.file.shortened(self.file.phases.length(phase, self.file.seed, number))
    }

    /// Writes down what was asked of it, or what it did.
    pub fn note(&self, side: Side, by: Option<Who>, act: impl Into<String>, outcome: impl Into<String>) {
        let life = self.state().life;
        self.journal.note(self.identity.number, life, side, by, act, outcome);
    }

    /// The override of its boot device.
    pub fn boot(&self) -> Override {
        self.state().boot.clone()
    }

    /// Changes the override of its boot device.
    pub fn change_boot(&self, change: impl FnOnce(&mut Override)) {
        change(&mut self.state().boot);
    }

    /// The URL of the medium in a drive.
    pub fn medium(&self, drive: Drive) -> Option<String> {
        self.state().media[drive as usize].clone()
    }

    /// Puts a medium into a drive, or takes out what is there.
    pub fn put_medium(&self, drive: Drive, medium: Option<String>) {
        self.state().media[drive as usize] = medium;
    }

    /// What is on its disk.
    pub fn disk(&self) -> Disk {
        self.state().disk.clone()
    }

    /// Writes its disk.
    pub fn write_disk(&self, disk: Disk) {
        self.state().disk = disk;
    }
}
