//! What only one vendor has.

use super::base::{Interface, InterfaceError};
use crate::model::InterfaceKind::Vendor;
use crate::model::Node;
use async_trait::async_trait;
use serde_json::Value;

/// A method that a vendor's machines have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VendorMethod {
    /// Its name.
    pub name: &'static str,
    /// Methods of HTTP by which it may be called.
    pub http_methods: &'static [&'static str],
    /// What it does.
    pub description: &'static str,
}

/// Passes on what only one vendor's machines understand.
#[async_trait]
pub trait VendorInterface: Interface {
    /// The methods that there are.
    fn methods(&self) -> &'static [VendorMethod] {
        &[]
    }

    /// Calls one of them.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn passthru(&self, _node: &Node, _method: &str, _body: &Value) -> Result<Value, InterfaceError> {
        InterfaceError::unsupported(Vendor, "vendor_passthru")
    }
}
