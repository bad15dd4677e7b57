//! What a conductor does again and again (section 12.4). Each task has its own interval, and none waits for another.

mod expired_leases;
mod power_pass;
mod power_recovery;
mod power_sync;

use crate::conductor::Conductor;
use crate::error::Error;
use crate::placement::{MembershipError, renewal_pause};
use crate::services::Phase;
use crate::store::{Changed, Changes};
use expired_leases::ExpiredLeases;
use farrier_conductor::settings::Settings;
use power_sync::PowerSync;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Between two writes of what machines load, whatever they do.
const TRACE_PAUSE: Duration = Duration::from_secs(1);

/// Between two looks for orders that came by way of another conductor.
const ORDER_PAUSE: Duration = Duration::from_secs(1);

impl Conductor {
    /// Looks after the nodes for as long as it is polled: after those without a worker, because their conductor
    /// is no more or an order came by way of another one, and after the power of all machines. When the conductor
    /// [stops](Self::drain), it begins nothing more, and still hears agents and renews its record.
    ///
    /// # Errors
    ///
    /// [`Error::NameTaken`] when another process has taken the name of this one, which was silent for too long. It must
    /// end then.
    pub async fn run(&self) -> Result<(), Error> {
        let Settings { check_interval, lease, power_sync: sync, .. } = self.settings();
        let unattended = async {
            loop {
                // An order that came by way of another conductor is found here.
                tokio::time::sleep(match self.services().placement.is_alone() {
                    true => *check_interval,
                    false => ORDER_PAUSE.min(*check_interval),
                })
                .await;
                log_failure("nodes without a conductor", self.attend().await);
                log_failure("allocations", self.catalogue().look_for_nodes().await);
            }
        };
        let expired_leases = async {
            let mut interval = PassInterval::new(*lease / 4);
            let mut expired_leases = ExpiredLeases::new(self.services().clone());
            loop {
                interval.next().await;
                log_failure("leases of other conductors", expired_leases.pass().await);
            }
        };
        let power_sync = async {
            let mut interval = PassInterval::new(sync.sync_power_state_interval);
            let mut sync = PowerSync::new(self.services().clone(), self.workers().clone());
            loop {
                interval.next().await;
                log_failure("power states", sync.pass().await);
            }
        };
        let power_recovery = async {
            let mut interval = PassInterval::new(sync.power_failure_recovery_interval);
            loop {
                interval.next().await;
                log_failure("power failures", power_recovery::pass(self.services()).await);
            }
        };
        let boot_traces = async {
            loop {
                self.services().boot_journal.changed().await;
                log_failure("boot traces", self.services().write_boot_journal().await);
                tokio::time::sleep(TRACE_PAUSE).await;
            }
        };
        let wake = async |mut changes: Changes| {
            while let Some(changed) = changes.next().await {
                self.workers().wake(changed);
            }
        };
        let watched = async {
            let mut watched = self.events().watched();
            loop {
                match watched.recv().await {
                    Ok(node) => self.workers().wake(Changed::Node(node)),
                    Err(RecvError::Lagged(_)) => self.workers().wake(Changed::Unknown),
                    Err(RecvError::Closed) => return,
                }
            }
        };
        let freed = async {
            let mut freed = self.services().own_leases.freed();
            while let Some(node) = freed.next().await {
                self.workers().freed(node);
            }
        };
        let members = Notify::new();
        let consoles = async {
            loop {
                log_failure("consoles", self.open_consoles().await);
                members.notified().await;
            }
        };
        let work = async { tokio::join!(unattended, expired_leases, power_sync, power_recovery, consoles) };
        let work = async {
            tokio::select! {
                _ = work => {}
                () = self.services().reaches(Phase::Drains) => {}
            }
        };
        let (changes, admitted) = (wake(self.store().changed()), wake(self.services().limits.changed()));
        tokio::select! {
            ended = self.renew_membership(&members) => ended,
            _ = async { tokio::join!(work, boot_traces, changes, admitted, watched, freed) } => Ok(()),
        }
    }

    /// Renews the record by which other conductors see that this one lives, and sees which of them do. Where these are
    /// others than before, nodes may be led by another conductor.
    async fn renew_membership(&self, members: &Notify) -> Result<(), Error> {
        let services = self.services();
        loop {
            tokio::time::sleep(renewal_pause(&services.settings)).await;
            match services.placement.renew(&*services.store).await {
                Ok(false) => {}
                Ok(true) => {
                    self.workers().wake(Changed::Unknown);
                    members.notify_one();
                }
                Err(MembershipError::Store(error)) => {
                    tracing::error!("other conductors may consider this conductor offline: {error}");
                }
                Err(error @ MembershipError::NameTaken(_)) => return Err(error.into()),
            }
        }
    }
}

/// When the next pass is. The first comes after an interval, so that the start of a conductor does not wait for it.
struct PassInterval(Option<Interval>);

impl PassInterval {
    /// Passes with so long an interval; none without one.
    fn new(pause: Duration) -> Self {
        Self((!pause.is_zero()).then(|| {
            let mut ticks = tokio::time::interval_at(Instant::now() + pause, pause);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            ticks
        }))
    }

    async fn next(&mut self) {
        match &mut self.0 {
            Some(ticks) => drop(ticks.tick().await),
            None => std::future::pending().await,
        }
    }
}

fn log_failure(what: &str, outcome: Result<(), Error>) {
    if let Err(error) = outcome {
        tracing::error!("the periodic task for {what} failed: {error}");
    }
}
