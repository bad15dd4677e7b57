//! A BMC whose replies were recorded, or published as an example of one.
//!
//! It says what they say, and is as strict as they are: what a reply has not cannot be changed, what is not in its list of
//! allowable values is refused, and an action is one only where a reply has its target.

use super::screen::Screen;
use super::{Seen, json_answer, refusal};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The end of the name of a list of what a property or parameter may be.
const ALLOWABLE: &str = "@Redfish.AllowableValues";

/// What it replies.
#[derive(Debug)]
pub struct Mockup {
    /// The path of the machine, where there are several.
    system: Option<String>,
    /// The replies, by path.
    replies: BTreeMap<String, Value>,
    /// What is on the screen of the machine.
    screen: Screen,
}

/// An action that a resource has.
struct Action {
    /// The path of that resource.
    owner: String,
    name: String,
    description: Value,
}

impl Mockup {
    /// That of a file of the folder `mockups`.
    pub fn read(name: &str) -> Self {
        let path = format!("{}/tests/redfish/mockups/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let mut file: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let Value::Object(replies) = file["replies"].take() else { panic!("{name} has no replies") };
        let system = file["system"].as_str().map(str::to_owned);
        Self { system, replies: replies.into_iter().collect(), screen: Screen::default() }
    }

    /// The path of the machine, where there are several.
    pub fn system(&self) -> Option<&str> {
        self.system.as_deref()
    }

    /// The same with another value at a JSON pointer in a reply.
    #[must_use]
    pub fn with(mut self, path: &str, pointer: &str, value: Value) -> Self {
        *self.replies.get_mut(path).and_then(|reply| reply.pointer_mut(pointer)).unwrap() = value;
        self
    }

    /// The same with this on the screen, which an iRMC shows after so many readings, or never.
    #[must_use]
    pub fn showing(mut self, picture: &[u8], after_readings: Option<u32>) -> Self {
        self.screen = Screen::new(picture, after_readings);
        self
    }

    pub(super) fn answer(&mut self, seen: &Seen) -> Response {
        let path = seen.path.trim_end_matches('/');
        match seen.method.as_str() {
            "GET" => {
                self.screen.is_read(&mut self.replies);
                self.replies.get(path).map_or_else(nothing_here, |reply| json_answer(StatusCode::OK, reply))
            }
            "PATCH" => self.change(path, seen),
            "POST" => self.act(path, &seen.body),
            _ => refusal(StatusCode::METHOD_NOT_ALLOWED, "Base.1.8.OperationNotAllowed", "not here"),
        }
    }

    fn change(&mut self, path: &str, seen: &Seen) -> Response {
        let Some(reply) = self.replies.get_mut(path) else { return nothing_here() };
        let version = seen.headers.get("if-match").map(|version| version.to_str().unwrap());
        if version.is_some_and(|version| reply["@odata.etag"] != version) {
            return refusal(
                StatusCode::PRECONDITION_FAILED,
                "Base.1.8.PreconditionFailed",
                "changed meanwhile",
            );
        }
        if let Some(refusal) = objection(reply, &seen.body) {
            return refusal;
        }
        merge(reply, &seen.body);
        json_answer(StatusCode::OK, &json!({}))
    }

    fn act(&mut self, target: &str, body: &Value) -> Response {
        let Some(action) = self.action(target) else { return nothing_here() };
        for (parameter, value) in body.as_object().into_iter().flatten() {
            if self.allowable(&action, parameter).is_some_and(|allowable| !allowable.contains(value)) {
                return refusal(StatusCode::BAD_REQUEST, "Base.1.8.ActionParameterNotSupported", parameter);
            }
        }
        if let Some(answer) = self.screen.act(&action.name, body) {
            return answer;
        }
        let reply = self.replies.get_mut(&action.owner).unwrap();
        match action.name.rsplit('.').next().unwrap_or_default() {
            "Reset" => reset(reply, body["ResetType"].as_str().unwrap()),
            "InsertMedia" | "InsertVirtualMedia" if reply["Inserted"] == true => {
                return refusal(StatusCode::BAD_REQUEST, "Base.1.8.ResourceInUse", "there is a medium");
            }
            "InsertMedia" | "InsertVirtualMedia" => {
                merge(reply, &json!({"Image": body["Image"], "Inserted": true}));
            }
            "EjectMedia" | "EjectVirtualMedia" => merge(reply, &json!({"Image": null, "Inserted": false})),
            other => panic!("nothing is known of {other}"),
        }
        json_answer(StatusCode::NO_CONTENT, &Value::Null)
    }

    fn action(&self, target: &str) -> Option<Action> {
        self.replies.iter().find_map(|(owner, reply)| {
            let beside = actions(&reply["Actions"]["Oem"]);
            let mut actions = actions(&reply["Actions"]).chain(beside).chain(makers_actions(reply));
            let (name, description) = actions.find(|(_, action)| action["target"] == target)?;
            Some(Action { owner: owner.clone(), name: name.clone(), description: description.clone() })
        })
    }

    /// What a parameter of an action may be: what a reply of its own says counts, where it has one.
    fn allowable(&self, action: &Action, parameter: &str) -> Option<Vec<Value>> {
        let description = &action.description;
        let info = description["@Redfish.ActionInfo"].as_str().and_then(|info| self.replies.get(info));
        let listed = match info {
            Some(info) => {
                let mut parameters = info["Parameters"].as_array()?.iter();
                &parameters.find(|known| known["Name"] == parameter)?["AllowableValues"]
            }
            None => &description[format!("{parameter}{ALLOWABLE}")],
        };
        listed.as_array().cloned()
    }
}

fn nothing_here() -> Response {
    refusal(StatusCode::NOT_FOUND, "Base.1.8.ResourceMissingAtURI", "nothing here")
}

fn actions(actions: &Value) -> impl Iterator<Item = (&String, &Value)> {
    actions.as_object().into_iter().flatten()
}

fn makers_actions(reply: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let makers = reply["Oem"].as_object().into_iter().flat_map(Map::values);
    makers.flat_map(|maker| actions(&maker["Actions"]))
}

/// What there is against a change of a reply.
fn objection(reply: &Value, change: &Value) -> Option<Response> {
    change.as_object().into_iter().flatten().find_map(|(property, value)| {
        let Some(now) = reply.get(property) else {
            return Some(refusal(StatusCode::BAD_REQUEST, "Base.1.8.PropertyUnknown", property));
        };
        let allowable = reply[format!("{property}{ALLOWABLE}")].as_array();
        if allowable.is_some_and(|allowable| !allowable.contains(value)) {
            return Some(refusal(StatusCode::BAD_REQUEST, "Base.1.8.PropertyValueNotInList", property));
        }
        objection(now, value)
    })
}

fn merge(reply: &mut Value, change: &Value) {
    match (reply, change) {
        (Value::Object(reply), Value::Object(change)) => {
            for (property, value) in change {
                merge(reply.entry(property).or_insert(Value::Null), value);
            }
        }
        (reply, change) => *reply = change.clone(),
    }
}

/// A machine does at once what it is told.
fn reset(reply: &mut Value, kind: &str) {
    match kind {
        "On" | "ForceOn" => reply["PowerState"] = json!("On"),
        "ForceOff" | "GracefulShutdown" => reply["PowerState"] = json!("Off"),
        "ForceRestart" | "Nmi" => {}
        other => panic!("nothing is known of {other}"),
    }
}
