//! The verbs of the provision interface (section 1.2): since when each is there, and what arguments it has.

use crate::wire::asked::Asked;
use crate::wire::reply::{Refusal, read_json};
use crate::wire::view::links;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::IntoResponse;
use farrier_conductor::model::ProvisionState;
use farrier_engine::Conductor;
use farrier_engine::records::{Deployment, Order, OrderedSteps, StepsOrder};
use farrier_media::config_drive;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A verb of the provision interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvisionVerb {
    /// What `target` is.
    pub target: &'static str,
    /// Minor number of the first version that has it.
    pub since: u16,
    /// The arguments it takes, with the first version of each.
    pub arguments: &'static [(&'static str, u16)],
}

const fn verb(target: &'static str, since: u16, arguments: &'static [(&'static str, u16)]) -> ProvisionVerb {
    ProvisionVerb { target, since, arguments }
}

/// The verbs that a provision request may have.
pub const VERBS: &[ProvisionVerb] = &[
    verb("active", 1, &[("configdrive", 1), ("deploy_steps", 69)]),
    verb("deploy", 73, &[("configdrive", 1), ("deploy_steps", 69)]),
    verb("rebuild", 1, &[("configdrive", 35), ("deploy_steps", 69)]),
    verb("deleted", 1, &[]),
    verb("undeploy", 73, &[]),
    verb("manage", 4, &[]),
    verb("provide", 4, &[]),
    verb("clean", 15, &[("clean_steps", 15), ("disable_ramdisk", 70), ("runbook", 92)]),
    verb("inspect", 6, &[]),
    verb("service", 87, &[("service_steps", 87), ("disable_ramdisk", 108), ("runbook", 92)]),
    verb("rescue", 38, &[("rescue_password", 38)]),
    verb("unrescue", 38, &[]),
    verb("adopt", 17, &[]),
    verb("abort", 13, &[]),
    verb("unhold", 85, &[]),
    // An extension of Farrier.
    verb("retry", 1, &[]),
];

/// States whose operations could not always be aborted, with the first version in which they can.
const ABORT_SINCE: &[(ProvisionState, u16)] =
    &[(ProvisionState::InspectWait, 41), (ProvisionState::DeployWait, 110)];

/// First versions of config drives that the conductor makes, and of those with vendor data.
const BUILT_CONFIG_DRIVE: u16 = 56;
const VENDOR_DATA: u16 = 59;

/// Body of `PUT /v1/nodes/{node}/states/provision`.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvisionRequest {
    /// One of [`VERBS`].
    pub target: String,
    /// The config drive: base64 of a gzip of its image, its URL, or an object of which one is made, with `meta_data`,
    /// `network_data`, `user_data` and `vendor_data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configdrive: Option<Value>,
    /// Steps of a cleaning by hand, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_steps: Option<Vec<Value>>,
    /// Steps of a deployment beside those that run by themselves, or in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_steps: Option<Vec<Value>>,
    /// Steps of a service, in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_steps: Option<Vec<Value>>,
    /// Name or identity of the runbook that has the steps of a cleaning by hand, or of a service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runbook: Option<String>,
    /// The password of a rescue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue_password: Option<String>,
    /// Whether cleaning by hand, or service, runs without the ramdisk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_ramdisk: Option<bool>,
}

impl ProvisionRequest {
    /// The arguments that it can have, and whether it has them.
    fn arguments(&self) -> [(&'static str, bool); 7] {
        [
            ("configdrive", self.configdrive.is_some()),
            ("clean_steps", self.clean_steps.is_some()),
            ("deploy_steps", self.deploy_steps.is_some()),
            ("service_steps", self.service_steps.is_some()),
            ("runbook", self.runbook.is_some()),
            ("rescue_password", self.rescue_password.is_some()),
            ("disable_ramdisk", self.disable_ramdisk.is_some()),
        ]
    }

    /// Refuses a verb, or an argument, that is not there in the version, or does not belong to the verb.
    fn check(&self, asked: &Asked) -> Result<(), Refusal> {
        let Some(verb) = VERBS.iter().find(|verb| verb.target == self.target) else {
            let known: Vec<_> = VERBS.iter().map(|verb| verb.target).collect();
            let text = format!("target {:?} is not known; use one of: {}", self.target, known.join(", "));
            return Err(Refusal::bad_request(text));
        };
        asked.needs(verb.since, &format!("target {:?}", self.target))?;
        for (argument, _) in self.arguments().into_iter().filter(|(_, is_given)| *is_given) {
            match verb.arguments.iter().find(|(name, _)| *name == argument) {
                Some((_, since)) => asked.needs(*since, argument)?,
                None => {
                    let owners =
                        VERBS.iter().filter(|verb| verb.arguments.iter().any(|(name, _)| *name == argument));
                    let owners: Vec<_> = owners.map(|verb| verb.target).collect();
                    let text = format!(
                        "{argument} does not belong to target {:?}, but to {}",
                        self.target,
                        owners.join(", ")
                    );
                    return Err(Refusal::bad_request(text));
                }
            }
        }
        if self.runbook.is_some() && (self.clean_steps.is_some() || self.service_steps.is_some()) {
            let text = format!("runbook: takes the place of {}_steps; give one of both", self.target);
            return Err(Refusal::bad_request(text));
        }
        Ok(())
    }

    /// What is ordered, with the config drive as it is kept.
    fn order(self, config_drive: Option<String>) -> Order {
        let disable_ramdisk = self.disable_ramdisk.unwrap_or_default();
        let runbook = self.runbook.map(OrderedSteps::Runbook);
        let steps = |given: Option<Vec<Value>>| StepsOrder {
            steps: runbook.unwrap_or_else(|| OrderedSteps::Given(given.unwrap_or_default())),
            disable_ramdisk,
        };
        let deployment = |given: Option<Vec<Value>>| Deployment {
            instance_info: None,
            config_drive,
            steps: given.unwrap_or_default(),
        };
        match self.target.as_str() {
            "deleted" | "undeploy" => Order::Undeploy,
            "manage" => Order::Manage,
            "provide" => Order::Provide,
            "clean" => Order::Clean(steps(self.clean_steps)),
            "inspect" => Order::Inspect,
            "service" => Order::Service(steps(self.service_steps)),
            "rescue" => Order::Rescue { password: self.rescue_password.unwrap_or_default() },
            "unrescue" => Order::Unrescue,
            "adopt" => Order::Adopt,
            "retry" => Order::Retry,
            "abort" => Order::Abort,
            "unhold" => Order::Unhold,
            "rebuild" => Order::Rebuild(deployment(self.deploy_steps)),
            _ => Order::Deploy(deployment(self.deploy_steps)),
        }
    }
}

/// `PUT /nodes/{node}/states/provision`
pub(super) async fn order(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<impl IntoResponse, Refusal> {
    let request: ProvisionRequest = read_json(&body)?;
    request.check(&asked)?;
    let node = conductor.find(&id).await?.node;
    if request.target == "abort" {
        for (_, since) in ABORT_SINCE.iter().filter(|(state, _)| *state == node.provision_state) {
            asked.needs(*since, &format!("target \"abort\" in state {:?}", node.provision_state.as_str()))?;
        }
    }
    let drive = config_drive_of(request.configdrive.clone(), &asked)?;
    let order = request.order(drive);
    conductor.order(&node.uuid.to_string(), order).await.map_err(Refusal::of_verb)?;
    let [place, _] = links(&asked.url, &format!("nodes/{}/states", node.uuid));
    Ok((StatusCode::ACCEPTED, [(LOCATION, place.href)]))
}

/// The config drive as it is kept: a text that agents take, made where its parts are given.
fn config_drive_of(given: Option<Value>, asked: &Asked) -> Result<Option<String>, Refusal> {
    let refuse = |reason: &str| Err(Refusal::bad_request(format!("configdrive: {reason}")));
    match given {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        // Clients that have none send an object without parts.
        Some(Value::Object(parts)) if parts.is_empty() => Ok(None),
        Some(Value::String(text)) => match is_usable(&text) {
            true => Ok(Some(text)),
            false => refuse("must be a URL, base64 of a gzip of an image, or an object with its parts"),
        },
        Some(Value::Object(parts)) => {
            asked.needs(BUILT_CONFIG_DRIVE, "a configdrive that is an object")?;
            if parts.contains_key("vendor_data") {
                asked.needs(VENDOR_DATA, "vendor_data of a configdrive")?;
            }
            let made = config_drive::make(&parts);
            made.map(Some).map_err(|error| Refusal::bad_request(format!("configdrive: {error}")))
        }
        Some(_) => refuse("must be a text or an object"),
    }
}

fn is_usable(text: &str) -> bool {
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/= \t\r\n".contains(c);
    text.starts_with("http://") || text.starts_with("https://") || text.chars().all(is_base64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_drives_are_urls_or_base64() {
        for (text, expected) in [
            ("http://h/drive.gz", true),
            ("https://h/drive.gz", true),
            ("H4sI+/==\n", true),
            ("ftp://h/drive", false),
            ("{\"meta_data\": {}}", false),
            ("******", false),
        ] {
            assert_eq!(is_usable(text), expected, "{text}");
        }
    }

    #[test]
    fn every_argument_belongs_to_a_verb() {
        let request = ProvisionRequest::default();
        for (argument, _) in request.arguments() {
            assert!(
                VERBS.iter().any(|verb| verb.arguments.iter().any(|(name, _)| *name == argument)),
                "{argument}"
            );
        }
        for verb in VERBS {
            for (argument, _) in verb.arguments {
                assert!(request.arguments().iter().any(|(name, _)| name == argument), "{argument}");
            }
        }
    }
}
