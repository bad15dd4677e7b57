//! The disks of a node as a picture: what a deployment writes, what cleaning erases, and what both keep.

use crate::html;
use farrier_conductor::model::{InspectionData, Node};
use maud::{Markup, html};
use serde_json::Value;

const HEAD: [&str; 9] =
    ["Device", "Size", "Deployment", "Cleaning", "Model", "Serial number", "WWN", "Transport", "Rotational"];

/// Width of the picture of the largest disk, in its own units.
const WIDTH: f64 = 1000.0;

/// Least width of a disk, so that a small one can be seen.
const NARROWEST: f64 = 20.0;

/// What happens to a disk.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fate {
    /// Its data are lost.
    Lost,
    /// Its data stay.
    Kept,
    /// The inspection does not tell.
    Unknown,
}

impl Fate {
    fn class(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Kept => "kept",
            Self::Unknown => "unknown",
        }
    }

    fn told(self, lost: &'static str) -> &'static str {
        match self {
            Self::Lost => lost,
            Self::Kept => "kept",
            Self::Unknown => "not known",
        }
    }
}

/// The disks that the last inspection has found.
pub(super) fn disks(node: &Node, inspection: &InspectionData) -> Markup {
    let disks = inspection.inventory.get("disks").and_then(Value::as_array);
    let disks = disks.map(Vec::as_slice).unwrap_or_default();
    let largest = disks.iter().filter_map(|disk| disk.get("size")?.as_u64()).max().unwrap_or(1).max(1);
    html! {
        table {
            caption { "Disks" }
            (html::head(&HEAD))
            tbody { @for disk in disks { (row(disk, node, inspection, largest)) } }
        }
        p { "A deployment with the deploy interface custom-agent, and steps such as RAID, write other disks too." }
    }
}

fn row(disk: &Value, node: &Node, inspection: &InspectionData, largest: u64) -> Markup {
    let (deployment, cleaning) = (deployed(disk, node, inspection), cleaned(disk, node));
    let text = |name: &str| html::value(disk.get(name));
    html! {
        tr {
            th scope="row" { (text("name")) }
            td data-label=(HEAD[1]) { (html::size(disk.get("size"))) }
            td data-label=(HEAD[2]) { (picture(disk, deployment, largest)) " " (deployment.told("root disk: written, all data lost")) }
            td data-label=(HEAD[3]) { (picture(disk, cleaning, largest)) " " (cleaning.told("erased")) }
            td data-label=(HEAD[4]) { (text("model")) }
            td data-label=(HEAD[5]) { (text("serial")) }
            td data-label=(HEAD[6]) { (text("wwn")) }
            td data-label=(HEAD[7]) { (text("tran")) }
            td data-label=(HEAD[8]) { (text("rotational")) }
        }
    }
}

/// A bar as long as the disk is large. The words beside it say the same.
fn picture(disk: &Value, fate: Fate, largest: u64) -> Markup {
    let size = disk.get("size").and_then(Value::as_u64).unwrap_or_default();
    let width = (size as f64 / largest as f64 * WIDTH).clamp(NARROWEST, WIDTH);
    html! {
        svg.span viewBox=(format!("0 0 {WIDTH} 10")) preserveAspectRatio="none" aria-hidden="true" {
            rect class=(fate.class()) width=(format!("{width:.0}")) height="10" {}
        }
    }
}

/// The inspection has chosen the root disk by its usual rule. Hints may have changed since, and the agent alone reads them.
fn deployed(disk: &Value, node: &Node, inspection: &InspectionData) -> Fate {
    if node.properties.root_device().is_some() || node.instance_info.contains_key("root_device") {
        return Fate::Unknown;
    }
    let root = inspection.plugin_data.get("root_disk").and_then(|root| root.get("name"));
    match (root, disk.get("name")) {
        (Some(root), Some(name)) if root == name => Fate::Lost,
        (Some(_), Some(_)) => Fate::Kept,
        _ => Fate::Unknown,
    }
}

/// Cleaning erases all disks but those that the record excludes.
fn cleaned(disk: &Value, node: &Node) -> Fate {
    match node.properties.get("skip_block_devices").and_then(Value::as_array) {
        None => Fate::Lost,
        Some(excluded) if excluded.is_empty() => Fate::Lost,
        Some(excluded) => {
            let names = |hints: &Value| hints.get("name").is_some_and(|name| Some(name) == disk.get("name"));
            let serials =
                |hints: &Value| hints.get("serial").is_some_and(|serial| Some(serial) == disk.get("serial"));
            let is_named = |hints: &Value| names(hints) || serials(hints);
            // Other hints are for the agent to read.
            if excluded.iter().any(is_named) { Fate::Kept } else { Fate::Unknown }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use serde_json::json;
    use time::OffsetDateTime;

    #[test]
    fn a_disk_is_lost_or_kept_as_the_record_and_the_inspection_tell() {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::UNIX_EPOCH);
        let disk = |name: &str| json!({"name": name, "serial": format!("S-{name}")});
        let mut inspection = InspectionData::default();
        assert_eq!(deployed(&disk("/dev/sda"), &node, &inspection), Fate::Unknown);
        inspection.plugin_data.insert("root_disk".into(), disk("/dev/sda"));
        assert_eq!(deployed(&disk("/dev/sda"), &node, &inspection), Fate::Lost);
        assert_eq!(deployed(&disk("/dev/sdb"), &node, &inspection), Fate::Kept);
        let mut hinted = node.clone();
        hinted.properties.insert("root_device".into(), json!({"size": ">= 10"}));
        assert_eq!(deployed(&disk("/dev/sdb"), &hinted, &inspection), Fate::Unknown);
        let mut instance = node.clone();
        instance.instance_info.insert("root_device".into(), json!({"name": "/dev/sdb"}));
        assert_eq!(deployed(&disk("/dev/sdb"), &instance, &inspection), Fate::Unknown);
        for (excluded, expected) in [
            (json!(null), Fate::Lost),
            (json!([]), Fate::Lost),
            (json!([{"name": "/dev/sda"}]), Fate::Kept),
            (json!([{"serial": "S-/dev/sda"}]), Fate::Kept),
            (json!([{"name": "/dev/sdb"}]), Fate::Unknown),
            (json!([{"size": ">= 10"}]), Fate::Unknown),
        ] {
            node.properties.insert("skip_block_devices".into(), excluded.clone());
            assert_eq!(cleaned(&disk("/dev/sda"), &node), expected, "{excluded}");
        }
    }
}
