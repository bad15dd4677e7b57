//! Conductors that are killed, and clients that go away.

use crate::agent::Script;
use crate::site::{PATIENCE, Site};
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::store::Record;
use farrier_tests::postgres::{Cluster, Pooler};
use std::time::Instant;

/// What a record says when its conductor is killed.
type Moment = (&'static str, fn(&Record) -> bool);

fn is_at(record: &Record, step: &str) -> bool {
    record.node.deploy_step.as_ref().is_some_and(|current| current.step == step)
}

const MOMENTS: &[Moment] = &[
    ("the order is written", |record| record.order.is_some()),
    ("the machine is being started", |record| is_at(record, "deploy")),
    ("the agent is waited for", |record| record.node.provision_state == ProvisionState::DeployWait),
    ("the agent has its token", |record| record.session.agent_secret_token.is_some()),
    ("the agent has called", |record| record.session.agent_url.is_some()),
    ("the image is written", |record| is_at(record, "write_image")),
    ("the boot loader is installed", |record| is_at(record, "prepare_instance_boot")),
    ("the agent goes", |record| is_at(record, "tear_down_agent")),
    ("the instance is started", |record| is_at(record, "boot_instance")),
    ("it is over", |record| record.node.provision_state == ProvisionState::Active),
];

/// How many deployments there may be until the moment of one is not missed: some are over in milliseconds.
const ATTEMPTS: u32 = 10;

/// Kills the conductor of a deployment at a moment, does something, and starts it again. Gives the record as it was
/// then.
async fn killed(script: Script, wanted: fn(&Record) -> bool, meanwhile: fn(&Site)) -> (Site, Record) {
    for _ in 0..ATTEMPTS {
        if let Some(caught) = killed_if_caught(&script, wanted, meanwhile).await {
            return caught;
        }
    }
    panic!("the moment was missed {ATTEMPTS} times");
}

/// As [`killed`], unless the deployment is past its moment before anybody sees it.
async fn killed_if_caught(
    script: &Script,
    wanted: fn(&Record) -> bool,
    meanwhile: fn(&Site),
) -> Option<(Site, Record)> {
    let site = Site::new(script.clone()).await;
    let first = site.conductor("c1", "127.0.0.1:0");
    let address = first.address().to_owned();
    site.enrol(&first);
    let client = site.deploy(&first);
    let seen = site.until(|record| wanted(record) || has_ended(record)).await;
    if !wanted(&seen) {
        return None;
    }
    first.kill();
    let then = site.record().await;
    assert!(has_ended(&then) || !client.ends().0, "its conductor was killed");
    meanwhile(&site);
    let again = site.conductor("c1", &address);
    site.until(|record| record.order.is_none()).await;
    drop(again);
    Some((site, then))
}

/// Whether a deployment is over.
fn has_ended(record: &Record) -> bool {
    [ProvisionState::Active, ProvisionState::DeployFailed].contains(&record.node.provision_state)
}

/// Whether the answer with the token may be lost, which is given once (pitfall 13.4).
fn may_have_lost_its_token(then: &Record) -> bool {
    then.session.agent_secret_token.is_some() && then.session.agent_url.is_none()
}

#[tokio::test(flavor = "multi_thread")]
async fn process_a_deployment_goes_on_whenever_its_conductor_is_killed() {
    for (moment, wanted) in MOMENTS {
        let (site, then) = killed(Script::default(), *wanted, |_| {}).await;
        let node = site.record().await.node;
        if may_have_lost_its_token(&then) && node.provision_state == ProvisionState::DeployFailed {
            assert!(node.last_error.unwrap().contains("no agent called for 20 s"), "{moment}");
            assert_eq!(site.machine.power(), PowerState::Off, "{moment}");
            continue;
        }
        let node = site.ends(ProvisionState::Active).await.node;
        assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)), "{moment}");
        assert_eq!(site.machine.boot().as_deref(), Some(""), "{moment}: it does not run its instance");
        assert_eq!(site.machine.power(), PowerState::On, "{moment}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn process_a_deployment_that_fails_leaves_no_machine_on_whenever_its_conductor_is_killed() {
    let script = Script { write_fails: Some("disk full".into()), ..Script::default() };
    for (moment, wanted) in &MOMENTS[2..6] {
        let (site, then) = killed(script.clone(), *wanted, |_| {}).await;
        let node = site.ends(ProvisionState::DeployFailed).await.node;
        let error = node.last_error.unwrap();
        let has_called = !(may_have_lost_its_token(&then) && error.contains("no agent called for 20 s"));
        assert!(
            !has_called || error == "deploy step write_image failed: disk full [FAR-0411]",
            "{moment}: {error}"
        );
        assert_eq!(site.machine.power(), PowerState::Off, "{moment}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn process_a_machine_that_went_off_while_there_was_no_conductor_fails_its_deployment() {
    let called: fn(&Record) -> bool = |record| is_at(record, "write_image");
    let (site, _) = killed(Script::default(), called, |site| site.machine.go_off()).await;
    let node = site.ends(ProvisionState::DeployFailed).await.node;
    assert!(node.last_error.is_some());
    assert_eq!(site.machine.power(), PowerState::Off);
}

#[tokio::test(flavor = "multi_thread")]
async fn process_a_deployment_over_postgresql_is_taken_over_by_the_conductor_that_is_left() {
    let cluster = Cluster::start().unwrap();
    is_taken_over(&cluster.database().unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn process_a_deployment_over_pgbouncer_is_taken_over_by_the_conductor_that_is_left() {
    let cluster = Cluster::start().unwrap();
    let pooler = Pooler::start(&cluster, "").unwrap();
    is_taken_over(&pooler.database().unwrap()).await;
}

/// The other conductor has another name, and nothing of the first one but the database.
async fn is_taken_over(database: &str) {
    let site = Site::on_postgres(Script::default(), database).await;
    let first = site.conductor("c1", "127.0.0.1:0");
    let address = first.address().to_owned();
    site.enrol(&first);
    let client = site.deploy(&first);
    site.until(|record| record.order.is_some()).await;
    first.kill();
    client.ends();
    let second = site.conductor("c2", &address);
    let node = site.ends(ProvisionState::Active).await.node;
    assert_eq!((node.last_error, node.power_state), (None, Some(PowerState::On)));
    // It tells of both.
    let end = Instant::now() + PATIENCE;
    let words = loop {
        let (code, listed) = second.client(&["conductor", "list"]).prints();
        assert_eq!(code, Some(0), "{listed}");
        let words = |line: &str| line.split_whitespace().take(3).map(str::to_owned).collect::<Vec<_>>();
        let words: Vec<_> = listed.lines().skip(1).map(words).collect();
        if words[0][1] == "False" {
            break words;
        }
        assert!(Instant::now() < end, "waited for a dead conductor in {listed}");
    };
    assert_eq!(words, [["c1", "False", "qemu"], ["c2", "True", "qemu"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn process_a_deployment_does_without_the_client_that_ordered_it() {
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    site.enrol(&conductor);
    let client = site.deploy(&conductor);
    site.until(|record| record.order.is_some()).await;
    client.terminate();
    assert!(!client.ends().0);
    assert_eq!(site.ends(ProvisionState::Active).await.node.last_error, None);
}
