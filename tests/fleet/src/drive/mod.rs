//! Leads machines through their lives by a conductor's node API, as an operator would, and tells what came of it.

mod client;
mod life;
mod named;
mod report;
mod results;
mod words;

pub use client::{ApiError, Credentials, Endpoint, NodeApi};
pub use life::{Ended, Failure};
pub use report::{ClassFigures, Report, Usage};
pub use results::{Results, ResultsError};

use crate::fleet::Fleet;
use crate::site::{Site, peak_kib, processor_seconds};
use life::LifeDriver;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Barrier;
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

/// How lives are led.
#[derive(Debug)]
pub struct Drive {
    /// The node API of the conductors.
    pub api: Arc<NodeApi>,
    /// How nodes are enrolled.
    pub enrolment: Enrolment,
    /// The conductors, where faults may strike them.
    pub site: Option<Arc<Site>>,
    /// Lives that an earlier run has led to their end; nothing where there was none.
    pub ended: Option<Vec<Ended>>,
}

impl Drive {
    /// Lives by an API, with nothing else.
    pub fn by(api: Arc<NodeApi>) -> Self {
        Self { api, enrolment: Enrolment::default(), site: None, ended: None }
    }

    /// Leads all lives that the file of a fleet has, so many at a time. `told` hears of each that has ended.
    pub async fn run(self, fleet: &Arc<Fleet>, mut told: impl FnMut(&Ended)) -> Report {
        let (start, file) = (Instant::now(), fleet.file());
        let (lives, machines) = (file.lives.count, u64::from(file.machines));
        let workers = u64::from(file.lives.at_once).min(machines);
        let mut report = Report::new(file);
        let is_resumed = self.ended.is_some();
        let over: Arc<HashSet<_>> = Arc::new(self.ended.iter().flatten().map(|ended| ended.life).collect());
        self.ended.into_iter().flatten().for_each(|ended| report.add(ended));
        let (sender, mut ended) = tokio::sync::mpsc::channel(64);
        let together = file.lives.together.then(|| Arc::new(Barrier::new(workers as usize)));
        let mut working = JoinSet::new();
        for worker in 0..workers {
            let (api, site) = (Arc::clone(&self.api), self.site.clone());
            let (enrolment, together) = (self.enrolment.clone(), together.clone());
            let driver = LifeDriver::new(Arc::clone(fleet), api, enrolment, site, together);
            let (sender, over) = (sender.clone(), Arc::clone(&over));
            working.spawn(async move {
                // A machine has one life at a time, and always the same ones.
                let own = (0..lives).filter(|life| life % machines % workers == worker);
                for life in own.filter(|life| !over.contains(life)) {
                    let number = (life % machines) as u32;
                    if is_resumed {
                        driver.remove_left(life, number).await;
                    }
                    let ended = driver.live(life, number).await;
                    if sender.send(ended).await.is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        while let Some(life) = ended.recv().await {
            told(&life);
            report.add(life);
        }
        report.heartbeats = fleet.answer_times();
        report.seconds = start.elapsed().as_secs_f64();
        report.processor.simulator_seconds = processor_seconds(std::process::id());
        report.processor.simulator_kib = peak_kib(std::process::id());
        if let Some(site) = &self.site {
            let (seconds, kib) = site.usage().await;
            (report.processor.conductor_seconds, report.processor.conductor_kib) = (seconds, kib);
        }
        report
    }
}
