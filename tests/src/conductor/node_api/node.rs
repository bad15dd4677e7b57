//! A node, and what an operator orders its conductor to do with it.

use super::{Conductor, Enrolment};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(200);
/// Longest time until a new node is under control.
const START: Duration = Duration::from_secs(60);

/// An enrolled node.
#[derive(Debug)]
pub struct Node<'a> {
    conductor: &'a dyn Conductor,
    /// Its UUID.
    pub uuid: String,
}

/// What to deploy.
#[derive(Debug)]
pub struct Instance<'a> {
    /// URL of the image, as the machine reaches it.
    pub url: String,
    /// SHA-256 of the image, hexadecimal.
    pub sha256: &'a str,
    /// Meta data for its config drive.
    pub meta_data: Value,
}

/// An order, as `PUT /v1/nodes/UUID/states/provision` takes it. Each method gives one.
#[derive(Debug)]
pub struct Order(Value);

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0["target"].as_str().unwrap_or_default())
    }
}

impl Order {
    /// Takes the node under management, or back from `available`.
    pub fn manage() -> Self {
        Self(json!({"target": "manage"}))
    }

    /// Inspects a manageable node.
    pub fn inspect() -> Self {
        Self(json!({"target": "inspect"}))
    }

    /// Cleans a manageable node with the named steps of the deploy interface.
    pub fn clean(steps: &[&str]) -> Self {
        let step = |name: &&str| json!({"interface": "deploy", "step": name});
        Self(json!({"target": "clean", "clean_steps": steps.iter().map(step).collect::<Vec<_>>()}))
    }

    /// Cleans a manageable node with the named steps of the RAID interface.
    pub fn clean_raid(steps: &[&str]) -> Self {
        let step = |name: &&str| json!({"interface": "raid", "step": name});
        Self(json!({"target": "clean", "clean_steps": steps.iter().map(step).collect::<Vec<_>>()}))
    }

    /// Makes a manageable node available, by way of automated cleaning.
    pub fn provide() -> Self {
        Self(json!({"target": "provide"}))
    }

    /// Deploys the image that [`Node::set_instance`] named.
    pub fn deploy(instance: &Instance<'_>) -> Self {
        Self(json!({"target": "active", "configdrive": {"meta_data": instance.meta_data}}))
    }

    /// Deploys the image with further steps.
    pub fn deploy_with(instance: &Instance<'_>, steps: &Value) -> Self {
        let drive = json!({"meta_data": instance.meta_data});
        Self(json!({"target": "active", "configdrive": drive, "deploy_steps": steps}))
    }

    /// Deploys again.
    pub fn rebuild(instance: &Instance<'_>) -> Self {
        Self(json!({"target": "rebuild", "configdrive": {"meta_data": instance.meta_data}}))
    }

    /// Boots an active node into the ramdisk for its user to log in.
    pub fn rescue(password: &str) -> Self {
        Self(json!({"target": "rescue", "rescue_password": password}))
    }

    /// Boots the instance of a rescued node again.
    pub fn unrescue() -> Self {
        Self(json!({"target": "unrescue"}))
    }

    /// Takes steps on an active node.
    pub fn service(steps: &Value) -> Self {
        Self(json!({"target": "service", "service_steps": steps}))
    }

    /// Removes the instance and cleans the node.
    pub fn undeploy() -> Self {
        Self(json!({"target": "deleted"}))
    }
}

impl<'a> Node<'a> {
    /// Enrols a node and takes it under management.
    ///
    /// # Errors
    ///
    /// What the conductor answers.
    pub fn enrol(conductor: &'a dyn Conductor, enrolment: &Enrolment<'_>) -> Result<Self> {
        let api = conductor.api();
        let record = api.request("POST", "/v1/nodes", Some(&enrolment.record()))?;
        let uuid = record["uuid"].as_str().context("the new node has no UUID")?.to_owned();
        let port = json!({"node_uuid": uuid, "address": enrolment.mac});
        api.request("POST", "/v1/ports", Some(&port))?;
        let node = Self { conductor, uuid };
        node.order(&Order::manage())?;
        node.reach("manageable", START)?;
        Ok(node)
    }

    /// Starts an operation.
    ///
    /// # Errors
    ///
    /// What the conductor answers.
    pub fn order(&self, order: &Order) -> Result<()> {
        self.request("PUT", "/states/provision", Some(&order.0)).map(drop)
    }

    /// Names the image that the next deployments take.
    ///
    /// # Errors
    ///
    /// What the conductor answers.
    pub fn set_instance(&self, instance: &Instance<'_>) -> Result<()> {
        let info = [
            ("image_source", instance.url.as_str()),
            ("image_disk_format", "raw"),
            ("image_os_hash_algo", "sha256"),
            ("image_os_hash_value", instance.sha256),
        ];
        let patch = info.map(
            |(name, value)| json!({"op": "add", "path": format!("/instance_info/{name}"), "value": value}),
        );
        self.request("PATCH", "", Some(&patch.as_slice().into())).map(drop)
    }

    /// Records a property of the machine.
    ///
    /// # Errors
    ///
    /// What the conductor answers.
    pub fn set_property(&self, name: &str, value: &Value) -> Result<()> {
        let patch = json!([{"op": "add", "path": format!("/properties/{name}"), "value": value}]);
        self.request("PATCH", "", Some(&patch)).map(drop)
    }

    /// Tells the conductor that an operator has looked after a failure.
    ///
    /// # Errors
    ///
    /// What the conductor answers.
    pub fn leave_maintenance(&self) -> Result<()> {
        self.request("DELETE", "/maintenance", None).map(drop)
    }

    /// Has the agent make the RAID volumes that are wanted from now on.
    ///
    /// # Errors
    ///
    /// What the conductor answers.
    pub fn set_raid(&self, wanted: &Value) -> Result<()> {
        let patch = json!([{"op": "replace", "path": "/raid_interface", "value": "agent"}]);
        self.request("PATCH", "", Some(&patch))?;
        self.request("PUT", "/states/raid", Some(wanted)).map(drop)
    }

    /// Switches the machine off, and waits until it is.
    ///
    /// # Errors
    ///
    /// What the conductor answers, or the machine is on after `limit`.
    pub fn power_off(&self, limit: Duration) -> Result<()> {
        self.request("PUT", "/states/power", Some(&json!({"target": "power off"})))?;
        self.wait_for(limit, |node| node["power_state"] == "power off").map(drop)
    }

    /// Says whether operations from now on take a ramdisk that runs already, or boot it anew.
    ///
    /// # Errors
    ///
    /// What the conductor answers.
    pub fn set_fast_track(&self, on: bool) -> Result<()> {
        let patch = json!([{"op": "replace", "path": "/driver_info/fast_track", "value": on}]);
        self.request("PATCH", "", Some(&patch)).map(drop)
    }

    /// What an inspection found out.
    ///
    /// # Errors
    ///
    /// What the conductor answers.
    pub fn inventory(&self) -> Result<Value> {
        Ok(self.request("GET", "/inventory", None)?["inventory"].clone())
    }

    /// The record.
    ///
    /// # Errors
    ///
    /// What the conductor answers.
    pub fn record(&self) -> Result<Value> {
        self.request("GET", "", None)
    }

    /// The record as soon as the node is in `state`.
    ///
    /// # Errors
    ///
    /// An operation failed, or the state is not reached after `limit`; the text holds the error and
    /// the conductor's log.
    pub fn reach(&self, state: &str, limit: Duration) -> Result<Value> {
        let node = self.wait_for(limit, |node| node["provision_state"] == state || has_failed(node))?;
        if node["provision_state"] != state {
            bail!("{} instead of {state}: {}", node["provision_state"], node["last_error"]);
        }
        Ok(node)
    }

    /// What the conductor knows of the agent, once the agent was heard in the operation that goes on. Nothing if the
    /// node is in `end`, and the agent forgotten, before anybody could look: a rescue is over a few milliseconds after
    /// the first heartbeat.
    ///
    /// # Errors
    ///
    /// The operation failed before, or the agent is not heard for as long as `limit`.
    pub fn agent(&self, end: &str, limit: Duration) -> Result<Option<Value>> {
        let is_known = |node: &Value| node["driver_internal_info"]["agent_url"].is_string();
        let is_over = |node: &Value| node["provision_state"] == end;
        let node = self.wait_for(limit, |node| is_known(node) || is_over(node) || has_failed(node))?;
        if !is_known(&node) && !is_over(&node) {
            bail!("{} without an agent: {}", node["provision_state"], node["last_error"]);
        }
        Ok(is_known(&node).then(|| node["driver_internal_info"].clone()))
    }

    /// The record as soon as it is as wanted.
    ///
    /// # Errors
    ///
    /// It is not so after `limit`; the text holds the state and the conductor's log.
    pub fn wait_for(&self, limit: Duration, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        let start = Instant::now();
        loop {
            let record = self.record()?;
            if wanted(&record) {
                return Ok(record);
            }
            if start.elapsed() > limit {
                let (state, error) = (&record["provision_state"], &record["last_error"]);
                let log = self.conductor.log_tail();
                bail!(
                    "after {limit:?} the node is in {state}, last_error {error}; the conductor's log:\n{log}"
                );
            }
            thread::sleep(POLL);
        }
    }

    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        self.conductor.api().request(method, &format!("/v1/nodes/{}{path}", self.uuid), body)
    }
}

fn has_failed(node: &Value) -> bool {
    node["provision_state"].as_str().is_some_and(|state| state == "error" || state.contains("failed"))
}
