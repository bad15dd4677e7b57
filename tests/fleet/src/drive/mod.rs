//! Leads machines through their lives by a conductor's node API, as an operator would, and tells what came of it.

mod client;
mod life;
mod named;
mod report;
mod words;

pub use client::{ApiError, Credentials, NodeApi};
pub use life::{Ended, Failure};
pub use report::{ClassFigures, Report};

use crate::fleet::Fleet;
use life::LifeDriver;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Instant;
use tokio::task::JoinSet;

/// How nodes are enrolled, beside what follows from their machines.
#[derive(Debug, Clone, PartialEq)]
pub struct Enrolment {
    /// The boot interface.
    pub boot_interface: String,
    /// What is added to `driver_info`, or takes the place of what is there.
    pub driver_info: Map<String, Value>,
}

impl Default for Enrolment {
    fn default() -> Self {
        Self { boot_interface: "redfish-virtual-media".to_owned(), driver_info: Map::new() }
    }
}

/// Leads all lives that the file of a fleet has, so many at a time. `told` hears of each that has ended.
pub async fn drive(
    fleet: &Arc<Fleet>,
    api: &Arc<NodeApi>,
    enrolment: &Enrolment,
    mut told: impl FnMut(&Ended),
) -> Report {
    let (start, file) = (Instant::now(), fleet.file());
    let (lives, machines) = (file.lives.count, u64::from(file.machines));
    let workers = u64::from(file.lives.at_once).min(machines);
    let (sender, mut ended) = tokio::sync::mpsc::channel(64);
    let mut working = JoinSet::new();
    for worker in 0..workers {
        let driver = LifeDriver::new(Arc::clone(fleet), Arc::clone(api), enrolment.clone());
        let sender = sender.clone();
        working.spawn(async move {
            // A machine has one life at a time, and always the same ones.
            for life in (0..lives).filter(|life| life % machines % workers == worker) {
                let ended = driver.live(life, (life % machines) as u32).await;
                if sender.send(ended).await.is_err() {
                    return;
                }
            }
        });
    }
    drop(sender);
    let mut report = Report::new(file);
    while let Some(life) = ended.recv().await {
        told(&life);
        report.add(life);
    }
    report.seconds = start.elapsed().as_secs_f64();
    report
}
