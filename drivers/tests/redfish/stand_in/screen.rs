//! What is on the screen of a machine, and the ways in which makers show it.

use super::{json_answer, refusal};
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The end of the name of an iRMC's list of what it may be told.
const STATES: &str = "ScreenshotType@Redfish.AllowableValues";

/// What is on the screen.
#[derive(Debug)]
pub(super) struct Screen {
    picture: Vec<u8>,
    /// After how many readings an iRMC has made a picture.
    after_readings: Option<u32>,
    /// How many readings that takes still, once it makes one.
    left: Option<u32>,
    is_made: bool,
}

impl Default for Screen {
    fn default() -> Self {
        Self::new(b"\x89PNG\r\n\x1a\n", Some(1))
    }
}

impl Screen {
    pub(super) fn new(picture: &[u8], after_readings: Option<u32>) -> Self {
        Self { picture: picture.to_vec(), after_readings, left: None, is_made: false }
    }

    /// Somebody reads something. An iRMC that has made a picture allows to fetch it.
    pub(super) fn is_read(&mut self, replies: &mut BTreeMap<String, Value>) {
        match self.left {
            None => {}
            Some(0) => {
                self.is_made = true;
                self.left = None;
                replies.values_mut().for_each(allow);
            }
            Some(left) => self.left = Some(left - 1),
        }
    }

    /// The answer to an action that is about the screen.
    pub(super) fn act(&mut self, action: &str, body: &Value) -> Option<Response> {
        match action.rsplit(['.', '#']).next().unwrap_or_default() {
            "ExportServerScreenShot" => {
                let text = STANDARD.encode(&self.picture);
                let (first, rest) = text.split_at(text.len() / 2);
                let in_lines = format!("{first}\n{rest}\n");
                Some(json_answer(StatusCode::OK, &json!({"ServerScreenShotFile": in_lines})))
            }
            "Screenshot" => Some(self.screenshot(body)),
            "Collect" => Some(self.collect(body)),
            _ => None,
        }
    }

    fn screenshot(&mut self, body: &Value) -> Response {
        let mut parameter = body.as_object().into_iter().flatten();
        let (_, parameter) = parameter.find(|(name, _)| name.ends_with("ScreenshotType")).unwrap();
        match parameter.as_str().unwrap() {
            "Make" => {
                (self.left, self.is_made) = (self.after_readings, false);
                StatusCode::NO_CONTENT.into_response()
            }
            _ if self.is_made => self.file(),
            other => not_now(other),
        }
    }

    fn collect(&mut self, body: &Value) -> Response {
        assert_eq!(body["DumpType"], "ScreenCapture");
        match body["ActionType"].as_str().unwrap() {
            "Create" => {
                self.is_made = true;
                json_answer(StatusCode::OK, &json!({"Success": {"MessageId": "Base.1.4.Success"}}))
            }
            "Download" if self.is_made => self.file(),
            other => not_now(other),
        }
    }

    fn file(&self) -> Response {
        let headers = [("content-type", "application/octet-stream")];
        (StatusCode::OK, headers, Body::from(self.picture.clone())).into_response()
    }
}

/// Adds to the lists of an iRMC, wherever they are.
fn allow(reply: &mut Value) {
    let ready = [json!("Preview"), json!("Save")];
    let actions = reply.pointer_mut("/Actions/Oem").and_then(Value::as_object_mut);
    for action in actions.into_iter().flat_map(|actions| actions.values_mut()) {
        let lists = action.as_object_mut().into_iter().flatten().filter(|(name, _)| name.ends_with(STATES));
        lists.for_each(|(_, list)| list.as_array_mut().unwrap().extend(ready.clone()));
    }
    for parameter in reply["Parameters"].as_array_mut().into_iter().flatten() {
        if parameter["Name"].as_str().is_some_and(|name| name.ends_with("ScreenshotType")) {
            parameter["AllowableValues"].as_array_mut().unwrap().extend(ready.clone());
        }
    }
}

fn not_now(parameter: &str) -> Response {
    refusal(StatusCode::BAD_REQUEST, "Base.1.8.ActionParameterNotSupported", parameter)
}
