//! An instance that is a ramdisk (sections 5.8 and 6.3).

use crate::model::InstanceInfo;
use crate::model::node::Node;
use crate::model::typed_maps::typed_map::BadValue;
use farrier_media::KernelParameters;

/// What every kernel gets that boots an instance in memory.
const IN_MEMORY: &str = "root=/dev/ram0 text";

/// An instance that is a ramdisk: what a machine starts from at every power-on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RamdiskInstance {
    /// A medium with its own boot loader.
    Iso(
        /// Its URL.
        String,
    ),
    /// A kernel with its ramdisk.
    Kernel {
        /// URL of the kernel.
        kernel: String,
        /// URL of the ramdisk.
        ramdisk: String,
        /// What the kernel is told.
        parameters: KernelParameters,
    },
}

impl RamdiskInstance {
    /// Reads `boot_iso`, or else `kernel` and `ramdisk` with `kernel_append_params` (of `driver_info` where the
    /// instance has none) and `ramdisk_kernel_arguments`.
    ///
    /// # Errors
    ///
    /// There is neither, or a value cannot be used.
    pub fn read(node: &Node) -> Result<Self, BadValue> {
        let info = &node.instance_info;
        if let Some(iso) = info.text("boot_iso")? {
            return Ok(Self::Iso(iso.to_owned()));
        }
        let needed = |key: &str| {
            let missing = "is missing; give the kernel and ramdisk, or the boot_iso, that the machine runs in its memory";
            info.text(key)?.map(str::to_owned).ok_or_else(|| BadValue::new(InstanceInfo::FIELD, key, missing))
        };
        let (kernel, ramdisk) = (needed("kernel")?, needed("ramdisk")?);
        Ok(Self::Kernel { kernel, ramdisk, parameters: parameters(node)? })
    }
}

fn parameters(node: &Node) -> Result<KernelParameters, BadValue> {
    let (instance, driver) = (&node.instance_info, &node.driver_info);
    let appended = instance.text("kernel_append_params")?.or(driver.text("kernel_append_params")?);
    let arguments = instance.text("ramdisk_kernel_arguments")?;
    let mut parameters = KernelParameters::default();
    for (key, words) in [
        ("kernel_append_params", Some(IN_MEMORY)),
        ("kernel_append_params", appended),
        ("ramdisk_kernel_arguments", arguments),
    ] {
        let read = words.unwrap_or_default().parse().and_then(|words| parameters.followed_by(&words));
        parameters = read.map_err(|error| BadValue::new(InstanceInfo::FIELD, key, error.to_string()))?;
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::node::tests::node;
    use serde_json::{Value, json};

    fn read(instance_info: Value) -> Result<RamdiskInstance, String> {
        let mut node = node();
        node.driver_info.insert("kernel_append_params".into(), json!("console=tty0"));
        node.instance_info = serde_json::from_value(instance_info).unwrap();
        RamdiskInstance::read(&node).map_err(|error| error.to_string())
    }

    #[test]
    fn an_instance_in_memory_is_an_iso_or_a_kernel_with_its_ramdisk() {
        let kernel = |line: &str| {
            Ok(RamdiskInstance::Kernel {
                kernel: "http://h/k".into(),
                ramdisk: "http://h/r".into(),
                parameters: line.parse().unwrap(),
            })
        };
        let both =
            |key: &str, value: &str| json!({"kernel": "http://h/k", "ramdisk": "http://h/r", key: value});
        let missing =
            "is missing; give the kernel and ramdisk, or the boot_iso, that the machine runs in its memory";
        for (info, expected) in [
            (json!({"boot_iso": "http://h/i", "kernel": "k"}), Ok(RamdiskInstance::Iso("http://h/i".into()))),
            (both("image_source", "x"), kernel("root=/dev/ram0 text console=tty0")),
            (both("kernel_append_params", "quiet"), kernel("root=/dev/ram0 text quiet")),
            (both("ramdisk_kernel_arguments", "a=b"), kernel("root=/dev/ram0 text console=tty0 a=b")),
            (json!({"kernel": "k"}), Err(format!("instance_info ramdisk: {missing}"))),
            (json!({}), Err(format!("instance_info kernel: {missing}"))),
            (json!({"boot_iso": ""}), Err("instance_info boot_iso: must be a non-empty text".to_owned())),
        ] {
            assert_eq!(read(info.clone()), expected, "{info}");
        }
        let error = read(both("ramdisk_kernel_arguments", "a;b")).unwrap_err();
        assert!(error.starts_with("instance_info ramdisk_kernel_arguments: "), "{error}");
    }
}
