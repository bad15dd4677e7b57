//! Tokens, and services that are slow, broken or strange.

use crate::stage::{Stage, neutron, settings};
use crate::stand_in::{Fault, PASSWORD};
use farrier_conductor::interfaces::InterfaceError;
use farrier_drivers::openstack::OpenStackSettings;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_token_is_kept_and_renewed_before_it_expires() {
    for (life, expected) in [(3600, 1), (30, 3)] {
        let stage = Stage::new().await;
        stage.cloud.inner().token_life = life;
        for _ in 0..3 {
            stage.neutron.ports(&[]).await.unwrap();
        }
        assert_eq!(stage.cloud.inner().logins(), expected, "{life}");
    }
}

#[tokio::test]
async fn a_token_that_is_not_known_any_more_is_renewed_once() {
    let stage = Stage::new().await;
    stage.neutron.network("stable").await.unwrap();
    stage.cloud.inner().forget();
    stage.neutron.network("net-1").await.unwrap();
    assert_eq!(stage.cloud.inner().logins(), 2);
    stage.cloud.inner().faults = vec![("GET", Fault::Status(401)), ("GET", Fault::Status(401))];
    let error = stage.neutron.network("net-1").await.unwrap_err().to_string();
    assert!(error.contains("401 Unauthorized: no way with ******"), "{error}");
    assert_eq!(stage.cloud.inner().logins(), 3);
}

#[tokio::test]
async fn credentials_that_are_refused_are_tried_twice_and_never_shown() {
    let stage = Stage::new().await;
    let neutron = neutron(&stage.cloud.url, "straw and mud", settings());
    for _ in 0..2 {
        let error = neutron.network("stable").await.unwrap_err();
        let text = format!("{error} {error:?} {neutron:?}");
        assert!(text.contains("stable-hand") && !text.contains("straw"), "{text}");
    }
    assert_eq!(stage.cloud.inner().logins(), 2);
    assert!(!format!("{:?}", stage.neutron).contains(PASSWORD));
}

#[tokio::test]
async fn c01_credentials_that_keystone_refuses_now_and_then_are_good() {
    const TOKENS: &str = "POST /v3/auth/tokens";
    for (has_worked, refused) in [(true, 1), (true, 2), (false, 1)] {
        let stage = Stage::new().await;
        if has_worked {
            stage.neutron.network("stable").await.unwrap();
        }
        stage.cloud.inner().forget();
        stage.cloud.inner().faults = vec![(TOKENS, Fault::Status(401)); refused];
        stage.neutron.network("stable").await.unwrap();
    }
    // Refused for good, they are left alone for a while, and a token that lasts is used on.
    let stage = Stage::new().await;
    stage.cloud.inner().faults = vec![(TOKENS, Fault::Status(401)); 2];
    for is_asked in [true, false] {
        let error = InterfaceError::from(stage.neutron.network("stable").await.unwrap_err());
        assert_eq!(matches!(error, InterfaceError::Driver(_)), is_asked, "{error:?}");
        assert_eq!(stage.cloud.inner().logins(), 2);
    }
}

#[tokio::test]
async fn c01_what_is_missing_is_missing_twice() {
    let stage = Stage::new().await;
    let port = stage.foreign(json!({"network_id": "net-1"}));
    for method in ["GET", "PUT", "DELETE"] {
        stage.cloud.inner().faults.push((method, Fault::Status(404)));
    }
    assert_eq!(stage.neutron.port(&port).await.unwrap().id, port);
    stage.neutron.update_port(&port, json!({"name": "n"})).await.unwrap();
    stage.neutron.delete_port(&port).await.unwrap();
    assert!(stage.cloud.inner().ports.all.is_empty());
    assert!(stage.neutron.port(&port).await.unwrap_err().is_not_found());
    stage.neutron.delete_port(&port).await.unwrap();
}

#[tokio::test]
async fn a_network_is_known_by_name_or_identity_and_must_be_one() {
    let stage = Stage::new().await;
    assert_eq!(stage.neutron.network("stable").await.unwrap().id, "net-1");
    assert_eq!(stage.neutron.network("net-4").await.unwrap().id, "net-4");
    for (name, expected) in [("twins", "known to Neutron 2 times"), ("desert", "known to Neutron 0 times")] {
        let error = stage.neutron.network(name).await.unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(expected), "{error}");
    }
}

#[tokio::test]
async fn what_passes_is_waited_for_and_whatever_comes_back_is_bounded() {
    let short = OpenStackSettings { request_timeout: Duration::from_millis(300), attempts: 1, ..settings() };
    for (fault, settings, expected) in [
        (Fault::Status(503), settings(), None),
        (Fault::Status(429), settings(), None),
        (Fault::Status(503), short, Some("503 Service Unavailable: no way with ******")),
        (Fault::Hangs, short, Some("not within 0.3 s")),
        (Fault::Endless, short, Some("not within 0.3 s")),
        (Fault::Long, settings(), Some("more than 4194304 bytes")),
        (Fault::Redirects, settings(), Some("307 Temporary Redirect")),
    ] {
        let stage = Stage::new().await;
        let neutron = neutron(&stage.cloud.url, PASSWORD, settings);
        // The token comes first, in a time of its own.
        stage.cloud.inner().faults.push(("GET /v2.0/ports", fault));
        let outcome = neutron.ports(&[]).await.map_err(|error| error.to_string());
        match expected {
            None => assert!(outcome.unwrap().is_empty()),
            Some(expected) => {
                let error = outcome.unwrap_err();
                assert!(error.contains(expected) && error.contains("/v2.0/ports"), "{fault:?}: {error}");
                assert!(!error.contains("gAAAAA") && !error.contains(PASSWORD), "{error}");
            }
        }
    }
}
