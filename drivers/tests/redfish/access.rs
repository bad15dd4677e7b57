//! Who is asked, by whom, and how often.

use crate::stage::{Stage, info, interfaces, node, settings};
use crate::stand_in::{Manner, PASSWORD, StandIn, USER};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use farrier_conductor::agent::UserAgent;
use farrier_conductor::interfaces::PowerInterface;
use farrier_conductor::model::PowerState;
use farrier_drivers::client::rate_limit::RateLimit;
use farrier_drivers::redfish::RedfishSettings;
use serde_json::json;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SESSIONS: &str = "POST /redfish/v1/SessionService/Sessions";

#[tokio::test]
async fn one_session_serves_until_it_is_forgotten_or_ended() {
    let Stage { bmc, node, power, .. } = Stage::new([]).await;
    for _ in 0..5 {
        power.power_state(&node).await.unwrap();
    }
    assert_eq!(bmc.count(SESSIONS), 1);
    bmc.inner().forget_sessions();
    power.power_state(&node).await.unwrap();
    assert_eq!(bmc.count(SESSIONS), 2);
    power.shut_down().await;
    assert_eq!(bmc.inner().open_sessions(), 0);
}

#[tokio::test]
async fn an_expired_session_is_renewed_in_the_middle_of_things() {
    for further in [None, Some(Manner::ExpiredIsForbidden)] {
        let manners = [Some(Manner::ForgetfulSessions), further].into_iter().flatten();
        let Stage { bmc, node, power, .. } = Stage::new(manners).await;
        power.power_on(&node).await.unwrap();
        power.reboot(&node).await.unwrap();
        assert!(bmc.count(SESSIONS) > 2, "{:?}", bmc.asked());
    }
}

#[tokio::test]
async fn a_bmc_without_sessions_gets_the_password_with_each_request() {
    let Stage { bmc, node, power, .. } = Stage::new([Manner::NoSessions]).await;
    power.power_on(&node).await.unwrap();
    assert_eq!(bmc.count(SESSIONS), 1, "it is not asked for one again");
    let mut session = info(&bmc.url);
    session["redfish_auth_type"] = json!("session");
    let error = power.power_state(&crate::stage::node(&session)).await.unwrap_err().to_string();
    assert!(error.contains("set redfish_auth_type to auto, or to basic"), "{error}");
    let mut basic = info(&bmc.url);
    basic["redfish_auth_type"] = json!("basic");
    power.power_state(&crate::stage::node(&basic)).await.unwrap();
    assert_eq!(bmc.count(SESSIONS), 2);
}

#[tokio::test]
async fn a_wrong_password_is_tried_twice_and_a_new_one_at_once() {
    for (auth, manner) in [("auto", None), ("basic", None), ("auto", Some(Manner::NoSessions))] {
        let Stage { bmc, power, .. } = Stage::new(manner).await;
        let mut wrong = info(&bmc.url);
        wrong["redfish_password"] = json!("hay+oats");
        wrong["redfish_auth_type"] = json!(auth);
        let stranger = node(&wrong);
        for _ in 0..10 {
            let error = power.power_state(&stranger).await.unwrap_err().to_string();
            assert!(error.contains("refuses user \"stable-hand\" and the password"), "{error}");
            assert!(!error.contains("hay+oats"), "{error}");
        }
        let asked = bmc.asked();
        let attempts = asked.iter().filter(|asked| !asked.ends_with("/redfish/v1/")).count();
        let without_sessions = 2 * usize::from(manner.is_some());
        assert!(attempts <= 2 + without_sessions, "two attempts lock nobody out: {asked:?}");
        power.power_state(&node(&info(&bmc.url))).await.unwrap();
    }
}

#[tokio::test]
async fn two_conductors_share_a_bmc() {
    let Stage { bmc, node, power, .. } = Stage::new([]).await;
    let (other, _) = interfaces(settings());
    for _ in 0..3 {
        power.power_on(&node).await.unwrap();
        other.power_off(&node).await.unwrap();
    }
    assert_eq!(bmc.inner().open_sessions(), 2);
    power.shut_down().await;
    assert_eq!(other.power_state(&node).await.unwrap(), PowerState::Off);
}

#[tokio::test]
async fn f36_a_bmc_can_tell_conductors_apart() {
    let settings = |name| RedfishSettings { user_agent: UserAgent::new("farrier/1", name), ..settings() };
    let Stage { bmc, node, power, .. } = Stage::with([], settings("left")).await;
    let (other, _) = interfaces(settings("right"));
    power.power_state(&node).await.unwrap();
    other.power_state(&node).await.unwrap();
    let inner = bmc.inner();
    let names: Vec<_> = inner.seen.iter().map(|seen| seen.headers["user-agent"].to_str().unwrap()).collect();
    for name in ["farrier/1 (left)", "farrier/1 (right)"] {
        assert!(names.contains(&name), "{names:?}");
    }
    assert!(names.iter().all(|name| name.starts_with("farrier/1 (")), "{names:?}");
}

#[tokio::test]
async fn one_bmc_has_several_machines_only_by_name() {
    let Stage { bmc, node, power, .. } = Stage::new([Manner::TwoMachines]).await;
    let error = power.power_state(&node).await.unwrap_err().to_string();
    assert!(error.contains("several machines: /redfish/v1/Systems/1, /redfish/v1/Systems/2"), "{error}");
    let mut info = info(&bmc.url);
    info["redfish_system_id"] = json!("/redfish/v1/Systems/1");
    power.power_state(&crate::stage::node(&info)).await.unwrap();
}

#[tokio::test]
async fn nothing_follows_to_another_host_nor_is_read_without_a_bound() {
    for (manner, part) in [
        (Manner::RedirectsAway, "sends GET /redfish/v1/Systems/1 to \"http://127.0.0.2:1/redfish/v1\""),
        (Manner::RedirectsInCircles, "sends GET /redfish/v1/Systems/1 to \"/redfish/v1/Systems/1\""),
        (Manner::Long, "with more than 4194304 bytes"),
        (Manner::CutOff, "does not answer GET /redfish/v1/Systems/1: "),
        (Manner::OutOfService, "503 Service Unavailable"),
    ] {
        let Stage { bmc, node, power, .. } = Stage::new([manner]).await;
        let error = power.power_state(&node).await.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(bmc.asked().len() < 10, "{:?}", bmc.asked());
    }
    let Stage { bmc: _bmc, node, power, .. } = Stage::new([Manner::RedirectsHome]).await;
    assert_eq!(power.power_state(&node).await.unwrap(), PowerState::Off);
}

#[tokio::test]
async fn a_bmc_that_hangs_has_a_deadline() {
    let settings =
        RedfishSettings { request_timeout: Duration::from_secs(1), connection_attempts: 2, ..settings() };
    let Stage { bmc, node, power, .. } = Stage::with([Manner::Hangs], settings).await;
    let error = power.power_state(&node).await.unwrap_err().to_string();
    assert!(error.contains("does not answer GET /redfish/v1/: not within 1 s"), "{error}");
    assert_eq!(bmc.asked().len(), 2);
}

#[tokio::test]
async fn a_bmc_is_asked_within_its_rate_limit_and_once_at_a_time() {
    let interval = Duration::from_millis(40);
    let rate_limit = RateLimit { interval, burst: 2, ..settings().rate_limit };
    let Stage { bmc, node, power, .. } = Stage::with([], RedfishSettings { rate_limit, ..settings() }).await;
    let asking = (0..8).map(|_| power.power_state(&node));
    for answer in futures_util::future::join_all(asking).await {
        answer.unwrap();
    }
    let at: Vec<Instant> = bmc.inner().seen.iter().map(|seen| seen.at).collect();
    let least = interval * u32::try_from(at.len() - 2).unwrap();
    let took = *at.last().unwrap() - at[0];
    // Threads of a busy computer are late, and lateness of the first request is not the rate limit.
    assert!(took + interval >= least, "{} requests in {took:?}", at.len());
}

#[tokio::test]
async fn a_certificate_has_to_be_from_an_authority_that_is_known() {
    let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    rustls::crypto::ring::default_provider().install_default().ok();
    let bmc = StandIn::start_tls(&own.cert.pem(), &own.signing_key.serialize_pem()).await;
    let folder = tempfile::tempdir().unwrap();
    let (its, others) = (folder.path().join("its.pem"), folder.path().join("others.pem"));
    std::fs::write(&its, own.cert.pem()).unwrap();
    let stranger = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(&others, stranger.cert.pem()).unwrap();
    std::fs::write(folder.path().join("none.pem"), "oats").unwrap();
    let (power, _) = interfaces(settings());
    for (verify, expected) in [
        (json!(its), None),
        (json!(folder.path().join("missing.pem")), Some("cannot be used")),
        (json!(folder.path().join("none.pem")), Some("cannot be used")),
        // n03: whether there is a file elsewhere is not told.
        (json!("/etc/passwd"), Some("there is none, or it is not below a folder for them")),
        (json!("/etc/no-such-file"), Some("there is none, or it is not below a folder for them")),
        (json!(others), Some("has a certificate that is not trusted")),
        (json!(null), Some("has a certificate that is not trusted")),
        (json!(false), None),
    ] {
        let mut info = info(&bmc.url);
        info["redfish_verify_ca"] = verify.clone();
        let before = bmc.asked().len();
        match (expected, power.power_state(&node(&info)).await) {
            (None, Ok(state)) => assert_eq!(state, PowerState::Off),
            (Some(part), Err(error)) => {
                assert!(error.to_string().contains(part), "{verify}: {error}");
                assert_eq!(bmc.asked().len(), before, "nothing is sent to a stranger");
            }
            (_, found) => panic!("{verify}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn no_password_is_in_a_request_but_where_it_belongs() {
    let Stage { bmc, node, power, .. } = Stage::new([]).await;
    power.power_on(&node).await.unwrap();
    for seen in &bmc.inner().seen {
        let is_login = seen.path.ends_with("/Sessions");
        let text = format!("{} {:?} {}", seen.path, seen.headers, seen.body);
        assert_eq!(text.contains(PASSWORD), is_login, "{text}");
    }
}

/// A log in memory, with all that anything below has to say too.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn credentials_are_in_no_log() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    let subscriber = subscriber.with_writer(move || writer.clone()).finish();
    // While there is one alone, threads of other tests decide for it whether what they come upon first is logged.
    let _other = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _logged = tracing::subscriber::set_default(subscriber);
    let settings = RedfishSettings { power_wait: Duration::from_millis(200), ..settings() };
    for manner in [None, Some(Manner::NoSessions), Some(Manner::RepeatsPassword), Some(Manner::FailingTasks)]
    {
        let Stage { bmc: _bmc, node, power, .. } = Stage::with(manner, settings.clone()).await;
        power.power_on(&node).await.ok();
        power.shut_down().await;
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.lines().count() > 10, "nothing was logged: {text}");
    let basic = BASE64_STANDARD.encode(format!("{USER}:{PASSWORD}"));
    for secret in [PASSWORD, "token-1", &basic] {
        assert!(!text.contains(secret), "{secret} is in {text}");
    }
}
