//! `farrier node create`.

use crate::access::secret;
use crate::failure::{INVALID_OPTION, coded};
use clap::Args;
use farrier_conductor::model::{InterfaceKind, MacAddress};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Words in the names of keys whose values are secrets, and the end of such names.
const SECRET: [&str; 4] = ["password", "passphrase", "secret", "token"];
const SECRET_END: &str = "_key";

/// Where the secret of a key is found in the environment: behind this, in capital letters.
const VARIABLE: &str = "FARRIER_";

/// Options of `farrier node create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Unique name of the node.
    name: String,
    /// MAC address of a network card; the machine boots from the first one.
    #[arg(long, required = true)]
    pub(crate) mac: Vec<MacAddress>,
    /// Hardware type. Example: qemu.
    #[arg(long)]
    driver: String,
    /// Interface of the node, instead of the default of its hardware type. Example: boot=ipxe.
    #[arg(long, value_name = "KIND=NAME", value_parser = kind_name)]
    interface: Vec<(InterfaceKind, String)>,
    /// Settings of the driver. Example: deploy_kernel=/srv/vmlinuz deploy_ramdisk=/srv/initramfs.img
    /// qemu_disks=/srv/disk.img.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_text)]
    driver_info: Vec<(String, Value)>,
    /// Secret for driver_info, read from the first line of FILE (-: standard input). Without FILE, it is read from
    /// FARRIER_KEY, such as FARRIER_REDFISH_PASSWORD, or from the terminal.
    #[arg(long, value_name = "KEY[=FILE]")]
    driver_secret: Vec<String>,
    /// Hardware property; the value is JSON or text. Example: root_device='{"serial": "ROOT1"}'.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_json)]
    property: Vec<(String, Value)>,
    /// Create the node in the state `enroll`: `farrier node manage` then verifies its BMC. Without it, the node is
    /// `available` at once.
    #[arg(long)]
    pub(crate) enroll: bool,
    /// Run automated cleaning before the node becomes available [default: the setting of the conductor].
    #[arg(long, value_name = "BOOL")]
    automated_clean: Option<bool>,
}

fn key_text(argument: &str) -> Result<(String, Value), String> {
    let (key, value) = split(argument)?;
    Ok((key, Value::from(value)))
}

fn kind_name(argument: &str) -> Result<(InterfaceKind, String), String> {
    let (kind, name) = split(argument)?;
    let Some(kind) = InterfaceKind::named(&kind) else {
        let kinds: Vec<_> = InterfaceKind::ALL.iter().map(|kind| kind.as_str()).collect();
        return Err(format!("{kind:?} must be one of: {}", kinds.join(", ")));
    };
    Ok((kind, name.to_owned()))
}

fn key_json(argument: &str) -> Result<(String, Value), String> {
    let (key, value) = split(argument)?;
    Ok((key, serde_json::from_str(value).unwrap_or_else(|_| Value::from(value))))
}

fn split(argument: &str) -> Result<(String, &str), String> {
    match argument.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value)),
        _ => Err("must be KEY=VALUE".to_owned()),
    }
}

impl Create {
    /// The fields of the node.
    ///
    /// # Errors
    ///
    /// A secret among the arguments, or one that cannot be read.
    pub(crate) fn into_fields(mut self) -> anyhow::Result<Map<String, Value>> {
        if let Some((key, _)) = self.driver_info.iter().find(|(key, _)| is_secret(key)) {
            let text = format!(
                "--driver-info {key}: every user of this host can read arguments; use --driver-secret {key}=FILE, or {} in the environment with --driver-secret {key}",
                variable(key)
            );
            return Err(coded(INVALID_OPTION, text));
        }
        for given in std::mem::take(&mut self.driver_secret) {
            self.driver_info.push(given_secret(&given, |name| std::env::var(name).ok())?);
        }
        let mut fields = Map::new();
        fields.insert("name".to_owned(), self.name.into());
        fields.insert("driver".to_owned(), self.driver.into());
        fields.insert("driver_info".to_owned(), Value::Object(self.driver_info.into_iter().collect()));
        fields.insert("properties".to_owned(), Value::Object(self.property.into_iter().collect()));
        fields.extend(self.interface.into_iter().map(|(kind, name)| (kind.field(), name.into())));
        fields.extend(self.automated_clean.map(|is| ("automated_clean".to_owned(), json!(is))));
        Ok(fields)
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.ends_with(SECRET_END) || SECRET.iter().any(|word| key.contains(word))
}

fn variable(key: &str) -> String {
    format!("{VARIABLE}{}", key.to_ascii_uppercase())
}

/// A key and its secret, from the file that is named with it, from the environment, or from the terminal.
fn given_secret(
    given: &str,
    environment: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<(String, Value)> {
    let (key, file) = given.split_once('=').map_or((given, None), |(key, file)| (key, Some(Path::new(file))));
    let found = if file.is_none() { environment(&variable(key)) } else { None };
    let value = found.map_or_else(|| secret::read(file, key), Ok)?;
    Ok((key.to_owned(), Value::from(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn create(arguments: &[&str]) -> anyhow::Result<Map<String, Value>> {
        #[derive(clap::Parser)]
        struct Line {
            #[command(flatten)]
            create: Create,
        }
        let own = ["", "n1", "--mac", "52:54:00:00:00:01", "--driver", "ipmi"];
        let line = <Line as clap::Parser>::try_parse_from([&own, arguments].concat())?;
        line.create.into_fields()
    }

    #[test]
    fn n25_secrets_are_no_arguments() {
        for key in ["ipmi_password", "redfish_password", "ipmi_hex_kg_key", "snmp_auth_key", "deploy_Token"] {
            let refused = create(&["--driver-info", &format!("{key}=hunter2")]).unwrap_err().to_string();
            assert!(refused.contains(&format!("--driver-secret {key}")), "{refused}");
            assert!(!refused.contains("hunter2"), "{refused}");
        }
        assert!(create(&["--driver-info", "deploy_kernel=/k"]).is_ok());
    }

    #[test]
    fn n25_secrets_come_from_files_and_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bmc");
        std::fs::write(&file, "hunter2\n").unwrap();
        let fields = create(&["--driver-secret", &format!("ipmi_password={}", file.display())]).unwrap();
        assert_eq!(fields["driver_info"], json!({"ipmi_password": "hunter2"}));
        let environment = |name: &str| (name == "FARRIER_IPMI_PASSWORD").then(|| "oats".to_owned());
        let given = given_secret("ipmi_password", environment).unwrap();
        assert_eq!(given, ("ipmi_password".to_owned(), json!("oats")));
        let missing = create(&["--driver-secret", "ipmi_password=/nonexistent"]).unwrap_err().to_string();
        assert!(missing.contains("/nonexistent cannot be read"), "{missing}");
    }

    #[test]
    fn driver_info_is_text_and_properties_may_be_json() {
        assert_eq!(key_text("qemu_cpus=2").unwrap(), ("qemu_cpus".into(), json!("2")));
        assert_eq!(key_text("a=b=c").unwrap(), ("a".into(), json!("b=c")));
        assert_eq!(key_json("memory_mb=512").unwrap().1, json!(512));
        assert_eq!(key_json(r#"root_device={"serial": "R"}"#).unwrap().1, json!({"serial": "R"}));
        assert_eq!(key_json("capabilities=boot_mode:uefi").unwrap().1, json!("boot_mode:uefi"));
        assert!(key_text("=x").is_err());
        assert_eq!(kind_name("boot=ipxe").unwrap(), (InterfaceKind::Boot, "ipxe".to_owned()));
        assert!(kind_name("sound=x").unwrap_err().contains("power, raid"));
        assert!(key_json("x").is_err());
    }
}
