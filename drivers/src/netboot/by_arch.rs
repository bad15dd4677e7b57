//! Settings that differ by the architecture and the boot mode of a machine (section 6.7, F59).

use super::boot_mode::boot_mode;
use crate::cpu_arch;
use farrier_conductor::interfaces::InterfaceError;
use farrier_conductor::model::Node;
use std::collections::BTreeMap;

/// Values by `ARCH-MODE`, such as `x86_64-bios`, or by `ARCH`, such as `aarch64`.
#[derive(Debug, Clone)]
pub struct ByArch<T>(BTreeMap<String, T>);

impl<T> ByArch<T> {
    /// The value for a node's machine: that of its architecture and boot mode, or else that of its architecture.
    ///
    /// # Errors
    ///
    /// The capabilities of the node cannot be read.
    pub fn get(&self, node: &Node) -> Result<Option<&T>, InterfaceError> {
        let (architecture, mode) = (cpu_arch::of(node), boot_mode(node)?);
        let of_mode = self.0.get(&format!("{architecture}-{}", mode.as_str()));
        Ok(of_mode.or_else(|| self.0.get(architecture)))
    }
}

impl<T> Default for ByArch<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> FromIterator<(String, T)> for ByArch<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}
