//! What an order does to the machine of a node, and above all to its disks.

use super::kinds::{OrderKind, What};
use farrier_conductor::Settings;
use farrier_conductor::model::{Event, Family, Node, PowerAction, ProvisionState};

/// What an order does.
#[derive(Debug, PartialEq)]
pub(crate) struct Effect {
    /// In sentences.
    pub(crate) text: String,
    /// Whether data on a disk may be lost, so that the order needs the name of the node.
    pub(crate) is_destructive: bool,
}

fn keeps(text: impl Into<String>) -> Effect {
    Effect { text: text.into(), is_destructive: false }
}

fn destroys(text: impl Into<String>) -> Effect {
    Effect { text: text.into(), is_destructive: true }
}

/// What an order does to a node.
pub(crate) fn effect(kind: &OrderKind, node: &Node, settings: &Settings) -> Effect {
    match kind.what {
        What::Verb(event) => of_verb(event, node, settings),
        What::Power(action) => of_power(action),
        What::Maintenance(true) => keeps(
            "The conductor leaves the machine alone, and most orders are refused. An operation that waits is \
             held or fails. Nothing on the disks changes.",
        ),
        What::Maintenance(false) => {
            keeps("The conductor looks after the machine again. Nothing on the disks changes.")
        }
    }
}

fn of_verb(event: Event, node: &Node, settings: &Settings) -> Effect {
    let is_cleaned = node.automated_clean.unwrap_or(settings.automated_clean);
    match event {
        Event::Manage => manage(node.provision_state),
        Event::Inspect => keeps(
            "The machine restarts into the ramdisk, which reads its hardware. Nothing on the disks changes.",
        ),
        Event::Provide if is_cleaned => destroys(
            "Automated cleaning runs first: the machine restarts into the ramdisk, and clean steps delete the \
             data on its disks. Then the node is available.",
        ),
        Event::Provide => {
            keeps("The node is available at once. Its disks are not cleaned, and stay as they are.")
        }
        Event::Deploy => destroys(
            "The machine restarts into the ramdisk, which writes the image to the root disk. All data on the \
             root disk are lost.",
        ),
        Event::Rebuild => destroys(format!(
            "The machine restarts into the ramdisk, which writes {} to the root disk again. All data on the \
             root disk are lost, but for an ephemeral partition that the record preserves.",
            image(node)
        )),
        Event::Delete if is_cleaned => destroys(
            "The machine is powered off, and its instance removed. Automated cleaning follows: clean steps \
             delete the data on its disks.",
        ),
        Event::Delete => destroys(
            "The machine is powered off, and its instance removed. Automated cleaning is off: the data stay on \
             the disks until the next deployment writes over them.",
        ),
        Event::Clean => destroys(
            "The machine restarts into the ramdisk, which runs the step on every disk that it may erase. The \
             data on these disks are lost.",
        ),
        Event::Retry => retry(node.provision_state.family()),
        Event::Unhold => keeps("The operation continues with its next step, as it was ordered."),
        Event::Abort => abort(node.provision_state.family()),
        Event::Rescue => keeps(
            "The instance stops. The machine restarts into a rescue system in memory, which the user rescue \
             enters with this password. Nothing on the disks changes.",
        ),
        Event::Unrescue => keeps(
            "The rescue system stops, and the machine starts its instance. Nothing on the disks changes.",
        ),
        Event::Adopt => keeps(
            "The node is active with the instance that runs already. The conductor writes nothing to its disks.",
        ),
        Event::Service | Event::Done | Event::Fail | Event::Wait | Event::Resume | Event::Hold => {
            keeps("The page has no such order.")
        }
    }
}

fn manage(state: ProvisionState) -> Effect {
    keeps(match state {
        ProvisionState::Enroll => {
            "The conductor verifies that it controls the machine by its BMC. Nothing on the disks changes."
        }
        ProvisionState::CleanFailed => {
            "The node is manageable. The cleaning is not repeated: the disks stay as the failed cleaning left them."
        }
        _ => "The node is manageable, and not offered for instances. Nothing on the disks changes.",
    })
}

fn retry(family: Option<Family>) -> Effect {
    let which = match family {
        Some(Family::Clean) => "cleaning",
        Some(Family::Service) => "service",
        _ => "deployment",
    };
    destroys(format!(
        "The {which} resumes at the step that failed, or begins again where its agent is gone. Its steps may \
         delete or overwrite data on the disks."
    ))
}

fn abort(family: Option<Family>) -> Effect {
    keeps(match family {
        Some(Family::Deploy) => {
            "The deployment ends as failed. The root disk may have a part of the image, which does not boot."
        }
        Some(Family::Clean) => "The cleaning ends as failed. A part of the data may be deleted already.",
        Some(Family::Service) => "The service ends, and the machine starts its instance.",
        _ => "The operation ends as failed. Nothing more is written to the disks.",
    })
}

fn of_power(action: PowerAction) -> Effect {
    keeps(match action {
        PowerAction::On => "The BMC powers the machine on.",
        PowerAction::Off => {
            "The BMC cuts the power at once. The disks keep their data, but for what the system has not written yet."
        }
        PowerAction::Reboot => {
            "The BMC cuts the power at once, and powers the machine on again. The disks keep their data, but for \
             what the system has not written yet."
        }
        PowerAction::SoftOff => "The system of the machine is asked to shut down.",
        PowerAction::SoftReboot => {
            "The system of the machine is asked to shut down, and is powered on again."
        }
    })
}

/// The image of the record, as the object of a sentence.
pub(crate) fn image(node: &Node) -> String {
    match node.instance_info.get("image_source").and_then(|source| source.as_str()) {
        Some(source) => format!("the image {source}"),
        None => "the image of the record, which names none,".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::kinds::KINDS;
    use farrier_conductor::model::NewNode;
    use time::OffsetDateTime;

    #[test]
    fn an_order_that_may_lose_data_says_so_and_needs_the_name() {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        node.provision_state = ProvisionState::CleanFailed;
        let settings = Settings::new("http://c");
        let destructive = |node: &Node| {
            let names = KINDS.iter().filter(|kind| effect(kind, node, &settings).is_destructive);
            names.map(|kind| kind.name).collect::<Vec<_>>()
        };
        assert_eq!(destructive(&node), ["provide", "deploy", "retry", "clean", "rebuild", "undeploy"]);
        node.automated_clean = Some(false);
        assert_eq!(destructive(&node), ["deploy", "retry", "clean", "rebuild", "undeploy"]);
        for kind in KINDS {
            let effect = effect(kind, &node, &settings);
            assert!(effect.text.ends_with('.') && !effect.text.contains("no such order"), "{}", kind.name);
        }
    }
}
