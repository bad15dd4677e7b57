use crate::explain::*;
use crate::records::{Forbidden, PendingOrder, Verb};
use farrier_conductor::model::{AgentSession, Event, Fault, NewNode, Node};
use time::Duration;

const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::days(1));

/// What is wrong with a node.
const MAINTENANCE: [(bool, Option<Fault>); 6] = [
    (false, None),
    (true, None),
    (true, Some(Fault::Power)),
    (true, Some(Fault::Clean)),
    (true, Some(Fault::RescueAbort)),
    (true, Some(Fault::Service)),
];

fn record(state: ProvisionState) -> Record {
    let new = NewNode { name: Some("horse".into()), ..NewNode::default() };
    let mut node = Node::enrol(new, NOW - Duration::minutes(10));
    node.provision_state = state;
    Record { node, session: AgentSession::default(), order: None, epoch: 0, lease_expires_at: None }
}

fn told(record: &Record) -> Explanation {
    explain(record, &Settings::new("http://c"), NOW)
}

/// Every state, whatever is wrong with its node, with and without a lease, and whether its deadline has passed.
fn all() -> Vec<Record> {
    let mut all = Vec::new();
    for state in ProvisionState::ALL {
        for (maintenance, fault) in MAINTENANCE {
            for lease in [None, Some(Duration::SECOND), Some(-Duration::SECOND)] {
                for moved in [Duration::minutes(10), Duration::hours(10)] {
                    let mut record = record(*state);
                    (record.node.maintenance, record.node.fault) = (maintenance, fault);
                    record.node.provision_updated_at = NOW - moved;
                    record.node.reservation = lease.map(|_| "c1".into());
                    record.lease_expires_at = lease.map(|lease| NOW + lease);
                    all.push(record);
                }
            }
        }
    }
    all
}

#[test]
fn every_node_is_explained_in_whatever_state() {
    for record in all() {
        let told = told(&record);
        let context = format!("{record:?}\n{told:?}");
        assert!(told.waits_for.starts_with("It waits for ") && told.waits_for.ends_with('.'), "{context}");
        assert!(told.next_action.ends_with('.'), "{context}");
        let state = record.node.provision_state;
        let has_lease = record.lease_expires_at.is_some_and(|until| until > NOW);
        if has_lease && state.is_worked_on() {
            assert!(told.waits_for.contains("conductor c1"), "{context}");
            assert_eq!((told.until, told.is_overdue), (record.lease_expires_at, false), "{context}");
            assert!(told.commands.is_empty(), "{context}");
        } else if state.is_worked_on() {
            assert!(told.waits_for.contains("any conductor"), "{context}");
        } else if state.activity() == Activity::Wait && !record.node.maintenance {
            let deadline =
                record.node.provision_updated_at + Settings::new("http://c").deploy_callback_timeout;
            assert_eq!((told.until, told.is_overdue), (Some(deadline), deadline <= NOW), "{context}");
        } else {
            assert_eq!((told.until, told.is_overdue), (None, false), "{context}");
        }
        assert_eq!(
            told.evidence.iter().any(|one| one.what == "maintenance"),
            record.node.maintenance,
            "{context}"
        );
        assert_eq!(
            told.evidence.iter().any(|one| one.what == "lease"),
            record.node.reservation.is_some(),
            "{context}"
        );
    }
}

/// The first command must not be refused for the state that the node is in, or for its maintenance.
#[test]
fn what_is_advised_is_what_the_node_takes() {
    for record in all() {
        let told = told(&record);
        let Some(first) = told.commands.first() else { continue };
        let mut words = first.split(' ').skip(1);
        let verb = words.find(|word| *word != "node").unwrap();
        assert!(first.contains("horse"), "{first}");
        let event = match verb {
            "maintenance" | "validate" => continue,
            "undeploy" => Event::Delete,
            verb => Event::named(verb).unwrap(),
        };
        let node = &record.node;
        assert!(node.provision_state.takes_verb(event), "{} {first}", node.provision_state);
        assert_eq!(Forbidden::check(node, event), Ok(()), "{} {first}", node.provision_state);
    }
}

#[test]
fn each_state_has_its_sentence() {
    use ProvisionState as S;
    let works = "It waits for any conductor to resume it: the one that stopped works on ";
    let calls = "It waits for its agent to call for the first time: the ramdisk boots.";
    for (state, expected, commands) in [
        (S::Enroll, "It waits for nothing: its BMC is not verified yet.", "manage"),
        (S::Verifying, works, ""),
        (S::Manageable, "It waits for nothing: its BMC works, and users cannot deploy it.", "provide"),
        (S::Available, "It waits for nothing: it is ready for an instance.", "deploy"),
        (S::Deploying, works, ""),
        (S::DeployWait, calls, "abort"),
        (S::DeployHold, "It waits for an operator: its deployment is held.", "unhold"),
        (S::DeployFailed, "It waits for an operator: its deployment failed.", "retry"),
        (S::Active, "It waits for nothing: its instance runs.", ""),
        (S::Deleting, works, ""),
        (S::Error, "It waits for an operator: its instance could not be removed.", "undeploy"),
        (S::Cleaning, works, ""),
        (S::CleanWait, calls, "abort"),
        (S::CleanHold, "It waits for an operator: its cleaning is held.", "unhold"),
        (
            S::CleanFailed,
            "It waits for an operator: its cleaning failed, and the content of its disks is \
            unknown",
            "retry",
        ),
        (S::Inspecting, works, ""),
        (S::InspectWait, "It waits for its ramdisk to post what the machine is made of.", "abort"),
        (S::InspectFailed, "It waits for an operator: its inspection failed.", "inspect"),
        (S::Adopting, works, ""),
        (S::AdoptFailed, "It waits for an operator: it could not be taken over.", "adopt"),
        (S::Rescuing, works, ""),
        (S::RescueWait, calls, "abort"),
        (S::Rescue, "It waits for nothing: its rescue system runs.", "unrescue"),
        (S::RescueFailed, "It waits for an operator: its rescue failed.", "rescue"),
        (S::Unrescuing, works, ""),
        (S::UnrescueFailed, "It waits for an operator: its instance could not be started", "unrescue"),
        (S::Servicing, works, ""),
        (S::ServiceWait, calls, "abort"),
        (S::ServiceHold, "It waits for an operator: its service is held.", "unhold"),
        (S::ServiceFailed, "It waits for an operator: its service failed, and its instance", "retry"),
    ] {
        let told = told(&record(state));
        assert!(told.waits_for.starts_with(expected), "{state}: {}", told.waits_for);
        let command = told.commands.first().map(String::as_str).unwrap_or_default();
        assert!(command.contains(commands), "{state}: {command}");
        assert_eq!(command.is_empty(), commands.is_empty(), "{state}: {command}");
    }
}

#[test]
fn a_step_an_order_and_a_heartbeat_are_told() {
    let mut record = record(ProvisionState::CleanWait);
    let step = PlannedStep::new("deploy", "erase_devices", 10);
    record.node.clean_step = Some(step.clone());
    let plan = record.node.plan_mut(StepKind::Clean);
    (plan.steps, plan.index) = (vec![step.clone(), step], Some(1));
    assert_eq!(told(&record).waits_for, "It waits for its agent to call, for the step deploy.erase_devices.");
    record.session.agent_last_heartbeat = Some(NOW - Duration::seconds(20));
    let after = told(&record);
    assert_eq!(after.waits_for, "It waits for its agent to end the step deploy.erase_devices.");
    let said = |what: &str| after.evidence.iter().find(|one| one.what == what).unwrap().said.as_str();
    assert_eq!(said("step"), "clean step deploy.erase_devices (2 of 2)");
    assert_eq!(said("last heartbeat"), "1970-01-01T23:59:40Z (20 s ago)");
    assert_eq!(after.until, Some(NOW - Duration::seconds(20) + Settings::new("").clean_callback_timeout));

    record.node.plan_mut(StepKind::Clean).polling = true;
    assert!(told(&record).waits_for.contains("the machine's own controller to end the step"));

    let mut at_rest = self::record(ProvisionState::Active);
    at_rest.order =
        Some(PendingOrder { attempts: 2, ..PendingOrder::new(Verb::Reboot, NOW - Duration::MINUTE) });
    let owed = told(&at_rest);
    assert!(owed.waits_for.contains(r#"carries out the order "rebooting""#), "{owed:?}");
    assert_eq!(owed.since, NOW - Duration::MINUTE);
    assert!(owed.evidence.iter().any(|one| one.said.contains("taken up again 2 times")));
}

/// Section 1.6: zero disables a deadline.
#[test]
fn a_wait_without_a_deadline_says_so() {
    let settings =
        Settings { deploy_callback_timeout: std::time::Duration::ZERO, ..Settings::new("http://c") };
    let told = explain(&record(ProvisionState::DeployWait), &settings, NOW);
    assert!(told.waits_for.ends_with("without a deadline.") && told.until.is_none(), "{told:?}");
    assert_eq!(told.commands, ["farrier node abort horse"]);
}
