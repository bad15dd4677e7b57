//! What goes wrong before anything is looked at.

use super::{Inner, Manner, SYSTEM, Seen, json_answer, refusal};
use axum::body::Body;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use farrier_drivers::redfish::quirks::Quirk;
use futures_util::stream;
use serde_json::json;
use std::io;

/// What has gone wrong already.
#[derive(Debug, Default)]
pub(super) struct Faults {
    refused_orders: u32,
    out_of_service: u32,
    lost_resets: u32,
    lost_insertions: u32,
    lost_ejections: u32,
    lost_connections: u32,
}

impl Inner {
    pub(super) fn fault(&mut self, seen: &Seen) -> Option<Response> {
        let is_order = seen.method == Method::PATCH || seen.path.contains("/Actions/");
        let is_read = seen.method == Method::GET && seen.path == SYSTEM;
        let is_reset = seen.path.ends_with("ComputerSystem.Reset");
        if self.has(Manner::OutOfService)
            || self.has(Manner::OutOfServiceAtFirst) && self.faults.out_of_service < 3
        {
            self.faults.out_of_service += 1;
            return Some(refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "Base.1.0.ServiceTemporarilyUnavailable",
                "",
            ));
        }
        let takes = seen.headers.get("accept-encoding").and_then(|takes| takes.to_str().ok());
        if self.has(Manner::WantsPacking) && !takes.is_some_and(|takes| takes.contains("gzip")) {
            return Some(refusal(StatusCode::NOT_ACCEPTABLE, "Base.1.0.GeneralError", "packed alone"));
        }
        if self.is_odd(Quirk::Busy) && is_order && self.faults.refused_orders < 2 {
            self.faults.refused_orders += 1;
            let identifier = "ExtendedError.1.0.UnableToModifyDuringSystemPOST";
            return Some(refusal(StatusCode::BAD_REQUEST, identifier, "the machine tests itself"));
        }
        if self.has(Manner::RestartsAtReset) && self.restarts(is_reset) {
            return Some(cut_off());
        }
        if self.has(Manner::ForgetsFirstReset) && is_reset && self.faults.lost_resets == 0 {
            self.faults.lost_resets = 1;
            return Some(json_answer(StatusCode::OK, &json!({})));
        }
        if self.has(Manner::ForgetsFirstChangeOfMedia) {
            let lost = [
                ("VirtualMedia.InsertMedia", &mut self.faults.lost_insertions),
                ("VirtualMedia.EjectMedia", &mut self.faults.lost_ejections),
            ];
            for (action, lost) in lost {
                if seen.path.ends_with(action) && *lost == 0 {
                    *lost = 1;
                    return Some(json_answer(StatusCode::OK, &json!({})));
                }
            }
        }
        match () {
            () if is_read && self.has(Manner::RedirectsAway) => {
                Some(redirect("http://127.0.0.2:1/redfish/v1"))
            }
            () if is_read && self.has(Manner::RedirectsInCircles) => Some(redirect(SYSTEM)),
            () if is_read && self.has(Manner::RedirectsHome) => Some(redirect("/redfish/v1/Systems/1/")),
            () if is_read && self.has(Manner::Long) => {
                let body = json!({"PowerState": "On", "Name": "x".repeat(10 << 20)});
                Some(json_answer(StatusCode::OK, &body))
            }
            () if is_read && self.has(Manner::CutOff) => Some(cut_off()),
            () => None,
        }
    }

    /// Whether it restarts: a reset is lost, and three connections after it.
    fn restarts(&mut self, is_reset: bool) -> bool {
        let Faults { lost_resets, lost_connections, .. } = &mut self.faults;
        if is_reset && *lost_resets == 0 {
            *lost_resets = 1;
            return true;
        }
        let is_lost = *lost_resets == 1 && *lost_connections < 3;
        *lost_connections += u32::from(is_lost);
        is_lost
    }
}

/// An answer that ends before its end.
fn cut_off() -> Response {
    let chunks = [Ok("{\"PowerState\": "), Err(io::Error::other("cut off"))];
    (StatusCode::OK, [("content-type", "application/json")], Body::from_stream(stream::iter(chunks)))
        .into_response()
}

fn redirect(target: &'static str) -> Response {
    (StatusCode::PERMANENT_REDIRECT, [("location", target)]).into_response()
}
