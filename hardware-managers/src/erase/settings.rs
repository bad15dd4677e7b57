//! What the conductor asks for, from the node's record (section 9.8).

use crate::error::StepError;
use crate::setting::Section;
use farrier_disk::guard;
use farrier_protocol::lookup::Node;

/// How to erase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How disks are overwritten.
    pub passes: Passes,
    /// Whether SATA and SCSI disks may erase themselves.
    pub ata_secure_erase: bool,
    /// Whether NVMe disks may erase themselves.
    pub nvme_secure_erase: bool,
    /// Whether a weaker method may follow one that failed.
    pub continue_if_failed: bool,
    /// Whether read-only disks are passed over.
    pub skip_read_only: bool,
    /// How many disks are erased at the same time.
    pub concurrency: usize,
    /// Whether disks with file systems of several machines are kept.
    pub guard: bool,
    /// Whether boot areas of eMMC devices are erased.
    pub boot_areas: bool,
}

/// How often a disk is overwritten, and with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passes {
    /// Passes with random data.
    pub random: u64,
    /// Whether a pass with zeros follows.
    pub zero: bool,
}

impl Settings {
    /// Reads the settings of a node; `is_guarded` is the agent's own option, which only an explicit yes of
    /// the operator lifts.
    ///
    /// # Errors
    ///
    /// [`StepError::InvalidSetting`]: a disk is not erased by guesswork.
    pub fn of(node: &Node, is_guarded: bool) -> Result<Self, StepError> {
        let section = Section::driver_internal_info(node);
        let switch = |key, default| section.switch(key, default);
        let zero = switch("agent_erase_devices_zeroize", true)?;
        let random = section.number("agent_erase_devices_iterations", 1)?;
        let older = switch("agent_continue_if_ata_erase_failed", false)?;
        Ok(Self {
            // No pass at all would be success without erasure (P07).
            passes: Passes { random: if zero { random } else { random.max(1) }, zero },
            ata_secure_erase: switch("agent_enable_ata_secure_erase", true)?,
            nvme_secure_erase: switch("agent_enable_nvme_secure_erase", true)?,
            continue_if_failed: switch("agent_continue_if_secure_erase_failed", older)?,
            skip_read_only: switch("agent_erase_skip_read_only", false)?,
            concurrency: section.number("disk_erasure_concurrency", 1)?.clamp(1, 64) as usize,
            guard: is_guarded && !guard::consents(node),
            boot_areas: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn node(internal: Value, driver_info: Value) -> Node {
        Node {
            driver_internal_info: serde_json::from_value(internal).unwrap(),
            driver_info: serde_json::from_value(driver_info).unwrap(),
            ..Node::default()
        }
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        assert_eq!(
            Settings::of(&Node::default(), true).unwrap(),
            Settings {
                passes: Passes { random: 1, zero: true },
                ata_secure_erase: true,
                nvme_secure_erase: true,
                continue_if_failed: false,
                skip_read_only: false,
                concurrency: 1,
                guard: true,
                boot_areas: false,
            }
        );
    }

    #[test]
    fn p09_every_setting_has_an_effect() {
        let default = Settings::of(&Node::default(), true).unwrap();
        for (key, value, expected) in [
            (
                "agent_erase_devices_iterations",
                json!(3),
                Settings { passes: Passes { random: 3, zero: true }, ..default },
            ),
            (
                "agent_erase_devices_iterations",
                json!("0"),
                Settings { passes: Passes { random: 0, zero: true }, ..default },
            ),
            (
                "agent_erase_devices_zeroize",
                json!(false),
                Settings { passes: Passes { random: 1, zero: false }, ..default },
            ),
            (
                "agent_enable_ata_secure_erase",
                json!("False"),
                Settings { ata_secure_erase: false, ..default },
            ),
            (
                "agent_enable_nvme_secure_erase",
                json!(false),
                Settings { nvme_secure_erase: false, ..default },
            ),
            (
                "agent_continue_if_secure_erase_failed",
                json!(true),
                Settings { continue_if_failed: true, ..default },
            ),
            (
                "agent_continue_if_ata_erase_failed",
                json!("true"),
                Settings { continue_if_failed: true, ..default },
            ),
            ("agent_erase_skip_read_only", json!(true), Settings { skip_read_only: true, ..default }),
            ("disk_erasure_concurrency", json!(4), Settings { concurrency: 4, ..default }),
            ("disk_erasure_concurrency", json!(0), default),
            ("agent_erase_devices_zeroize", json!(null), default),
        ] {
            let node = node(json!({key: value}), json!({}));
            assert_eq!(Settings::of(&node, true).unwrap(), expected, "{key} {value}");
        }
    }

    #[test]
    fn p07_there_is_always_a_pass() {
        let internal = json!({"agent_erase_devices_iterations": 0, "agent_erase_devices_zeroize": false});
        let settings = Settings::of(&node(internal, json!({})), true).unwrap();
        assert_eq!(settings.passes, Passes { random: 1, zero: false });
    }

    #[test]
    fn a_setting_that_cannot_be_read_is_named() {
        for (key, value) in [
            ("agent_erase_devices_iterations", json!(-1)),
            ("agent_erase_devices_iterations", json!("many")),
            ("agent_enable_ata_secure_erase", json!(1)),
            ("disk_erasure_concurrency", json!([])),
        ] {
            let error = Settings::of(&node(json!({key: value}), json!({})), true).unwrap_err().to_string();
            assert!(error.contains(key), "{error}");
        }
    }

    #[test]
    fn d03_only_an_explicit_yes_lifts_the_guard() {
        for (value, expected) in [
            (json!(true), false),
            (json!("True"), false),
            (json!(false), true),
            (json!("no"), true),
            (json!(null), true),
            (json!(1), true),
        ] {
            let internal = node(json!({"wipe_special_filesystems": value}), json!({}));
            assert_eq!(Settings::of(&internal, true).unwrap().guard, expected, "{value}");
            let documented = node(json!({}), json!({"wipe_special_filesystems": value}));
            assert_eq!(Settings::of(&documented, true).unwrap().guard, expected, "{value}");
        }
        assert!(!Settings::of(&Node::default(), false).unwrap().guard);
    }
}
