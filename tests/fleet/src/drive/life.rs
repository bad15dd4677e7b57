//! One life of a machine: enrolled, inspected, cleaned, deployed, rebuilt, undeployed, and given back.

use super::client::{ApiError, NodeApi};
use super::{Enrolment, named, words};
use crate::bmc::{IMAGE_SHA256, Served};
use crate::fault::{Class, Fault, plan};
use crate::file::LOGIN;
use crate::fleet::Fleet;
use crate::journal::{Overlap, Twice, done_twice, overlaps};
use crate::life::Operation;
use crate::machine::Machine;
use crate::site::Site;
use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;
use tokio::time::{Instant, sleep};

/// Pause between two readings of a node.
const POLL: Duration = Duration::from_millis(500);
/// How long a conductor may take to clean up after a failure before it is asked what that was.
const UNLOCK_LIMIT: Duration = Duration::from_secs(90);

/// How long after an order a conductor is struck at most: while the order is carried out.
const STRIKE_LIMIT: Duration = Duration::from_secs(6);
/// How long a conductor that was struck is waited for before what it may have taken is sent again.
const LOST_LIMIT: Duration = Duration::from_secs(120);
/// Pause before it is sent again.
const LOST_PAUSE: Duration = Duration::from_secs(2);

/// Why a life did not reach its goal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The operation; nothing where the node could not be enrolled.
    pub operation: Option<Operation>,
    /// What the conductor says of it.
    pub said: String,
    /// Whether that names a fault that took effect.
    pub is_explained: bool,
}

/// A life that has ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ended {
    /// Its number.
    pub life: u64,
    /// Number of its machine.
    pub machine: u32,
    /// Its faults, each with whether it took effect.
    pub faults: Vec<(Fault, bool)>,
    /// Why it did not reach its goal; nothing where it did at first.
    pub failure: Option<Failure>,
    /// How long it took.
    pub length: Duration,
    /// What was done twice to the machine.
    pub twice: Vec<Twice>,
    /// Where two acted on the machine by turns.
    pub overlaps: Vec<Overlap>,
}

/// Leads lives, one at a time.
pub(super) struct LifeDriver {
    fleet: Arc<Fleet>,
    api: Arc<NodeApi>,
    enrolment: Enrolment,
    site: Option<Arc<Site>>,
    /// Where lives wait for each other.
    together: Option<Arc<Barrier>>,
}

/// What has gone wrong with an operation.
enum Wrong {
    /// The conductor refuses, or is not reached.
    Api(ApiError),
    /// The node has failed, or is late; with what the conductor says.
    Node(String),
}

impl From<ApiError> for Wrong {
    fn from(error: ApiError) -> Self {
        Self::Api(error)
    }
}

impl LifeDriver {
    pub(super) fn new(
        fleet: Arc<Fleet>,
        api: Arc<NodeApi>,
        enrolment: Enrolment,
        site: Option<Arc<Site>>,
        together: Option<Arc<Barrier>>,
    ) -> Self {
        Self { fleet, api, enrolment, site, together }
    }

    /// Leads the life with a number on a machine.
    pub(super) async fn live(&self, life: u64, number: u32) -> Ended {
        let start = Instant::now();
        let mut ended = Ended {
            life,
            machine: number,
            faults: Vec::new(),
            failure: None,
            length: Duration::ZERO,
            twice: Vec::new(),
            overlaps: Vec::new(),
        };
        let Some(machine) = self.fleet.machine(number).cloned() else { return ended };
        let file = self.fleet.file();
        machine.begin_life(life, plan(file.seed, &file.rates(), life));
        let name = name(&machine, life);
        ended.failure = self.lead(&machine, &name).await;
        self.remove(&name).await;
        ended.faults = machine.end_life();
        let struck = ended.faults.iter().filter(|(_, struck)| *struck).map(|(fault, _)| *fault);
        if let Some(failure) = &mut ended.failure {
            failure.is_explained = struck.into_iter().any(|fault| named::names(&failure.said, fault));
        }
        let entries = self.fleet.journal().take(number);
        (ended.twice, ended.overlaps) = (done_twice(&entries), overlaps(&entries, file.lives.lease.0));
        ended.length = start.elapsed();
        ended
    }

    async fn lead(&self, machine: &Machine, name: &str) -> Option<Failure> {
        let mut failure = match self.enrol(machine, name).await {
            Ok(()) => None,
            Err(wrong) => Some(self.failure(name, None, wrong).await),
        };
        for operation in self.fleet.file().lives.operations.iter().copied() {
            // One that has failed is waited for as well.
            if let Some(together) = &self.together {
                together.wait().await;
            }
            if failure.is_some() {
                continue;
            }
            machine.begin(operation);
            let (carried_out, ()) = tokio::join!(self.carry_out(name, operation), self.strike_site(machine));
            if let Err(wrong) = carried_out {
                failure = Some(self.failure(name, Some(operation), wrong).await);
            }
        }
        failure
    }

    /// Strikes a conductor where the operation has such a fault.
    async fn strike_site(&self, machine: &Machine) {
        let (Some(site), Some(fault)) = (&self.site, machine.armed(Class::Conductor)) else { return };
        let seed = self.fleet.file().seed;
        let draw = |what: &str| seed.draw(what, machine.life().unwrap_or_default());
        sleep(STRIKE_LIMIT.mul_f64(draw("strike after").fraction())).await;
        if machine.strike_as(Class::Conductor, fault.kind).is_none() {
            return;
        }
        let which = (draw("strike whom").fraction() * f64::from(u16::MAX)) as u64;
        if let Err(error) = site.strike(which, fault.kind, fault.lasts).await {
            tracing::error!("{error}");
        }
    }

    async fn enrol(&self, machine: &Machine, name: &str) -> Result<(), Wrong> {
        let mut info = json!({
            "redfish_address": self.fleet.bmc_url(machine), "redfish_system_id": machine.vendor.system(),
            "redfish_username": LOGIN.0, "redfish_password": LOGIN.1,
            "deploy_kernel": self.fleet.served(Served::Kernel), "deploy_ramdisk": self.fleet.served(Served::Ramdisk),
        });
        if let Some(info) = info.as_object_mut() {
            info.extend(self.enrolment.driver_info.clone());
        }
        let node = json!({
            "name": name, "driver": "redfish", "boot_interface": self.enrolment.boot_interface,
            "inspect_interface": "agent", "deploy_interface": "direct", "driver_info": info,
            "properties": {"cpu_arch": "x86_64", "capabilities": "boot_mode:uefi"},
        });
        let node = self.create("/v1/nodes", &node, &format!("/v1/nodes/{name}")).await?;
        let mac = machine.identity.mac();
        let port = json!({"node_uuid": node["uuid"], "address": mac});
        self.create("/v1/ports", &port, &format!("/v1/ports/{mac}")).await?;
        self.order(name, &json!({"target": "manage"})).await?;
        self.reach(name, "manageable").await
    }

    async fn carry_out(&self, name: &str, operation: Operation) -> Result<(), Wrong> {
        let drive = json!({"meta_data": {"uuid": name, "hostname": name}});
        let (order, goal) = match operation {
            Operation::Inspect => (json!({"target": "inspect"}), "manageable"),
            Operation::Clean => (json!({"target": "provide"}), "available"),
            Operation::Deploy => {
                self.choose_image(name).await?;
                (json!({"target": "active", "configdrive": drive}), "active")
            }
            Operation::Rebuild => (json!({"target": "rebuild", "configdrive": drive}), "active"),
            Operation::Undeploy => (json!({"target": "deleted"}), "available"),
        };
        self.order(name, &order).await?;
        self.reach(name, goal).await
    }

    async fn choose_image(&self, name: &str) -> Result<(), ApiError> {
        let image = self.fleet.served(Served::Image);
        let info = [
            ("image_source", image.as_str()),
            ("image_disk_format", "raw"),
            ("image_os_hash_algo", "sha256"),
            ("image_os_hash_value", IMAGE_SHA256),
        ];
        let patch = info.map(
            |(key, value)| json!({"op": "add", "path": format!("/instance_info/{key}"), "value": value}),
        );
        let path = format!("/v1/nodes/{name}");
        self.api.ask(Method::PATCH, &path, Some(&patch.as_slice().into())).await.map(drop)
    }

    /// Creates something. Whether a conductor that was lost has created it is told by what is found.
    async fn create(&self, path: &str, body: &Value, found: &str) -> Result<Value, ApiError> {
        let start = Instant::now();
        loop {
            match self.api.ask(Method::POST, path, Some(body)).await {
                Err(ApiError::Unreachable { .. }) if start.elapsed() < LOST_LIMIT => {
                    sleep(LOST_PAUSE).await;
                    if let Ok(found) = self.api.ask(Method::GET, found, None).await {
                        return Ok(found);
                    }
                }
                answer => return answer,
            }
        }
    }

    /// Gives an order. Whether a conductor that was lost has taken it is told by the node.
    async fn order(&self, name: &str, order: &Value) -> Result<(), ApiError> {
        let path = format!("/v1/nodes/{name}/states/provision");
        let look =
            format!("/v1/nodes/{name}?fields=provision_state,target_provision_state,provision_updated_at");
        let before = self.api.ask(Method::GET, &look, None).await?;
        let (start, mut was_lost) = (Instant::now(), false);
        loop {
            match self.api.ask(Method::PUT, &path, Some(order)).await {
                Err(ApiError::Unreachable { .. }) if start.elapsed() < LOST_LIMIT => was_lost = true,
                Err(ApiError::Refused { .. }) if was_lost && start.elapsed() < LOST_LIMIT => {}
                answer => return answer.map(drop),
            }
            sleep(LOST_PAUSE).await;
            if self.api.ask(Method::GET, &look, None).await? != before {
                return Ok(());
            }
        }
    }

    /// Waits until a node has reached its goal.
    async fn reach(&self, name: &str, goal: &str) -> Result<(), Wrong> {
        let (start, patience) = (Instant::now(), self.fleet.file().lives.patience.0);
        let path = format!(
            "/v1/nodes/{name}?fields=provision_state,target_provision_state,last_error,maintenance,maintenance_reason"
        );
        loop {
            let node = self.api.ask(Method::GET, &path, None).await?;
            let state = node["provision_state"].as_str().unwrap_or_default();
            if state == goal && node["target_provision_state"].is_null() {
                return Ok(());
            }
            let is_late = start.elapsed() > patience;
            if is_late || state == "error" || state.ends_with("failed") {
                let late = if is_late { format!(" after {} s", patience.as_secs()) } else { String::new() };
                let said = [&node["last_error"], &node["maintenance_reason"]];
                let said: Vec<_> = said.into_iter().filter_map(Value::as_str).collect();
                return Err(Wrong::Node(format!("{state}{late}: {}", said.join("; "))));
            }
            sleep(POLL).await;
        }
    }

    /// What the conductor says of a failure: its last error, and its explanation where it has any.
    async fn failure(&self, name: &str, operation: Option<Operation>, wrong: Wrong) -> Failure {
        let said = match wrong {
            Wrong::Api(error) => error.to_string(),
            Wrong::Node(said) => said,
        };
        self.wait_until_unlocked(name).await;
        let path = format!("/farrier/v1/nodes/{name}/explanation");
        let explained = self.api.ask(Method::GET, &path, None).await;
        let explained = explained.map(|explanation| words::of(&explanation)).unwrap_or_default();
        let said = format!("{said}\n{explained}").trim_end().to_owned();
        Failure { operation, said, is_explained: false }
    }

    /// Waits until the conductor has cleaned up after a failure, as far as it does.
    async fn wait_until_unlocked(&self, name: &str) {
        let (start, path) = (Instant::now(), format!("/v1/nodes/{name}?fields=reservation"));
        while start.elapsed() < UNLOCK_LIMIT {
            match self.api.ask(Method::GET, &path, None).await {
                Ok(node) if !node["reservation"].is_null() => sleep(POLL).await,
                _ => return,
            }
        }
    }

    /// Removes what an earlier run that was killed has left of a life.
    pub(super) async fn remove_left(&self, life: u64, number: u32) {
        let Some(machine) = self.fleet.machine(number) else { return };
        let name = name(machine, life);
        if self.api.ask(Method::GET, &format!("/v1/nodes/{name}"), None).await.is_ok() {
            self.remove(&name).await;
        }
    }

    /// Removes a node, whatever it is in.
    async fn remove(&self, name: &str) {
        let path = format!("/v1/nodes/{name}");
        let reason = json!({"reason": "its life is over"});
        let asked = self.api.ask(Method::PUT, &format!("{path}/maintenance"), Some(&reason)).await;
        let removed = match asked {
            Ok(_) => self.api.ask(Method::DELETE, &path, None).await,
            Err(error) => Err(error),
        };
        match removed {
            // The answer to an earlier request was lost.
            Err(ApiError::Refused { status: StatusCode::NOT_FOUND, .. }) | Ok(_) => {}
            Err(error) => tracing::warn!("a node stays behind: {error}"),
        }
    }
}

/// The name of the node of a life.
fn name(machine: &Machine, life: u64) -> String {
    format!("{}-life-{life}", machine.identity.serial())
}
