//! The power of a machine.

use super::boot::{Boot, BootSource};
use super::state::{Drive, Machine, State};
use crate::fault::Class;
use crate::file::Phase;
use crate::journal::Side;
use std::sync::Arc;
use tokio::sync::watch;

/// Whether a machine is on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Power {
    /// It is off.
    #[default]
    Off,
    /// It is on.
    On,
}

/// A power action, as Redfish has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// On.
    On,
    /// Off at once.
    ForceOff,
    /// Off when its system has shut down.
    GracefulShutdown,
    /// Off and on at once.
    ForceRestart,
}

impl Reset {
    /// All of them, with their names.
    pub const ALL: [(&str, Self); 4] = [
        ("On", Self::On),
        ("ForceOff", Self::ForceOff),
        ("GracefulShutdown", Self::GracefulShutdown),
        ("ForceRestart", Self::ForceRestart),
    ];
}

impl Machine {
    /// Whether it is on.
    pub fn power(&self) -> Power {
        self.state().power
    }

    /// Obeys an order.
    pub fn reset(self: &Arc<Self>, reset: Reset) {
        match reset {
            Reset::On => self.power_on(),
            Reset::ForceOff => self.power_off("power off"),
            Reset::GracefulShutdown => self.shut_down(),
            Reset::ForceRestart if self.power() == Power::On => {
                self.power_off("power off");
                self.power_on();
            }
            Reset::ForceRestart => {}
        }
    }

    /// Switches it on, where it is off and has mains power.
    pub fn power_on(&self) {
        let other = self.power() == Power::Off && self.strike(Class::BootsOther).is_some();
        let mut state = self.state();
        if state.power == Power::On || state.is_dead {
            return;
        }
        state.power = Power::On;
        state.starts += 1;
        let source = self.start(&mut state, other);
        drop(state);
        self.note(Side::Machine, None, "power on", format!("starts {source:?}"));
    }

    /// What it starts. Whatever leads to the ramdisk is told.
    fn start(&self, state: &mut State, starts_other: bool) -> BootSource {
        let medium = state.media[Drive::Cd as usize].as_deref();
        let (source, left) = std::mem::take(&mut state.boot).start(self.vendor, medium, &state.disk);
        state.boot = left;
        if starts_other {
            return BootSource::Nothing;
        }
        if let BootSource::Medium(_) | BootSource::Network = source {
            let (runs, ends) = watch::channel(());
            state.runs = Some(runs);
            let (machine, number) = (self.identity.number, state.starts);
            // Whoever ends the fleet hears of no more boots.
            self.boots.send(Boot { machine, number, source: source.clone(), ends }).ok();
        }
        source
    }

    /// Switches it off at once.
    pub fn power_off(&self, why: &str) {
        let mut state = self.state();
        if state.power == Power::Off {
            return;
        }
        state.power = Power::Off;
        state.runs = None;
        drop(state);
        self.note(Side::Machine, None, why, "is off");
    }

    /// Switches it off when its system has shut down, unless it has started again until then.
    pub fn shut_down(self: &Arc<Self>) {
        let (machine, wait) = (Arc::clone(self), self.length(Phase::Shutdown));
        let start = self.state().starts;
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            if machine.state().starts == start {
                machine.power_off("shut down");
            }
        });
    }
}
