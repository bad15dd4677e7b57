//! What a monitoring system reads.

use crate::interfaces::IpxeScript;
use crate::stand_ins::agent::Script;
use crate::stand_ins::stage::{PATIENCE, Stage};
use farrier_conductor::HardwareType;
use farrier_conductor::model::ProvisionState;
use farrier_engine::evidence::boot_trace::{BootPeer, BootStage, Reached};
use farrier_node_api::metrics::metrics_router;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

#[tokio::test]
async fn l06_figures_tell_states_where_machines_are_that_boot_and_what_the_engine_does() {
    let script = HardwareType::new("script").power(["fake"]).boot(["script"]).deploy(["direct"]);
    let silent = Script { silent: true, ..Script::default() };
    let stage =
        Stage::composed(silent, "script", |drivers| drivers.boot("script", IpxeScript).hardware_type(script))
            .await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/metrics", listener.local_addr().unwrap());
    let mut own = Registry::default();
    own.register("served", "What was served", Counter::<u64>::default());
    tokio::spawn(axum::serve(listener, metrics_router(stage.conductor.clone(), own)).into_future());
    let read = async || {
        let reply = stage.http.get(&url).send().await.unwrap();
        let format = reply.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(format.starts_with("application/openmetrics-text; version=1.0.0"), "{format}");
        reply.text().await.unwrap()
    };
    let told = async |lines: &[&str]| {
        let end = Instant::now() + PATIENCE;
        loop {
            let text = read().await;
            if lines.iter().all(|line| text.lines().any(|told| told == *line)) {
                return text;
            }
            assert!(Instant::now() < end, "not all of {lines:?} in {text}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let state = stage.node().await.provision_state;
    let text = told(&[
        &format!("farrier_nodes{{provision_state=\"{state}\"}} 1"),
        "farrier_nodes{provision_state=\"wait call-back\"} 0",
        "farrier_booting_machines{reached=\"nothing\",silent=\"true\"} 0",
        "served_total 0",
    ])
    .await;
    assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
    let node = stage.node().await;
    assert!(!text.contains(&node.label()) && !text.contains(&node.uuid.to_string()), "{text}");

    stage.deploy().await;
    stage.wait_for(ProvisionState::DeployWait).await;
    told(&[
        "farrier_nodes{provision_state=\"wait call-back\"} 1",
        "farrier_booting_machines{reached=\"nothing\",silent=\"true\"} 1",
    ])
    .await;
    let peer = BootPeer { address: "192.0.2.101".parse().unwrap(), node: Some(node.uuid) };
    let reached = Reached { stage: BootStage::Kernel, what: "vmlinuz", bytes: 7, total: 9 };
    stage.conductor.ramdisks().boot_reached(peer, reached);
    told(&[
        "farrier_booting_machines{reached=\"nothing\",silent=\"true\"} 0",
        "farrier_booting_machines{reached=\"kernel\",silent=\"false\"} 1",
        "farrier_booting_machines{reached=\"ramdisk\",silent=\"false\"} 0",
    ])
    .await;
    // L6: what the engine does is seen too.
    let text = told(&[
        "farrier_workers 1",
        "farrier_operations{kind=\"deploy\",place=\"under way\"} 1",
        "farrier_operations{kind=\"clean\",place=\"queued\"} 0",
        "farrier_leases 0",
        "farrier_leases_lost_total 0",
    ])
    .await;
    for figure in [
        "farrier_worker_passes_total ",
        "farrier_worker_pass_seconds_total ",
        "farrier_store_writes_total{kind=\"record\"} ",
        "farrier_store_writes_total{kind=\"mailbox\"} ",
        "farrier_store_wait_seconds_total{kind=\"record\"} ",
    ] {
        let value = text.lines().find_map(|line| line.strip_prefix(figure)?.parse::<f64>().ok());
        assert!(value.is_some_and(|value| value > 0.0), "{figure} {text}");
    }
    assert!(text.contains("farrier_worker_longest_wait_seconds "), "{text}");
    stage.clock.jump(time::Duration::seconds(61));
    told(&[
        "farrier_booting_machines{reached=\"kernel\",silent=\"true\"} 1",
        "farrier_booting_machines{reached=\"kernel\",silent=\"false\"} 0",
    ])
    .await;
}
