//! A node as it is kept, for a view of it: unread parts stay the text in the store.

use crate::wire::view::{Fields, Kept};
use farrier_engine::store::{Documents, Outline};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// What a driver knows of a machine, with what is known of its agent.
const KNOWN: &str = "driver_internal_info";

/// A node by its columns and documents, secrets included.
pub(super) struct KeptNode<'a> {
    outline: &'a Outline,
    document: BTreeMap<&'a str, &'a RawValue>,
    known: Value,
}

impl<'a> KeptNode<'a> {
    /// A node of which all is read.
    ///
    /// # Errors
    ///
    /// A document was damaged.
    pub(super) fn read(outline: &'a Outline, documents: &'a Documents) -> Result<Self, serde_json::Error> {
        let document = documents.node()?;
        let mut known =
            document.get(KNOWN).map_or(Ok(Value::Null), |text| serde_json::from_str(text.get()))?;
        if let Value::Object(known) = &mut known {
            known.extend(documents.session()?.into_iter().filter(|(_, value)| !value.is_null()));
        }
        Ok(Self { outline, document, known })
    }
}

impl Fields for KeptNode<'_> {
    fn field(&self, name: &str) -> Option<Kept<'_>> {
        match self.document.get(name) {
            Some(_) if name == KNOWN => Some(Kept::Value(&self.known)),
            Some(text) => Some(Kept::Text(text)),
            None => Fields::field(self.outline, name),
        }
    }
}

impl Fields for Outline {
    fn field(&self, name: &str) -> Option<Kept<'_>> {
        Self::field(self, name).map(Kept::Value)
    }
}
