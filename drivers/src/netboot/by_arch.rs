//! Settings that differ by the architecture and the boot mode of a machine (section 6.7, F59), and the images of nodes
//! that name none.

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
        let (architecture, mode) = (cpu_arch::of(node), node.boot_mode()?);
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

/// Images that a conductor has for nodes that name none (`[conductor]deploy_kernel`, `deploy_kernel_by_arch` and their
/// like), by the key of `driver_info` that names them.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredImages(BTreeMap<&'static str, OfAll>);

#[derive(Debug, Clone, Default)]
struct OfAll {
    by_arch: ByArch<String>,
    otherwise: Option<String>,
}

impl ConfiguredImages {
    /// Adds the image of a key: `otherwise` for nodes of whose architecture `by_arch` has none.
    #[must_use]
    pub fn with(
        mut self,
        key: &'static str,
        otherwise: Option<String>,
        by_arch: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        self.0.insert(key, OfAll { by_arch: by_arch.into_iter().collect(), otherwise });
        self
    }

    /// The image of a key for a node; nothing where none is configured.
    ///
    /// # Errors
    ///
    /// The capabilities of the node cannot be read.
    pub(crate) fn get(&self, node: &Node, key: &str) -> Result<Option<&str>, InterfaceError> {
        let Some(of_all) = self.0.get(key) else { return Ok(None) };
        Ok(of_all.by_arch.get(node)?.or(of_all.otherwise.as_ref()).map(String::as_str))
    }

    /// Kernel and ramdisk for a node: both of its architecture, or else both of all, but none of each, since a kernel
    /// does not boot with the modules of another.
    ///
    /// # Errors
    ///
    /// As [`Self::get`].
    pub(crate) fn pair(
        &self,
        node: &Node,
        [kernel, ramdisk]: [&str; 2],
    ) -> Result<Option<[&str; 2]>, InterfaceError> {
        let (Some(kernel), Some(ramdisk)) = (self.0.get(kernel), self.0.get(ramdisk)) else {
            return Ok(None);
        };
        if let (Some(kernel), Some(ramdisk)) = (kernel.by_arch.get(node)?, ramdisk.by_arch.get(node)?) {
            return Ok(Some([kernel, ramdisk]));
        }
        Ok(kernel.otherwise.as_deref().zip(ramdisk.otherwise.as_deref()).map(<[_; 2]>::from))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::node;
    use super::*;
    use serde_json::json;

    #[test]
    fn c05_kernel_and_ramdisk_are_of_one_source() {
        let by_arch = |value: &str| vec![("aarch64".to_owned(), value.to_owned())];
        let both = ConfiguredImages::default()
            .with("deploy_kernel", Some("k".into()), by_arch("k-arm"))
            .with("deploy_ramdisk", Some("r".into()), by_arch("r-arm"));
        let half = ConfiguredImages::default()
            .with("deploy_kernel", Some("k".into()), by_arch("k-arm"))
            .with("deploy_ramdisk", Some("r".into()), []);
        for (images, architecture, expected) in [
            (&both, "x86_64", Some(["k", "r"])),
            (&both, "", Some(["k", "r"])),
            (&both, "aarch64", Some(["k-arm", "r-arm"])),
            (&half, "aarch64", Some(["k", "r"])),
            (&ConfiguredImages::default(), "x86_64", None),
            (&ConfiguredImages::default().with("deploy_kernel", Some("k".into()), []), "x86_64", None),
        ] {
            let mut node = node(&json!({}));
            node.properties.insert("cpu_arch".into(), json!(architecture));
            assert_eq!(images.pair(&node, ["deploy_kernel", "deploy_ramdisk"]).unwrap(), expected);
        }
    }
}
