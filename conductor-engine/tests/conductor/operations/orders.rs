//! Orders outlive those who gave them, and what is wrong with one node is nothing to the others.

use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{Stage, image, new_node};
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_conductor::{PowerAction, Settings};
use farrier_engine::records::Order;
use farrier_engine::store::{Change, NodeStore, Terms};
use serde_json::json;
use std::time::{Duration, Instant};
use time::OffsetDateTime;

/// Terms of a conductor that is not the stage's.
fn of_another() -> Terms<'static> {
    let now = OffsetDateTime::now_utc();
    Terms { holder: "another", now, expires_at: now + time::Duration::MINUTE }
}

#[tokio::test]
async fn an_undeploy_goes_on_when_its_client_is_gone() {
    let stage = Stage::new(Script::default()).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
    let busy = stage.machine.power_off.lock().await;
    let url = format!("{}/v1/nodes/n1/states/provision", stage.node_api);
    let request = stage.http.put(url).json(&json!({"target": "deleted"})).send();
    // It is answered before anything is done, so that nothing is left for a client to end.
    let reply = tokio::time::timeout(Duration::from_secs(5), request).await.unwrap().unwrap();
    assert_eq!(reply.status(), 202);
    assert_eq!(stage.node().await.provision_state, ProvisionState::Deleting);
    drop((busy, reply));
    stage.wait_for(ProvisionState::Available).await;
}

/// Lesson F38: what takes long meets the limit of a request.
#[tokio::test]
async fn f38_an_order_is_answered_before_it_is_carried_out_and_says_what_it_leads_to() {
    let stage = Stage::new(Script::default()).await;
    stage.conductor.order("n1", Order::power(PowerAction::On)).await.unwrap();
    stage.idle().await;
    let busy = stage.machine.power_off.lock().await;
    stage.conductor.order("n1", Order::power(PowerAction::Off)).await.unwrap();
    let node = stage.node().await;
    assert_eq!(node.target_power_state, Some(PowerState::Off));
    assert_eq!(node.power_state, Some(PowerState::On));
    drop(busy);
    let node = stage.idle().await;
    assert_eq!((node.power_state, node.target_power_state), (Some(PowerState::Off), None));
}

/// Lesson F40: it vanished, and fast track then believed the agent dead.
#[tokio::test]
async fn f40_a_heartbeat_that_meets_a_lease_is_written_down_and_gone_on_with() {
    let soon = |settings: &mut Settings| settings.deploy_callback_timeout = Duration::from_secs(5);
    let stage = Stage::with(Script { silent: true, ..Script::default() }, soon).await;
    stage.deploy().await;
    let uuid = stage.wait_for(ProvisionState::DeployWait).await.uuid;
    let reply = stage.get(&format!("/v1/lookup?node_uuid={uuid}"), "1.62").await;
    let found: serde_json::Value = reply.json().await.unwrap();
    let (lease, _) = stage.store.take(uuid, &of_another()).await.unwrap();
    let heartbeat = json!({
        "callback_url": "https://127.0.0.1:1",
        "agent_token": found["config"]["agent_token"],
        "agent_version": "0.1.0",
    });
    assert_eq!(stage.heartbeat("n1", &heartbeat).await.status(), 202);
    let shown = stage.node().await;
    assert_eq!(shown.driver_internal_info.others["agent_url"], "https://127.0.0.1:1");
    assert_eq!(shown.reservation.as_deref(), Some("another"));
    // Nothing is said a second time: the deployment goes on, and fails because nobody is at that address.
    stage.store.release(&lease).await.unwrap();
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    let error = node.last_error.unwrap();
    assert!(error.contains("https://127.0.0.1:1 cannot be reached"), "{error}");
}

#[tokio::test]
async fn whoever_only_reads_takes_no_lease() {
    let stage = Stage::new(Script::default()).await;
    let uuid = stage.node().await.uuid;
    let before = stage.store.get(uuid).await.unwrap().unwrap().epoch;
    for _ in 0..10 {
        stage.conductor.node("n1").await.unwrap();
    }
    assert_eq!(stage.store.get(uuid).await.unwrap().unwrap().epoch, before);
    // Nor does it wait for one.
    let (_lease, _) = stage.store.take(uuid, &of_another()).await.unwrap();
    let begun = Instant::now();
    stage.conductor.node("n1").await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn e08_a_node_with_an_unknown_driver_waits_and_stops_nobody_elses_deadline() {
    let stage = Stage::with(Script { silent: true, ..Script::default() }, |settings| {
        settings.deploy_callback_timeout = Duration::from_millis(300);
    })
    .await;
    let mut lost = stage.conductor.create_node(new_node("a-first", "52:54:00:00:00:02")).await.unwrap();
    let (lease, record) = stage.store.take(lost.uuid, &of_another()).await.unwrap();
    lost = record.node;
    (lost.driver, lost.provision_state) = ("gone".into(), ProvisionState::DeployWait);
    stage.store.write(&lease, &Change { ends_lease: true, ..Change::of(&lost) }).await.unwrap();
    stage.deploy().await;
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert!(node.last_error.unwrap().contains("no agent called"));
    // It waits for a conductor that has its driver, and says so.
    let node = stage.conductor.node("a-first").await.unwrap();
    assert_eq!((node.provision_state, node.last_error), (ProvisionState::DeployWait, None));
    let explanation = stage.conductor.evidence().explain("a-first").await.unwrap();
    assert!(explanation.waits_for.contains(r#"has hardware type "gone""#), "{explanation:#?}");
}

#[tokio::test]
async fn one_reading_off_fails_no_deployment() {
    let stage = Stage::new(Script { misreads: 1, ..Script::default() }).await;
    stage.deploy().await;
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!(node.last_error, None);
    assert_eq!(stage.machine.script.lock().unwrap().misreads, 0, "nothing was misread");
}

#[tokio::test]
async fn a_clock_that_jumps_ends_no_wait() {
    let silent = Script { silent: true, ..Script::default() };
    let stage = Stage::with(silent, |settings| settings.automated_clean = false).await;
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    for hours in [48, -96] {
        stage.clock.jump(time::Duration::hours(hours));
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(stage.node().await.provision_state, ProvisionState::DeployWait);
    }
    // Orders are still taken.
    stage.conductor.order("n1", Order::Undeploy).await.unwrap();
    stage.wait_for(ProvisionState::Available).await;
}

#[tokio::test]
async fn work_that_panics_ends_its_own_operation_alone() {
    let stage = Stage::new(Script { panics: true, ..Script::default() }).await;
    stage.conductor.order("n1", Order::deploy(image())).await.unwrap();
    let node = stage.wait_for(ProvisionState::DeployFailed).await;
    assert!(node.last_error.unwrap().contains("crashed"));
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
}

/// A client may go away in the middle of the request that takes its order.
#[tokio::test]
async fn an_order_whose_client_goes_away_at_any_moment_is_taken_whole_or_not_at_all() {
    let stage = Stage::new(Script { silent: true, ..Script::default() }).await;
    for polls in 1..400 {
        let mut order = Box::pin(stage.conductor.order("n1", Order::power(PowerAction::On)));
        let mut left = polls;
        let is_answered = std::future::poll_fn(|context| {
            left -= 1;
            match order.as_mut().poll(context) {
                std::task::Poll::Ready(answer) => std::task::Poll::Ready(Some(answer)),
                std::task::Poll::Pending if left == 0 => std::task::Poll::Ready(None),
                std::task::Poll::Pending => std::task::Poll::Pending,
            }
        });
        let answer = is_answered.await;
        drop(order);
        let node = stage.idle().await;
        assert_eq!((node.target_power_state, node.last_error), (None, None), "{polls}");
        if let Some(answer) = answer {
            return answer.unwrap();
        }
    }
    panic!("an order takes too many polls");
}

/// Section 1.6: nodes in maintenance have no deadline. Theirs begins anew when they leave it.
#[tokio::test]
async fn a_node_in_maintenance_pauses_and_is_not_failed() {
    let stage = Stage::with(Script { silent: true, ..Script::default() }, |settings| {
        settings.deploy_callback_timeout = Duration::from_millis(200);
    })
    .await;
    let set = async |maintenance: bool| {
        let uuid = stage.node().await.uuid;
        let (lease, mut record) = stage.store.take(uuid, &of_another()).await.unwrap();
        record.node.maintenance = maintenance;
        let change = Change { ends_lease: true, ..Change::of(&record.node) };
        stage.store.write(&lease, &change).await.unwrap();
    };
    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    set(true).await;
    stage.machine.go_off();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(stage.node().await.provision_state, ProvisionState::DeployWait);
    set(false).await;
    stage.wait_for(ProvisionState::DeployFailed).await;
}

#[tokio::test]
async fn a_clock_that_jumps_has_nothing_done_twice() {
    let lease = Duration::from_millis(400);
    let stage = Stage::with(Script::default(), |settings| settings.lease = lease).await;
    // A worker that is in the middle of something.
    let busy = stage.machine.power_off.lock().await;
    stage.deploy().await;
    for hours in [48, -96] {
        stage.clock.jump(time::Duration::hours(hours));
        tokio::time::sleep(lease * 2).await;
        let node = stage.node().await;
        assert_eq!((node.provision_state, node.reservation.is_some()), (ProvisionState::Deploying, true));
    }
    drop(busy);
    let node = stage.wait_for(ProvisionState::Active).await;
    assert_eq!((node.last_error, stage.machine.power_ons().len()), (None, 2));
}

/// A clock that was ahead when a lease was taken, and whose conductor is no more.
#[tokio::test]
async fn a_lease_from_the_future_ends_when_nobody_renews_it() {
    let lease = Duration::from_millis(200);
    let stage = Stage::with(Script::default(), |settings| settings.lease = lease).await;
    let uuid = stage.node().await.uuid;
    let now = OffsetDateTime::now_utc();
    let in_years = now + time::Duration::weeks(500);
    let terms = Terms { holder: "of the future", now, expires_at: in_years };
    let (taken, _) = stage.store.take(uuid, &terms).await.unwrap();
    // Whoever renews it lives.
    for second in 1..20 {
        stage.store.renew(&taken, in_years + time::Duration::seconds(second)).await.unwrap();
        tokio::time::sleep(lease / 4).await;
    }
    assert_eq!(stage.node().await.reservation.as_deref(), Some("of the future"));
    stage.idle().await;
    assert!(stage.store.renew(&taken, in_years).await.is_err(), "it was overtaken");
    stage.deploy().await;
    stage.wait_for(ProvisionState::Active).await;
}
