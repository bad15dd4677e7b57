//! Whether the machine of a node that waits is on. Its BMC is read beside the worker, which never waits for it.

use crate::error::Error;
use crate::services::Services;
use farrier_conductor::Settings;
use farrier_conductor::model::{Node, PowerState};
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tokio::task::JoinSet;

/// Equal readings after which a machine is believed to be off: BMCs err.
const OFF_READINGS: u32 = 2;

/// Readings of a machine. What is under way ends with this.
#[derive(Default)]
pub(crate) struct PowerCheck {
    /// When the node began to wait. What was read before that says nothing: conductors switch machines between waits.
    wait: Option<OffsetDateTime>,
    begun_at: Option<Instant>,
    under_way: JoinSet<Result<PowerState, Error>>,
    off_readings: u32,
}

impl PowerCheck {
    /// Begins a reading when it is time for one, and tells whether the machine is off by those that have ended. The machine
    /// of an agent that fell silent is read more often, and so is one that was read to be off.
    pub(crate) fn is_off(&mut self, services: &Arc<Services>, node: &Node, is_silent: bool) -> bool {
        self.enter(node.provision_updated_at);
        while let Some(ended) = self.under_way.try_join_next() {
            if let Ok(Ok(reading)) = ended {
                self.note(reading);
            }
        }
        if self.under_way.is_empty() && self.is_due(services, is_silent) {
            self.begun_at = Some(Instant::now());
            let (services, node) = (Arc::clone(services), node.clone());
            self.under_way.spawn(async move { services.read_power(&node).await });
        }
        self.was_off()
    }

    /// Drops the readings of an earlier wait.
    fn enter(&mut self, wait: OffsetDateTime) {
        if self.wait != Some(wait) {
            *self = Self { wait: Some(wait), ..Self::default() };
        }
    }

    /// Whether the machine was off by the last readings.
    pub(crate) fn was_off(&self) -> bool {
        self.off_readings >= OFF_READINGS
    }

    fn note(&mut self, reading: PowerState) {
        self.off_readings = if reading == PowerState::Off { self.off_readings + 1 } else { 0 };
    }

    fn is_due(&self, services: &Services, is_silent: bool) -> bool {
        let pause = pause(&services.settings, is_silent || self.off_readings > 0);
        self.begun_at.is_none_or(|at| at.elapsed() >= pause)
    }
}

fn pause(settings: &Settings, is_in_doubt: bool) -> Duration {
    if is_in_doubt { settings.check_interval } else { settings.power_check_interval }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reading_off_is_not_believed() {
        let mut check = PowerCheck::default();
        let mut is_off = |reading| {
            check.note(reading);
            check.was_off()
        };
        assert!(!is_off(PowerState::Off));
        assert!(!is_off(PowerState::On));
        assert!(!is_off(PowerState::Off));
        assert!(is_off(PowerState::Off));
    }

    /// A conductor reads a machine that another one switches off and on between two waits.
    #[tokio::test]
    async fn f36_a_reading_of_an_earlier_wait_does_not_count() {
        let (first, second) =
            (OffsetDateTime::UNIX_EPOCH, OffsetDateTime::UNIX_EPOCH + time::Duration::SECOND);
        let mut check = PowerCheck::default();
        check.enter(first);
        check.note(PowerState::Off);
        check.under_way.spawn(async { Ok(PowerState::Off) });
        check.enter(first);
        assert_eq!((check.off_readings, check.under_way.len()), (1, 1));
        check.enter(second);
        assert_eq!((check.off_readings, check.under_way.len()), (0, 0));
        check.note(PowerState::Off);
        assert!(!check.was_off());
        check.note(PowerState::Off);
        assert!(check.was_off());
    }

    #[test]
    fn l01_a_machine_in_doubt_is_read_more_often() {
        let settings = Settings::new("http://c");
        assert_eq!(pause(&settings, false), Duration::from_secs(30));
        assert_eq!(pause(&settings, true), Duration::from_secs(5));
    }
}
