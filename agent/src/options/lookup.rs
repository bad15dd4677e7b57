//! Options that the conductor sets in its answer to a lookup (section 2.3).

use super::{NameList, Options, SuiteList, TlsVersion};
use farrier_protocol::lookup::LookupConfig;

impl Options {
    /// These options with what the lookup said. A value that cannot be used leaves the option as it
    /// is, because a newer conductor may know more (F53).
    pub fn overridden(&self, config: &LookupConfig) -> Self {
        let mut options = self.clone();
        replace(
            &mut options.tls_min_version,
            usable(config.tls_min_version.as_deref(), TlsVersion::from_text),
        );
        let suites = usable(config.tls_cipher_suites.as_deref(), SuiteList::from_text);
        replace(&mut options.tls_cipher_suites, suites.map(Some));
        replace(&mut options.md5_enabled, config.agent_md5_checksum_enable);
        replace(&mut options.disable_deep_image_inspection, config.disable_deep_image_inspection);
        let formats = config.permitted_image_formats.clone().map(NameList);
        replace(&mut options.permitted_image_formats, formats);
        // A conductor that knows nothing of it says no as well: only a yes counts.
        options.enable_bios_bootloader_install |= config.enable_bios_bootloader_install == Some(true);
        options
    }
}

fn replace<T>(option: &mut T, given: Option<T>) {
    if let Some(value) = given {
        *option = value;
    }
}

fn usable<T>(text: Option<&str>, read: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = text.filter(|text| !text.is_empty())?;
    let value = read(text);
    if value.is_none() {
        tracing::warn!(value = text, "the lookup set an option to something unknown; it stays as it is");
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn overridden(options: &Options, mut config: Value) -> Options {
        config["heartbeat_timeout"] = json!(300);
        options.overridden(&serde_json::from_value(config).unwrap())
    }

    #[test]
    fn s15_the_tls_settings_of_the_lookup_win() {
        let suite = "ECDHE-RSA-AES128-GCM-SHA256";
        for (config, minimum, suites) in [
            (json!({}), TlsVersion::V1_2, None),
            (json!({"tls_min_version": "1.3"}), TlsVersion::V1_3, None),
            (json!({"tls_min_version": "1.1", "tls_cipher_suites": ""}), TlsVersion::V1_2, None),
            (json!({"tls_cipher_suites": suite}), TlsVersion::V1_2, Some(suite)),
            (json!({"tls_cipher_suites": "AES128-SHA"}), TlsVersion::V1_2, None),
        ] {
            let options = overridden(&Options::default(), config.clone());
            assert_eq!(options.tls_min_version, minimum, "{config}");
            let found = options.tls_cipher_suites.map(|list| list.0.join(":"));
            assert_eq!(found.as_deref(), suites, "{config}");
        }
    }

    #[test]
    fn s10_only_a_yes_of_the_lookup_lets_programs_of_images_run() {
        for (own, said, expected) in [
            (false, json!({}), false),
            (false, json!({"enable_bios_bootloader_install": false}), false),
            (false, json!({"enable_bios_bootloader_install": true}), true),
            (true, json!({"enable_bios_bootloader_install": false}), true),
        ] {
            let options = Options { enable_bios_bootloader_install: own, ..Options::default() };
            assert_eq!(overridden(&options, said.clone()).enable_bios_bootloader_install, expected, "{said}");
        }
        assert!(!Options::default().enable_bios_bootloader_install);
    }

    #[test]
    fn what_the_lookup_says_about_images_wins_and_silence_changes_nothing() {
        let default = Options::default();
        let options = overridden(
            &default,
            json!({"agent_md5_checksum_enable": false, "disable_deep_image_inspection": true,
                   "permitted_image_formats": ["raw"], "agent_containers": {"x": 1}}),
        );
        assert!(!options.md5_enabled && options.disable_deep_image_inspection);
        assert_eq!(options.permitted_image_formats.0, ["raw"]);
        let nothing = json!({"disable_deep_image_inspection": null, "permitted_image_formats": null});
        assert_eq!(overridden(&default, nothing).describe(), default.describe());
    }
}
