//! The life that a machine is in, and the faults of that life.

use super::boot::Override;
use super::power::Power;
use super::state::{Disk, Machine};
use crate::fault::{Armed, Class, Fault, Kind};
use crate::journal::Side;
use crate::life::Operation;
use std::time::Duration;

impl Machine {
    /// Begins a life with these faults.
    pub fn begin_life(&self, life: u64, faults: Vec<Fault>) {
        let mut state = self.state();
        state.life = Some(life);
        state.operation = None;
        state.faults = faults.into_iter().map(Armed::from).collect();
        drop(state);
        self.note(Side::Driver, None, "begin life", life.to_string());
    }

    /// The life that it is in.
    pub fn life(&self) -> Option<u64> {
        self.state().life
    }

    /// Tells that an operation of its life begins.
    pub fn begin(&self, operation: Operation) {
        self.state().operation = Some(operation);
        self.note(Side::Driver, None, format!("begin {operation}"), "");
        // Power that comes back leaves the machine off, as it is set in its firmware.
        if self.recovers(Class::PowerCut) && self.strike(Class::PowerCut).is_some() {
            self.power_off("mains power fails and comes back");
        }
    }

    /// Ends its life and tells its faults, each with whether it took effect. The machine is as new then.
    pub fn end_life(&self) -> Vec<(Fault, bool)> {
        let mut state = self.state();
        let faults = std::mem::take(&mut state.faults);
        (state.operation, state.is_dead, state.power, state.runs) = (None, false, Power::Off, None);
        (state.boot, state.media, state.disk) = (Override::default(), [None, None], Disk::Blank);
        drop(state);
        self.note(Side::Driver, None, "end life", "");
        faults.into_iter().map(|armed| (armed.fault, armed.has_struck())).collect()
    }

    /// The fault of a class where it strikes now: once, or each time where nothing recovers from it.
    pub fn strike(&self, class: Class) -> Option<Fault> {
        self.strike_as(class, Kind::Usual)
    }

    /// The same for one of the kinds of a class.
    pub fn strike_as(&self, class: Class, kind: Kind) -> Option<Fault> {
        self.strike_by(class, kind, |armed| armed.strike().then_some(armed.fault))
    }

    /// Whether a fault of the BMC strikes now.
    pub fn strike_bmc(&self, kind: Kind) -> bool {
        self.strike_by(Class::Bmc, kind, |armed| armed.strike().then_some(())).is_some()
    }

    /// For how long a fault of the BMC lasts from now on, where it strikes.
    pub fn troubles_bmc(&self, kind: Kind) -> Option<Duration> {
        let left = |armed: &mut Armed| armed.strike_for(self.file.shortened(armed.fault.lasts));
        self.strike_by(Class::Bmc, kind, left)
    }

    /// Whether the operation has a fault of a class that passes.
    pub fn recovers(&self, class: Class) -> bool {
        self.armed(class).is_some_and(|fault| fault.recoverable)
    }

    /// The fault of a class in this operation, whether it has struck or not.
    pub fn armed(&self, class: Class) -> Option<Fault> {
        let state = self.state();
        let mut faults = state.faults.iter().map(|armed| armed.fault);
        faults.find(|fault| fault.class == class && Some(fault.operation) == state.operation)
    }

    /// Cuts its mains power; it does not come back in this life.
    pub fn cut_power(&self) {
        self.state().is_dead = true;
        self.power_off("mains power fails");
    }

    /// What comes of the fault of a class and kind in this operation, which is written down when it takes effect first.
    fn strike_by<T>(&self, class: Class, kind: Kind, strike: impl Fn(&mut Armed) -> Option<T>) -> Option<T> {
        let mut state = self.state();
        let operation = state.operation;
        let is_meant =
            |fault: &Fault| (fault.class, fault.kind) == (class, kind) && Some(fault.operation) == operation;
        let armed = state.faults.iter_mut().find(|armed| is_meant(&armed.fault))?;
        let (is_first, fault) = (!armed.has_struck(), armed.fault);
        let struck = strike(armed);
        drop(state);
        if is_first && struck.is_some() {
            self.note(Side::Fault, None, format!("{class} {kind:?}"), format!("in {}", fault.operation));
        }
        struck
    }
}
