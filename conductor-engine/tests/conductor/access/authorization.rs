//! Who may call what operators call.

use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{Stage, fault};
use async_trait::async_trait;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use farrier_access::{Authorization, Denial, Identity, Role};
use farrier_node_api::authorization::authorized;
use farrier_node_api::metrics::metrics_router;
use farrier_node_api::nodes::nodes_router;
use prometheus_client::registry::Registry;
use reqwest::{Method, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Knows everybody by the name of the role.
struct ByRole;

#[async_trait]
impl Authorization for ByRole {
    async fn identify(&self, request: &Parts) -> Result<Identity, Denial> {
        let shown = request.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let role = match shown {
            Some("admin") => Role::Admin,
            Some("reader") => Role::Reader,
            Some("fast") => return Err(Denial::Throttled { retry_after: Duration::from_secs(7) }),
            Some("late") => return Err(Denial::Unavailable { reason: "nobody can be asked".to_owned() }),
            _ => {
                let challenges = ["Basic realm=\"Baremetal API\"", "Bearer"].map(HeaderValue::from_static);
                let reason = "who is it?".to_owned();
                return Err(Denial::Unauthenticated { reason, challenges: challenges.to_vec() });
            }
        };
        Ok(Identity { name: role.to_string(), role })
    }
}

/// A stage, and the URL of a second listener for operators that asks who they are.
async fn guarded() -> (Stage, String) {
    let stage = Stage::new(Script::default()).await;
    let url = listener_that_asks(&stage).await;
    (stage, url)
}

/// The URL of a second listener for the operators of a stage that asks who they are.
pub async fn listener_that_asks(stage: &Stage) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let routers = nodes_router(stage.conductor.clone())
        .merge(metrics_router(stage.conductor.clone(), Registry::default()));
    tokio::spawn(axum::serve(listener, authorized(routers, Arc::new(ByRole))).into_future());
    url
}

#[tokio::test]
async fn readers_look_and_administrators_act() {
    let (stage, url) = guarded().await;
    for (method, path, reader, admin) in [
        (Method::GET, "/v1/nodes", 200, 200),
        (Method::HEAD, "/v1/nodes", 200, 200),
        (Method::GET, "/v1/nodes/n1", 200, 200),
        (Method::GET, "/v1/nowhere", 404, 404),
        (Method::GET, "/farrier/v1/nodes/n1/console", 403, 200),
        (Method::POST, "/farrier/v1/nodes/none/console", 403, 404),
        (Method::PUT, "/farrier/v1/nodes/none/disk/export", 403, 404),
        (Method::DELETE, "/farrier/v1/nodes/none/disk/export", 403, 404),
        (Method::POST, "/v1/nodes", 403, 400),
        (Method::PUT, "/v1/nodes/n1/states/power", 403, 400),
        (Method::PUT, "/v1/nodes/n1/states/provision", 403, 400),
        (Method::PUT, "/v1/nodes/n1/maintenance", 403, 202),
        (Method::DELETE, "/v1/nodes/n1/maintenance", 403, 202),
        (Method::DELETE, "/v1/nodes/none", 403, 404),
    ] {
        for (who, expected) in [("reader", reader), ("admin", admin), ("", 401), ("stranger", 401)] {
            let request = stage.http.request(method.clone(), format!("{url}{path}"));
            let reply = request.header("Authorization", who).send().await.unwrap();
            assert_eq!(reply.status().as_u16(), expected, "{who} {method} {path}");
        }
    }
}

#[tokio::test]
async fn a_denial_has_the_body_of_an_error_and_says_what_could_be_shown() {
    let (stage, url) = guarded().await;
    for (who, path, status, header, text) in [
        ("", "/v1/nodes", StatusCode::UNAUTHORIZED, Some(("www-authenticate", "Bearer")), "who is it?"),
        ("", "/v1/none/of/them", StatusCode::UNAUTHORIZED, None, "who is it?"),
        ("", "//", StatusCode::UNAUTHORIZED, None, "who is it?"),
        ("fast", "/v1/nodes", StatusCode::TOO_MANY_REQUESTS, Some(("retry-after", "7")), "wait 7 s"),
        ("late", "/v1/nodes", StatusCode::SERVICE_UNAVAILABLE, None, "nobody can be asked"),
    ] {
        let request = stage.http.get(format!("{url}{path}")).header("Authorization", who);
        let reply = request.send().await.unwrap();
        assert_eq!(reply.status(), status, "{who} {path}");
        if let Some((name, value)) = header {
            assert!(reply.headers().get_all(name).iter().any(|found| found == value), "{who} {path}");
        }
        for name in ["x-openstack-ironic-api-maximum-version", "x-openstack-request-id"] {
            assert!(reply.headers().contains_key(name), "{who} {path} {name}");
        }
        assert!(fault(reply).await.contains(text), "{who} {path}");
    }
}

#[tokio::test]
async fn everybody_may_ask_for_versions_and_change_nothing_there() {
    let (stage, url) = guarded().await;
    for path in ["/", "/v1", "/v1/"] {
        let reply = stage.http.get(format!("{url}{path}")).send().await.unwrap();
        assert_ne!(reply.status(), StatusCode::UNAUTHORIZED, "{path}");
        let reply = stage.http.post(format!("{url}{path}")).send().await.unwrap();
        assert_eq!(reply.status(), StatusCode::UNAUTHORIZED, "{path}");
    }
}
