//! Many machines, of which one in twenty hangs and one in twenty is out of service.
//!
//! The test takes a few of them; `cargo xtask bench bmcs` takes a thousand, and holds them to the budget.

use crate::stage::settings;
use crate::stand_in::{Manner, PASSWORD, StandIn, USER};
use farrier_conductor::model::{NewNode, PowerState};
use farrier_conductor::{Drivers, HardwareType, Settings};
use farrier_drivers::client::rate_limit::RateLimit;
use farrier_drivers::fake::with_fake_hardware;
use farrier_drivers::redfish::{Bmcs, Lasting, RedfishPower, RedfishSettings};
use farrier_engine::Conductor;
use farrier_engine::store::sqlite::SqliteStore;
use serde_json::json;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One machine of so many hangs, and one is out of service.
const ONE_IN: usize = 20;

/// The pause before the first round.
const PAUSE: Duration = Duration::from_secs(1);

/// What may be needed more, in KiB, be there few or many.
pub const MEMORY_KIB: u64 = 64 << 10;

/// What it took to read every healthy machine.
pub struct Reading {
    took: Duration,
    /// What the process has needed more, in KiB, the stand-ins included.
    pub memory_kib: u64,
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "read within {:.1} s, with {} KiB more", self.took.as_secs_f64(), self.memory_kib)
    }
}

/// What a BMC gets: four requests at once, and then ten in a second.
const RATE_LIMIT: RateLimit = RateLimit {
    interval: Duration::from_millis(100),
    burst: 4,
    first_backoff: Duration::from_secs(1),
    longest_backoff: Duration::from_secs(30),
};

fn manner(number: usize) -> Option<Manner> {
    match number % ONE_IN {
        7 => Some(Manner::Hangs),
        13 => Some(Manner::OutOfService),
        _ => None,
    }
}

/// The most memory that this process has ever had, in KiB; the stand-ins are in it too.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Set in a process in which a test runs alone.
#[cfg(test)]
const ALONE: &str = "FARRIER_TEST_ALONE";

#[tokio::test(flavor = "multi_thread")]
async fn healthy_machines_are_read_whatever_the_others_do() {
    if std::env::var_os(ALONE).is_none() {
        // Memory is counted for a process, and other tests have theirs in this one.
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "many::healthy_machines_are_read_whatever_the_others_do"]).env(ALONE, "");
        assert!(alone.status().unwrap().success());
        return;
    }
    let reading = read(2 * ONE_IN, Duration::from_secs(60)).await;
    assert!(reading.memory_kib < MEMORY_KIB, "{reading}");
}

/// Reads the power of so many machines.
///
/// # Panics
///
/// When a healthy one is not read within the limit, or a BMC gets more than its rate limit.
pub async fn read(machines: usize, limit: Duration) -> Reading {
    rustls::crypto::ring::default_provider().install_default().ok();
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(SqliteStore::open(&folder.path().join("nodes.sqlite")).await.unwrap());
    let mut site = Settings::new("http://127.0.0.1:1");
    site.power_sync.sync_power_state_interval = PAUSE;
    site.power_sync.force_power_state_during_sync = false;
    let sessions = Bmcs::new(RedfishSettings {
        rate_limit: RATE_LIMIT,
        request_timeout: RedfishSettings::default().request_timeout,
        ..settings()
    });
    let drivers = with_fake_hardware(Drivers::default());
    let rack = HardwareType::new("rack").power(["redfish"]).boot(["fake"]).deploy(["fake"]);
    let drivers =
        drivers.power("redfish", RedfishPower::new(sessions, Lasting::default())).hardware_type(rack);
    let conductor = Conductor::builder(site, store, drivers).start().await.unwrap();
    let (bmcs, _serving) = StandIn::start_many((0..machines).map(manner)).await;
    for (number, bmc) in bmcs.iter().enumerate() {
        bmc.inner().machine.power = "On";
        let info = json!({
            "redfish_address": bmc.url, "redfish_username": USER, "redfish_password": PASSWORD,
            "redfish_system_id": "/redfish/v1/Systems/1",
        });
        let new = NewNode {
            name: Some(format!("n{number}")),
            driver: "rack".into(),
            driver_info: info.as_object().unwrap().clone().into(),
            ..NewNode::default()
        };
        conductor.create_node(new).await.unwrap();
    }
    let before = memory();
    let running = tokio::spawn({
        let conductor = conductor.clone();
        async move { conductor.run().await }
    });
    let start = Instant::now();
    for number in (0..machines).filter(|number| manner(*number).is_none()) {
        let name = format!("n{number}");
        while conductor.node(&name).await.unwrap().power_state != Some(PowerState::On) {
            assert!(start.elapsed() < limit, "{name} is not read");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    let reading = Reading { took: start.elapsed(), memory_kib: memory().saturating_sub(before) };
    bmcs.iter().for_each(assert_rate_limit);
    running.abort();
    reading
}

/// No BMC gets more than its rate limit: in any second, what its bucket holds and what comes into it.
fn assert_rate_limit(bmc: &StandIn) {
    let at: Vec<_> = bmc.inner().seen.iter().map(|seen| seen.at).collect();
    let second = Duration::from_secs(1);
    let most = RATE_LIMIT.burst as usize + 10;
    for (first, start) in at.iter().enumerate() {
        let within = at[first..].iter().take_while(|later| **later - *start < second).count();
        // One that was late on its way came with the next.
        assert!(within <= most + 1, "{within} requests in a second");
    }
}
