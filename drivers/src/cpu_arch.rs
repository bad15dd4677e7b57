//! The architecture of a node's machine, by which programs, firmware, loaders and kernel parameters are chosen.

use farrier_conductor::model::Node;

/// The architecture of nodes that name none.
const COMMON: &str = "x86_64";

/// The architecture of a node's machine as Ironic spells it, such as `x86_64` or `aarch64`: its property `cpu_arch`, which
/// an inspection sets (section 1.11).
pub fn of(node: &Node) -> &str {
    let named = node.properties.get("cpu_arch").and_then(|value| value.as_str());
    named.filter(|name| !name.is_empty()).unwrap_or(COMMON)
}
