//! What an inspection tells of a machine (section 8.5).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The data of an inspection of a machine. It is kept apart from the node's record, since it may have megabytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InspectionData {
    /// What the machine is made of, as its ramdisk saw it.
    pub inventory: Map<String, Value>,
    /// What other collectors of the ramdisk saw, and what hooks made of it.
    pub plugin_data: Map<String, Value>,
}
