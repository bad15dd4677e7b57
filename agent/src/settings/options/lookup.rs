//! Options that the conductor sets in its answer to a lookup (section 2.3).

use super::{NameList, OptionValue, Options, SuiteList, TlsVersion};
use farrier_hardware::container::Words;
use farrier_protocol::lookup::LookupConfig;
use serde_json::{Map, Value};

impl Options {
    /// These options with what the lookup said. A value that cannot be used leaves the option as it
    /// is, because a newer conductor may know more (F53).
    pub fn overridden(&self, config: &LookupConfig) -> Self {
        for text in &config.left_out {
            tracing::warn!("the lookup's config: {text}; it is ignored");
        }
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
        options.set_containers(&config.agent_containers);
        options
    }

    /// Options of the section `[container]` by their names, each for itself.
    fn set_containers(&mut self, values: &Map<String, Value>) {
        for (name, value) in values {
            let is_set = match name.as_str() {
                "allow_arbitrary_containers" => put(&mut self.allow_arbitrary_containers, one(value)),
                "allowed_containers" => put(&mut self.allowed_containers, names(value)),
                "container_steps_file" => put(&mut self.container_steps_file, one(value)),
                "runner" => put(&mut self.container_runner, one(value)),
                "pull_options" => put(&mut self.container_pull_options, Words::from_json(value)),
                "run_options" => put(&mut self.container_run_options, Words::from_json(value)),
                _ => {
                    tracing::warn!(
                        "the agent ignores [container]{name} of the lookup: it has no such option"
                    );
                    continue;
                }
            };
            if !is_set {
                // It may hold credentials.
                tracing::warn!(
                    "the lookup set [container]{name} to an invalid value; the agent keeps the earlier value"
                );
            }
        }
    }
}

/// Sets an option; false when there is nothing to set.
fn put<T>(option: &mut T, given: Option<T>) -> bool {
    let is_given = given.is_some();
    replace(option, given);
    is_given
}

/// A value that is written as text, or as JSON writes it.
fn one<T: OptionValue>(value: &Value) -> Option<T> {
    match value {
        Value::String(text) => T::read(text.trim()),
        Value::Bool(is_on) => T::read(&is_on.to_string()),
        _ => None,
    }
}

/// Names in a list, perhaps an empty one, or in one text.
fn names(value: &Value) -> Option<NameList> {
    match value {
        Value::String(text) if text.trim().is_empty() => Some(NameList::default()),
        Value::String(text) => NameList::read(text),
        _ => serde_json::from_value(value.clone()).ok().map(NameList),
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
        tracing::warn!(
            value = text,
            "the lookup response sets an option to an unknown value; the option keeps its value"
        );
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
            (json!({"tls_cipher_suites": "ECDHE+aRSA+AES128:DHE+AES:!aNULL"}), TlsVersion::V1_2, Some(suite)),
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
                   "permitted_image_formats": ["raw"]}),
        );
        assert!(!options.md5_enabled && options.disable_deep_image_inspection);
        assert_eq!(options.permitted_image_formats.0, ["raw"]);
        let nothing = json!({"disable_deep_image_inspection": null, "permitted_image_formats": null});
        assert_eq!(overridden(&default, nothing).describe(), default.describe());
    }

    #[test]
    fn x12_the_containers_of_the_lookup_are_obeyed_value_by_value() {
        let own = Options { container_steps_file: "/own".to_owned(), ..Options::default() };
        let options = overridden(
            &own,
            json!({"agent_containers": {
                "allow_arbitrary_containers": true, "allowed_containers": ["a:1", "docker://b"],
                "container_steps_file": "/steps.yaml", "runner": "docker",
                "pull_options": "--tls-verify=false", "run_options": ["--rm", "--privileged"],
            }}),
        );
        assert!(options.allow_arbitrary_containers);
        assert_eq!(options.allowed_containers.0, ["a:1", "docker://b"]);
        assert_eq!(options.container_steps_file, "/steps.yaml");
        assert_eq!(options.container_runner.name(), "docker");
        assert_eq!(options.container_pull_options.as_slice(), ["--tls-verify=false"]);
        assert_eq!(options.container_run_options.as_slice(), ["--rm", "--privileged"]);
        let odd = json!({"agent_containers": {
            "allow_arbitrary_containers": 7, "allowed_containers": [1], "container_steps_file": "",
            "runner": "lxc", "pull_options": {}, "run_options": null, "from_the_future": 1,
        }});
        assert_eq!(overridden(&options, odd).describe(), options.describe());
        let none =
            json!({"agent_containers": {"allowed_containers": [], "allow_arbitrary_containers": "no"}});
        let options = overridden(&options, none);
        assert!(!options.allow_arbitrary_containers && options.allowed_containers.0.is_empty());
        assert_eq!(options.container_steps_file, "/steps.yaml");
    }
}
