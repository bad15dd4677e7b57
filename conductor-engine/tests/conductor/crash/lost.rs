//! A database that is away at one statement of an operation: no operation is lost, and the conductor goes on.

use super::site::{Life, Site, activate, for_each, manage, two_steps};
use crate::stand_ins::agent::Script;
use crate::stand_ins::gate::Gate;
use crate::stand_ins::stage::{PATIENCE, image};
use farrier_conductor::PowerAction;
use farrier_conductor::model::{PowerState, ProvisionState};
use farrier_engine::Error;
use farrier_engine::records::Order;
use farrier_engine::store::StoreError;
use serde_json::json;
use std::time::Instant;

/// An operation, and where it ends unless it is refused.
struct Operation {
    name: &'static str,
    script: fn() -> Script,
    prepare: fn(&Site, &Life),
    order: fn() -> Order,
    end: ProvisionState,
}

fn steps() -> [serde_json::Value; 2] {
    ["first", "second"].map(|step| json!({"interface": "deploy", "step": step}))
}

fn rescued(site: &Site, life: &Life) {
    activate(site, life);
    life.runtime.block_on(life.conductor.order("n1", Order::rescue("oats and barley"))).unwrap();
    site.until(|record| {
        record.node.provision_state == ProvisionState::Rescue && record.node.reservation.is_none()
    });
}

const OPERATIONS: &[Operation] = &[
    Operation {
        name: "manage",
        script: Script::default,
        prepare: |_, _| {},
        order: || Order::Manage,
        end: ProvisionState::Manageable,
    },
    Operation {
        name: "power",
        script: Script::default,
        prepare: |_, _| {},
        order: || Order::power(PowerAction::On),
        end: ProvisionState::Available,
    },
    Operation {
        name: "deploy",
        script: Script::default,
        prepare: |_, _| {},
        order: || Order::deploy(image()),
        end: ProvisionState::Active,
    },
    Operation {
        name: "undeploy",
        script: Script::default,
        prepare: activate,
        order: || Order::Undeploy,
        end: ProvisionState::Available,
    },
    Operation {
        name: "provide",
        script: two_steps,
        prepare: manage,
        order: || Order::Provide,
        end: ProvisionState::Available,
    },
    Operation {
        name: "clean",
        script: two_steps,
        prepare: manage,
        order: || Order::clean(&steps()),
        end: ProvisionState::Manageable,
    },
    Operation {
        name: "service",
        script: two_steps,
        prepare: activate,
        order: || Order::service(&steps()),
        end: ProvisionState::Active,
    },
    Operation {
        name: "inspect",
        script: Script::default,
        prepare: manage,
        order: || Order::Inspect,
        end: ProvisionState::Manageable,
    },
    Operation {
        name: "rescue",
        script: Script::default,
        prepare: activate,
        order: || Order::rescue("oats and barley"),
        end: ProvisionState::Rescue,
    },
    Operation {
        name: "unrescue",
        script: Script::default,
        prepare: rescued,
        order: || Order::Unrescue,
        end: ProvisionState::Active,
    },
    Operation {
        name: "adopt",
        script: Script::default,
        prepare: manage,
        order: || Order::Adopt,
        end: ProvisionState::Active,
    },
];

/// Of so many statements of an operation one is lost, or all of them take minutes of a processor.
const EACH: usize = 8;

/// With this variable each statement is lost, one after the other.
const EVERY: &str = "FARRIER_EVERY_STATEMENT";

/// Calls of the store that an operation makes, and its writes.
struct Counted {
    calls: usize,
    writes: usize,
}

/// Carries out an operation, whose gate comes down so many calls or writes after its order.
fn carried_out(operation: &Operation, gate: Gate) -> Counted {
    let Operation { name, script, prepare, order, end } = operation;
    let site = Site::new(script());
    let life = Life::begin(&site, "c1", None, Gate::Open);
    life.enrol();
    prepare(&site, &life);
    let before = (site.at_rest().node.provision_state, site.power());
    let (calls, writes) = (life.store.calls(), life.store.writes());
    life.store.set(match gate {
        Gate::LosesCall(number) => Gate::LosesCall(calls + number),
        Gate::LosesAnswer(number) => Gate::LosesAnswer(writes + number),
        gate => gate,
    });
    let ordered = life.runtime.block_on(life.conductor.order("n1", order()));
    let node = site.at_rest().node;
    let counted = Counted { calls: life.store.calls() - calls, writes: life.store.writes() - writes };
    let what = format!("{name} {gate:?}: {ordered:?} {} {:?}", node.provision_state, node.last_error);
    match &ordered {
        Ok(()) => {
            // An agent whose token got lost on its way has none (section 8.4).
            let has_lost_its_token = matches!(gate, Gate::LosesAnswer(_))
                && node.last_error.as_ref().is_some_and(|error| error.contains("no agent called"));
            assert!(node.provision_state == *end || has_lost_its_token, "{what}");
            assert!(node.last_error.is_none() || has_lost_its_token, "{what}");
        }
        // Who got no answer may find the operation carried out.
        Err(Error::Store(StoreError::Unreachable { .. })) => {
            assert!([before.0, *end].contains(&node.provision_state) && node.last_error.is_none(), "{what}");
        }
        Err(error) => panic!("{what}: {error}"),
    }
    assert_eq!(node.power_state.unwrap_or(PowerState::Off), site.power(), "{what}");
    // The conductor goes on: the next order is taken and carried out, once the lease ends that could not be given back.
    life.store.set(Gate::Open);
    let end = Instant::now() + PATIENCE;
    loop {
        match life.runtime.block_on(life.conductor.order("n1", Order::power(PowerAction::Off))) {
            Err(Error::Store(StoreError::Held { .. })) if Instant::now() < end => {}
            ordered => break ordered.expect(&what),
        }
    }
    let off = site.until(|record| record.order.is_none() && record.node.power_state == Some(PowerState::Off));
    assert_eq!(off.node.provision_state, node.provision_state, "{what}");
    life.kill();
    counted
}

#[test]
fn fault_a_database_that_is_away_at_any_statement_of_an_operation_loses_none() {
    let each = if std::env::var_os(EVERY).is_some() { 1 } else { EACH };
    for (at, operation) in OPERATIONS.iter().enumerate() {
        let Counted { calls, writes } = carried_out(operation, Gate::Open);
        assert!(writes > 1 && calls > writes, "{} {calls} {writes}", operation.name);
        let lost = (1..=calls).map(Gate::LosesCall).chain((1..=writes).map(Gate::LosesAnswer));
        // Operations have most of their statements in common: each of them tries others.
        for_each(lost.skip(at % each).step_by(each), |gate| carried_out(operation, gate));
    }
}
