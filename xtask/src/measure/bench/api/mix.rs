//! Many clients that ask a mix of requests, as those of a busy site do.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::active;
use super::report::{CONNECTIONS, MIXED, Mixed, PER_SECOND};
use crate::measure::bench::conductors::{Farrier, address, identity};
use farrier_load::{Method, Request, StatusCode, paced};

/// Each kind of request, and how many of a hundred are of it.
const KINDS: &[(&str, u64)] = &[
    ("show a node", 45),
    ("change a node", 30),
    ("find a port by its address", 10),
    ("set the power of a node", 6),
    ("list 100 nodes in a state", 3),
    ("list all nodes with four fields", 5),
    ("list all nodes in detail", 1),
];

/// What steps through all of a hundred, and through all nodes, in no order.
const STRIDE: u64 = 37;

/// Measures each kind while all are asked.
pub(super) fn measure(program: &Path, folder: &Path, duration: Duration) -> Result<Vec<Mixed>> {
    let farrier = Farrier::start(program, folder, active(MIXED))?;
    let figures = paced(farrier.admin_port, CONNECTIONS, PER_SECOND, duration, KINDS.len(), &request)?;
    let mixed = KINDS.iter().zip(figures);
    Ok(mixed
        .map(|((name, percent), figures)| Mixed { name: (*name).to_owned(), percent: *percent, figures })
        .collect())
}

/// The kind of a request by its number, and the request.
fn request(number: u64) -> (usize, Request) {
    let kind = kind(number);
    let node = number.wrapping_mul(STRIDE) / 3 % MIXED;
    let path = format!("/v1/nodes/{}", identity(node));
    let get = |path: String| Request::get(path, StatusCode::OK);
    let send = |method, path, body: serde_json::Value, status| Request {
        method,
        path,
        body: body.to_string(),
        status,
    };
    let request = match kind {
        0 => get(path),
        1 => {
            let change = json!([{"op": "add", "path": "/extra/number", "value": number}]);
            send(Method::PATCH, path, change, StatusCode::OK)
        }
        2 => get(format!("/v1/ports?address={}", address(node))),
        3 => {
            let path = format!("{path}/states/power");
            send(Method::PUT, path, json!({"target": "power on"}), StatusCode::ACCEPTED)
        }
        4 => get("/v1/nodes?provision_state=active&limit=100".to_owned()),
        5 => get("/v1/nodes?fields=uuid,name,provision_state,power_state".to_owned()),
        _ => get("/v1/nodes/detail".to_owned()),
    };
    (kind, request)
}

fn kind(number: u64) -> usize {
    let mut left = number.wrapping_mul(STRIDE) % 100;
    let found = KINDS.iter().position(|(_, percent)| {
        let is_it = left < *percent;
        left = left.saturating_sub(*percent);
        is_it
    });
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_requests_are_the_mix() {
        assert_eq!(KINDS.iter().map(|(_, percent)| percent).sum::<u64>(), 100);
        for (at, (name, percent)) in KINDS.iter().enumerate() {
            assert_eq!((0..100).filter(|number| kind(*number) == at).count() as u64, *percent, "{name}");
        }
    }
}
