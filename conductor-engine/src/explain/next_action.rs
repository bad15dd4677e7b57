//! What an operator is to do with a node that rests, is held or has failed.

use crate::explain::Waiting;
use farrier_conductor::model::{Fault, Node, ProvisionState};

/// A state, what its node waits for, what to do, and the verbs that do it.
type Row = (ProvisionState, &'static str, &'static str, &'static [&'static str]);

use ProvisionState as S;

/// The states in which nothing moves by itself.
const ROWS: &[Row] = &[
    (S::Enroll, "nobody has proven yet that its machine is under control", "Have that proven.", &["manage"]),
    (
        S::Manageable,
        "its machine is under control, and kept from users",
        "Offer it to users, which cleans it first.",
        &["provide"],
    ),
    (S::Available, "it is ready for an instance", "Nothing, until somebody wants an instance.", &["deploy"]),
    (S::DeployHold, "its deployment is held", "Let it go on, or abort it.", &["unhold"]),
    (
        S::DeployFailed,
        "its deployment failed",
        "Put right what the last error names, then go on at the step that failed; or remove the instance.",
        &["retry"],
    ),
    (S::Active, "its instance runs", "Nothing.", &[]),
    (
        S::Error,
        "its instance could not be removed",
        "Put right what the last error names, and remove the instance again.",
        &["undeploy"],
    ),
    (S::CleanHold, "its cleaning is held", "Let it go on, or abort it.", &["unhold"]),
    (
        S::CleanFailed,
        "its cleaning failed, and nobody knows what is on its disks",
        "Put right what the last error names, then go on at the step that failed.",
        &["retry"],
    ),
    (
        S::InspectFailed,
        "its inspection failed",
        "Put right what the last error names, and inspect it again.",
        &["inspect"],
    ),
    (
        S::AdoptFailed,
        "it could not be taken over",
        "Put right what the last error names, and adopt it again.",
        &["adopt"],
    ),
    (S::Rescue, "its rescue system runs", "Start its instance again when the rescue is done.", &["unrescue"]),
    (
        S::RescueFailed,
        "its rescue failed",
        "Put right what the last error names, and rescue it again; or start its instance.",
        &["rescue"],
    ),
    (
        S::UnrescueFailed,
        "its instance could not be started after the rescue",
        "Put right what the last error names, and start it again.",
        &["unrescue"],
    ),
    (S::ServiceHold, "its service is held", "Let it go on, or abort it.", &["unhold"]),
    (
        S::ServiceFailed,
        "its service failed, and its instance does not run",
        "Put right what the last error names, then go on at the step that failed; or abort, which starts the instance.",
        &["retry"],
    ),
];

/// What an operator is to do. What is exported comes before everything: all verbs are refused meanwhile.
pub(crate) fn is_to_act(node: &Node) -> Waiting {
    if let Some(export) = &node.driver_internal_info.disk_export {
        return Waiting {
            waits_for: format!("It waits for an operator: its disk is exported by iSCSI, as {export}."),
            until: None,
            next_action:
                "End the export when you are done with the disk; or power the machine off, should its agent \
                not answer."
                    .to_owned(),
            commands: vec![format!("farrier disk release {}", node.label())],
        };
    }
    let state = node.provision_state;
    let row = ROWS.iter().find(|(of, ..)| *of == state);
    let (_, because, next, verbs) = row.copied().unwrap_or((state, "", "", &[]));
    let whom = if state.needs_operator(node.maintenance) { "an operator" } else { "nobody" };
    let (because, next, commands) = match node.maintenance {
        true => in_maintenance(node, because, next, verbs),
        false => {
            (because.to_owned(), next.to_owned(), verbs.iter().map(|verb| command(node, verb)).collect())
        }
    };
    Waiting {
        waits_for: format!("It waits for {whom}: {because}."),
        until: None,
        next_action: next,
        commands,
    }
}

/// Maintenance comes first: most verbs are refused in it.
fn in_maintenance(node: &Node, because: &str, next: &str, verbs: &[&str]) -> (String, String, Vec<String>) {
    let (end, label) = (format!("farrier node maintenance {} off", node.label()), node.label());
    let then: Vec<_> =
        std::iter::once(end.clone()).chain(verbs.iter().map(|verb| command(node, verb))).collect();
    match node.fault {
        Some(Fault::Power) => (
            format!("{because}, and the power state of its machine cannot be read"),
            "See to the machine's controller and to driver_info; maintenance ends by itself when the power can be read."
                .to_owned(),
            vec![format!("farrier node validate {label}")],
        ),
        Some(Fault::Clean) if node.provision_state == S::CleanFailed => (
            because.to_owned(),
            "Put right what the last error names, then have all of it cleaned again.".to_owned(),
            vec![command(node, "manage"), end, command(node, "provide")],
        ),
        Some(Fault::RescueAbort) => (
            format!("{because}, and what the rescue has left could not be put right"),
            "Look at the machine and its power, end the maintenance, and start its instance.".to_owned(),
            then,
        ),
        Some(Fault::Clean | Fault::Service) | None => {
            let reason = node.maintenance_reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
            (
                format!("{because}, and it is in maintenance{reason}"),
                format!("End the maintenance when you are done with the machine. {next}"),
                then,
            )
        }
    }
}

fn command(node: &Node, verb: &str) -> String {
    match verb {
        "deploy" => format!("farrier deploy {} --image URL --checksum ALGO:HEX", node.label()),
        verb => format!("farrier node {verb} {}", node.label()),
    }
}
