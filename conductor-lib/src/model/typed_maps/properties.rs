//! What a machine is made of, as operators and inspections say (section 1.11).

use crate::model::typed_maps::capabilities::Capabilities;
use crate::model::typed_maps::typed_map::{BadValue, typed_map};
use serde_json::Value;

typed_map! {
    /// Hardware properties.
    Properties = "properties"
}

impl Properties {
    /// What the machine can do.
    ///
    /// # Errors
    ///
    /// `capabilities` cannot be read.
    pub fn capabilities(&self) -> Result<Capabilities, BadValue> {
        Capabilities::read(self, Self::FIELD)
    }

    /// Root device hints.
    pub fn root_device(&self) -> Option<&Value> {
        self.get("root_device").filter(|hints| !hints.is_null())
    }
}
