//! What a monitoring system reads, in the text format of OpenMetrics, which Prometheus reads too.
//!
//! Figures of the nodes are those of the store, so every conductor over it tells the same; what whoever runs this
//! conductor counts by itself comes in a registry of its own. No label has a value for each node: which nodes they are,
//! lists and explanations tell.

use crate::wire::reply::Refusal;
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use farrier_conductor::model::ProvisionState;
use farrier_engine::Conductor;
use farrier_engine::Error;
use farrier_engine::Figures;
use farrier_engine::evidence::boot_trace::{BootStage, BootTrace};
use farrier_engine::store::WriteKind;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use time::{Duration, OffsetDateTime};

/// The format, by the name that Prometheus knows.
const FORMAT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// For how long a machine that boots may be silent. Firmware and loaders ask again sooner.
const SILENT: Duration = Duration::seconds(60);
/// What a machine has reached that has asked for nothing.
const NOTHING: &str = "nothing";

/// Counters by the value of a label.
type Counters<N, A> = Family<[(&'static str, &'static str); 1], Counter<N, A>>;

/// Gauges by the values of so many labels.
type Gauges<const LABELS: usize> = Family<[(&'static str, &'static str); LABELS], Gauge>;

/// The route `/metrics`, ready to be merged with those of operators before an
/// [authorization](crate::authorization::authorized): readers may look. `own` has the figures of the program that
/// runs the conductor.
pub fn metrics_router(conductor: Conductor, own: Registry) -> Router {
    Router::new().route("/metrics", get(metrics)).with_state((conductor, Arc::new(own)))
}

async fn metrics(
    State((conductor, own)): State<(Conductor, Arc<Registry>)>,
) -> Result<impl IntoResponse, Refusal> {
    let nodes = of_nodes(&conductor).await?;
    let mut text = String::new();
    // A text can always be written to.
    for registry in [&nodes, &*own] {
        encode_registry(&mut text, registry).unwrap_or_default();
    }
    encode_eof(&mut text).unwrap_or_default();
    Ok(([(CONTENT_TYPE, FORMAT)], text))
}

/// Figures of the nodes, as they are now.
async fn of_nodes(conductor: &Conductor) -> Result<Registry, Error> {
    let boots = conductor.ramdisks().awaited_boots().await?;
    let mut registry = Registry::with_prefix("farrier");
    let states = by_state(&conductor.store().provision_states().await?);
    registry.register("nodes", "Nodes in a provision state", states);
    let boots = by_stage(&boots, conductor.now());
    let help = "Machines that boot from the network or a virtual medium and whose agent has not called, by the last \
                that they reached, and whether they have asked for nothing within the last minute";
    registry.register("booting_machines", help, boots);
    of_engine(conductor, &mut registry);
    Ok(registry)
}

/// What the engine of this conductor does.
fn of_engine(conductor: &Conductor, registry: &mut Registry) {
    let Figures { workers, operations, leases, renewed_leases, lost_leases, state_times } =
        conductor.figures();
    let gauge = |value: usize| ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    let seconds = |time: std::time::Duration| ConstGauge::new(time.as_secs_f64());
    registry.register("workers", "Workers: one for each node that is not at rest", gauge(workers.workers));
    let help = "Passes of workers over their nodes";
    registry.register("worker_passes", help, ConstCounter::new(workers.passes));
    let help = "Time of these passes";
    registry.register("worker_pass_seconds", help, ConstCounter::new(workers.pass_time.as_secs_f64()));
    let help = "Age of the oldest heartbeat or order that no worker has served";
    registry.register("worker_longest_wait_seconds", help, seconds(workers.longest_wait));
    let by_kind = Gauges::<2>::default();
    for operation in operations {
        for (place, count) in [("under way", operation.under_way), ("queued", operation.queued)] {
            let gauge = by_kind.get_or_create_owned(&[("kind", operation.kind), ("place", place)]);
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
    let help = "Operations that this conductor limits, under way or queued until another one ends";
    registry.register("operations", help, by_kind);
    registry.register("leases", "Leases of nodes that this conductor has", gauge(leases));
    registry.register("lease_renewals", "Renewals of leases", ConstCounter::new(renewed_leases));
    let help = "Leases that this conductor lost to another conductor";
    registry.register("leases_lost", help, ConstCounter::new(lost_leases));
    let (turns, waits) = (Counters::<u64, AtomicU64>::default(), Counters::<f64, AtomicU64>::default());
    for kind in WriteKind::ALL {
        let waited = conductor.store().waited(*kind);
        turns.get_or_create(&[("kind", kind.as_str())]).inc_by(waited.turns);
        waits.get_or_create(&[("kind", kind.as_str())]).inc_by(waited.total.as_secs_f64());
    }
    registry.register("store_writes", "Writes of this conductor to its store", turns);
    registry.register("store_wait_seconds", "Time that these writes waited for their turn", waits);
    let (ends, times) = (Counters::<u64, AtomicU64>::default(), Counters::<f64, AtomicU64>::default());
    for (state, time) in state_times {
        ends.get_or_create(&[("provision_state", state.as_str())]).inc_by(time.ended);
        times.get_or_create(&[("provision_state", state.as_str())]).inc_by(time.total.as_secs_f64());
    }
    let help = "How often a node left a provision state by a write of this conductor";
    registry.register("node_state_ends", help, ends);
    let help = "Time in their provision states of the nodes that left them";
    registry.register("node_time_in_state_seconds", help, times);
}

/// Every state, so that a figure does not vanish when it is 0.
fn by_state(counts: &[(ProvisionState, u64)]) -> Gauges<1> {
    let gauges = Gauges::default();
    for state in ProvisionState::ALL {
        let count = counts.iter().find(|(counted, _)| counted == state).map_or(0, |(_, count)| *count);
        gauges.get_or_create(&[("provision_state", state.as_str())]).set(count.cast_signed());
    }
    gauges
}

/// Every stage.
fn by_stage(traces: &[BootTrace], now: OffsetDateTime) -> Gauges<2> {
    let gauges = Gauges::default();
    let gauge = |stage: Option<BootStage>, is_silent: bool| {
        let silent = if is_silent { "true" } else { "false" };
        gauges
            .get_or_create_owned(&[("reached", stage.map_or(NOTHING, BootStage::as_str)), ("silent", silent)])
    };
    for stage in BootStage::ALL {
        for is_silent in [true, false] {
            gauge(Some(stage), is_silent).set(0);
        }
    }
    gauge(None, true).set(0);
    for trace in traces {
        let is_silent = trace.heard().is_none_or(|heard| now - heard > SILENT);
        gauge(trace.marks().last().map(|mark| mark.stage), is_silent).inc();
    }
    gauges
}
