//! A node, and the interfaces that lead its machine.

use crate::stand_in::{Manner, Mockup, PASSWORD, StandIn, USER};
use farrier_conductor::model::clock::{Clock, SystemClock};
use farrier_conductor::model::{NewNode, Node};
use farrier_drivers::client::rate_limit::RateLimit;
use farrier_drivers::redfish::{Bmcs, Lasting, RedfishManagement, RedfishPower, RedfishSettings};
use serde_json::{Value, json};
use std::time::Duration;

/// A node with this `driver_info`.
pub fn node(info: &Value) -> Node {
    let driver_info = info.as_object().unwrap().clone().into();
    let new =
        NewNode { name: Some("n1".into()), driver: "redfish".into(), driver_info, ..NewNode::default() };
    Node::enrol(new, SystemClock.now())
}

/// What a node says of a BMC whose user is known there.
pub fn info(url: &str) -> Value {
    json!({"redfish_address": url, "redfish_username": USER, "redfish_password": PASSWORD})
}

/// The settings of a site where nothing takes long.
pub fn settings() -> RedfishSettings {
    let ms = Duration::from_millis;
    RedfishSettings {
        rate_limit: RateLimit { interval: ms(1), burst: 1000, first_backoff: ms(2), longest_backoff: ms(20) },
        busy_pause: ms(5),
        refusal_pause: ms(5),
        task_poll: ms(5),
        power_wait: Duration::from_secs(60),
        power_poll: ms(5),
        power_retry: ms(20),
        media_wait: Duration::from_secs(60),
        screen_wait: Duration::from_secs(60),
        ca_folders: vec![std::env::temp_dir()],
        ..RedfishSettings::default()
    }
}

/// A node, and the interfaces that lead its machine.
pub struct Stage {
    pub bmc: StandIn,
    pub node: Node,
    pub power: RedfishPower,
    pub management: RedfishManagement,
}

impl Stage {
    pub async fn new(manners: impl IntoIterator<Item = Manner>) -> Self {
        Self::with(manners, settings()).await
    }

    pub async fn with(manners: impl IntoIterator<Item = Manner>, settings: RedfishSettings) -> Self {
        Self::at(StandIn::start(manners).await, None, settings)
    }

    /// One whose BMC has the replies of another.
    pub async fn of(mockup: Mockup) -> Self {
        Self::of_with(mockup, settings()).await
    }

    pub async fn of_with(mockup: Mockup, settings: RedfishSettings) -> Self {
        let system = mockup.system().map(str::to_owned);
        Self::at(StandIn::of(mockup).await, system.as_deref(), settings)
    }

    pub fn at(bmc: StandIn, system: Option<&str>, settings: RedfishSettings) -> Self {
        let mut info = info(&bmc.url);
        if let Some(system) = system {
            info["redfish_system_id"] = json!(system);
        }
        let (power, management) = interfaces(settings);
        Self { bmc, node: node(&info), power, management }
    }
}

/// Interfaces that have been used for nothing yet.
pub fn interfaces(settings: RedfishSettings) -> (RedfishPower, RedfishManagement) {
    rustls::crypto::ring::default_provider().install_default().ok();
    let (bmcs, lasting) = (Bmcs::new(settings), Lasting::default());
    (RedfishPower::new(bmcs.clone(), lasting.clone()), RedfishManagement::new(bmcs, lasting))
}
