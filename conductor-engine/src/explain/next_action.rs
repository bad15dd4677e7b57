//! The next action of an operator for a node that rests, is held or has failed.

use crate::explain::Waiting;
use farrier_conductor::model::{Fault, Node, ProvisionState};

/// A state, what its node waits for, what to do, and the verbs that do it.
type Row = (ProvisionState, &'static str, &'static str, &'static [&'static str]);

use ProvisionState as S;

/// The states in which nothing moves by itself.
const ROWS: &[Row] = &[
    (S::Enroll, "its BMC is not verified yet", "Verify the BMC.", &["manage"]),
    (
        S::Manageable,
        "its BMC works, and users cannot deploy it",
        "Offer it to users, which cleans it first.",
        &["provide"],
    ),
    (S::Available, "it is ready for an instance", "Nothing, until a user wants an instance.", &["deploy"]),
    (S::DeployHold, "its deployment is held", "Resume it, or abort it.", &["unhold"]),
    (
        S::DeployFailed,
        "its deployment failed",
        "Correct the cause in the last error, then retry from the step that failed; or remove the instance.",
        &["retry"],
    ),
    (S::Active, "its instance runs", "Nothing.", &[]),
    (
        S::Error,
        "its instance could not be removed",
        "Correct the cause in the last error, and remove the instance again.",
        &["undeploy"],
    ),
    (S::CleanHold, "its cleaning is held", "Resume it, or abort it.", &["unhold"]),
    (
        S::CleanFailed,
        "its cleaning failed, and the content of its disks is unknown",
        "Correct the cause in the last error, then retry from the step that failed.",
        &["retry"],
    ),
    (
        S::InspectFailed,
        "its inspection failed",
        "Correct the cause in the last error, and inspect it again.",
        &["inspect"],
    ),
    (
        S::AdoptFailed,
        "it could not be taken over",
        "Correct the cause in the last error, and adopt it again.",
        &["adopt"],
    ),
    (S::Rescue, "its rescue system runs", "Start its instance again when the rescue is done.", &["unrescue"]),
    (
        S::RescueFailed,
        "its rescue failed",
        "Correct the cause in the last error, and rescue it again; or start its instance.",
        &["rescue"],
    ),
    (
        S::UnrescueFailed,
        "its instance could not be started after the rescue",
        "Correct the cause in the last error, and start it again.",
        &["unrescue"],
    ),
    (S::ServiceHold, "its service is held", "Resume it, or abort it.", &["unhold"]),
    (
        S::ServiceFailed,
        "its service failed, and its instance does not run",
        "Correct the cause in the last error, then retry from the step that failed; or abort, which starts the instance.",
        &["retry"],
    ),
];

/// The next action of an operator. The end of a disk export comes first: the conductor refuses all verbs before it.
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
    let actor = if state.needs_operator(node.maintenance) { "an operator" } else { "nothing" };
    let (because, next, commands) = match node.maintenance {
        true => in_maintenance(node, because, next, verbs),
        false => {
            (because.to_owned(), next.to_owned(), verbs.iter().map(|verb| command(node, verb)).collect())
        }
    };
    Waiting {
        waits_for: format!("It waits for {actor}: {because}."),
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
            "Check the BMC and driver_info; maintenance ends by itself when the power can be read."
                .to_owned(),
            vec![format!("farrier node validate {label}")],
        ),
        Some(Fault::Clean) if node.provision_state == S::CleanFailed => (
            because.to_owned(),
            "Correct the cause in the last error, then clean the node again.".to_owned(),
            vec![command(node, "manage"), end, command(node, "provide")],
        ),
        Some(Fault::RescueAbort) => (
            format!("{because}, and the server could not be reset after the rescue"),
            "Look at the machine and its power, end the maintenance, and start its instance.".to_owned(),
            then,
        ),
        Some(Fault::Clean | Fault::Service) | None => {
            let reason =
                node.maintenance_reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
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
