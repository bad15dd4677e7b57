//! What each order does to the machine of a node, and above all to its disks.

use farrier_conductor::Settings;
use farrier_conductor::model::{Family, InterfaceKind, Node, ProvisionState};

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

fn is_cleaned(node: &Node, settings: &Settings) -> bool {
    node.automated_clean.unwrap_or(settings.automated_clean)
}

pub(super) fn manage(node: &Node, _: &Settings) -> Effect {
    keeps(match node.provision_state {
        ProvisionState::Enroll => {
            "The conductor verifies that it controls the machine by its BMC. Nothing on the disks changes."
        }
        ProvisionState::CleanFailed => {
            "The node is manageable. The cleaning is not repeated: the disks stay as the failed cleaning left them."
        }
        _ => "The node is manageable, and not offered for instances. Nothing on the disks changes.",
    })
}

pub(super) fn inspect(_: &Node, _: &Settings) -> Effect {
    keeps("The machine restarts into the ramdisk, which reads its hardware. Nothing on the disks changes.")
}

pub(super) fn provide(node: &Node, settings: &Settings) -> Effect {
    match is_cleaned(node, settings) {
        true => destroys(
            "Automated cleaning runs first: the machine restarts into the ramdisk, and clean steps delete the data on its \
             disks. Then the node is available.",
        ),
        false => keeps("The node is available at once. Its disks are not cleaned, and stay as they are."),
    }
}

pub(super) fn deploy(node: &Node, _: &Settings) -> Effect {
    written(node, "the image")
}

pub(super) fn rebuild(node: &Node, _: &Settings) -> Effect {
    written(node, &image(node))
}

/// What the deploy interface of a node does to its disks. The steps of templates come with each interface.
fn written(node: &Node, image: &str) -> Effect {
    let templates = templates(node);
    match node.interfaces.get(InterfaceKind::Deploy) {
        Some("ramdisk") if templates.is_empty() => keeps(
            "The machine restarts into the kernel and ramdisk, or the ISO, of its instance. Nothing is written to the disks.",
        ),
        Some("ramdisk") => destroys(format!(
            "The machine restarts into the kernel and ramdisk, or the ISO, of its instance.{templates}"
        )),
        Some("custom-agent") => destroys(format!(
            "The machine restarts into the ramdisk, and deploy steps decide which disks they write. The data on every disk \
             may be lost.{templates}"
        )),
        _ => {
            let kept = match node.instance_info.flag("preserve_ephemeral") {
                Ok(Some(true)) => ", but for the ephemeral partition, which `preserve_ephemeral` keeps",
                _ => "",
            };
            destroys(format!(
                "The machine restarts into the ramdisk, which writes {image} to the root disk. All data on the root disk are \
                 lost{kept}.{templates}"
            ))
        }
    }
}

/// The sentence about the steps of deploy templates, which the traits of an instance choose.
fn templates(node: &Node) -> String {
    let traits: Vec<_> = node.instance_info.traits().collect();
    match traits.is_empty() {
        true => String::new(),
        false => format!(
            " Deploy templates with the names {} add their steps, such as RAID, which may delete the data on other disks too.",
            traits.join(", ")
        ),
    }
}

pub(super) fn undeploy(node: &Node, settings: &Settings) -> Effect {
    destroys(match is_cleaned(node, settings) {
        true => {
            "The machine is powered off, and its instance removed. Automated cleaning follows: clean steps delete the data \
             on its disks."
        }
        false => {
            "The machine is powered off, and its instance removed. Automated cleaning is off: the data stay on the disks \
             until the next deployment writes over them."
        }
    })
}

pub(super) fn clean(_: &Node, _: &Settings) -> Effect {
    destroys(
        "The machine restarts into the ramdisk, which runs the step on every disk that it may erase. The data on these \
         disks are lost.",
    )
}

pub(super) fn retry(node: &Node, _: &Settings) -> Effect {
    let which = match node.provision_state.family() {
        Some(Family::Clean) => "cleaning",
        Some(Family::Service) => "service",
        _ => "deployment",
    };
    destroys(format!(
        "The {which} resumes at the step that failed, or begins again where its agent is gone. Its steps may \
         delete or overwrite data on the disks."
    ))
}

pub(super) fn unhold(_: &Node, _: &Settings) -> Effect {
    keeps("The operation continues with its next step, as it was ordered.")
}

pub(super) fn abort(node: &Node, _: &Settings) -> Effect {
    keeps(match node.provision_state.family() {
        Some(Family::Deploy) => {
            "The deployment ends as failed. The root disk may have a part of the image, which does not boot."
        }
        Some(Family::Clean) => "The cleaning ends as failed. A part of the data may be deleted already.",
        Some(Family::Service) => "The service ends, and the machine starts its instance.",
        _ => "The operation ends as failed. Nothing more is written to the disks.",
    })
}

pub(super) fn rescue(_: &Node, _: &Settings) -> Effect {
    keeps(
        "The instance stops. The machine restarts into a rescue system in memory, which the user rescue enters with this \
         password. Nothing on the disks changes.",
    )
}

pub(super) fn unrescue(_: &Node, _: &Settings) -> Effect {
    keeps("The rescue system stops, and the machine starts its instance. Nothing on the disks changes.")
}

pub(super) fn adopt(_: &Node, _: &Settings) -> Effect {
    keeps(
        "The node is active with the instance that runs already. The conductor writes nothing to its disks.",
    )
}

pub(super) fn begin_maintenance(_: &Node, _: &Settings) -> Effect {
    keeps(
        "The conductor leaves the machine alone, and most orders are refused. An operation that waits is held or fails. \
         Nothing on the disks changes.",
    )
}

pub(super) fn end_maintenance(_: &Node, _: &Settings) -> Effect {
    keeps("The conductor looks after the machine again. Nothing on the disks changes.")
}

pub(super) fn power_on(_: &Node, _: &Settings) -> Effect {
    keeps("The BMC powers the machine on.")
}

pub(super) fn power_off(_: &Node, _: &Settings) -> Effect {
    keeps(
        "The BMC cuts the power at once. The disks keep their data, but for what the system has not written yet.",
    )
}

pub(super) fn reboot(_: &Node, _: &Settings) -> Effect {
    keeps(
        "The BMC cuts the power at once, and powers the machine on again. The disks keep their data, but for what the \
         system has not written yet.",
    )
}

pub(super) fn soft_power_off(_: &Node, _: &Settings) -> Effect {
    keeps("The system of the machine is asked to shut down.")
}

pub(super) fn soft_reboot(_: &Node, _: &Settings) -> Effect {
    keeps("The system of the machine is asked to shut down, and is powered on again.")
}

/// The image of the record, as the object of a sentence.
fn image(node: &Node) -> String {
    match node.instance_info.get("image_source").and_then(|source| source.as_str()) {
        Some(source) => format!("the image {source}"),
        None => "the image of the record, which names none,".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::kinds::{KINDS, OrderKind};
    use farrier_conductor::model::NewNode;
    use serde_json::json;
    use time::OffsetDateTime;

    fn node() -> Node {
        Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH)
    }

    #[test]
    fn an_order_that_may_lose_data_says_so_and_needs_the_name() {
        let mut node = node();
        node.provision_state = ProvisionState::CleanFailed;
        let settings = Settings::new("http://c");
        let destructive = |node: &Node| {
            let names = KINDS.iter().filter(|kind| kind.effect(node, &settings).is_destructive);
            names.map(|kind| kind.name).collect::<Vec<_>>()
        };
        assert_eq!(destructive(&node), ["provide", "deploy", "retry", "clean", "rebuild", "undeploy"]);
        node.automated_clean = Some(false);
        assert_eq!(destructive(&node), ["deploy", "retry", "clean", "rebuild", "undeploy"]);
        for kind in KINDS {
            assert!(kind.effect(&node, &settings).text.ends_with('.'), "{}", kind.name);
        }
    }

    #[test]
    fn a_deployment_names_the_disks_that_its_interface_and_its_steps_write() {
        let settings = Settings::new("http://c");
        let of = |interface: &str, instance: serde_json::Value| {
            let mut node = node();
            node.interfaces.set(InterfaceKind::Deploy, interface);
            node.instance_info = serde_json::from_value(instance).unwrap();
            OrderKind::named("deploy").unwrap().effect(&node, &settings)
        };
        let ramdisk = of("ramdisk", json!({"kernel": "k"}));
        assert!(!ramdisk.is_destructive && ramdisk.text.contains("Nothing is written"), "{ramdisk:?}");
        let raid = || json!({"traits": ["CUSTOM_RAID"]});
        for (effect, disks) in [
            (
                of("ramdisk", raid()),
                "names CUSTOM_RAID add their steps, such as RAID, which may delete the data on other",
            ),
            (of("direct", raid()), "names CUSTOM_RAID add their steps"),
            (of("direct", json!({})), "All data on the root disk are lost."),
            (of("direct", json!({"preserve_ephemeral": true})), "but for the ephemeral partition"),
            (of("custom-agent", json!({})), "The data on every disk may be lost."),
        ] {
            assert!(effect.is_destructive && effect.text.contains(disks), "{effect:?}");
        }
    }
}
