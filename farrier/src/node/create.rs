//! `farrier node create`.

use clap::Args;
use farrier_conductor::model::{InterfaceKind, MacAddress};
use serde_json::{Map, Value, json};

/// Options of `farrier node create`.
#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Unique name.
    name: String,
    /// Hardware address of a network card; the machine boots from the first one given.
    #[arg(long, required = true)]
    pub(super) mac: Vec<MacAddress>,
    /// Hardware type of the machine, for example qemu.
    #[arg(long)]
    driver: String,
    /// Interface to use in place of the hardware type's first, for example boot=ipxe.
    #[arg(long, value_name = "KIND=NAME", value_parser = kind_name)]
    interface: Vec<(InterfaceKind, String)>,
    /// How the driver reaches the machine and what it boots, for example
    /// deploy_kernel=/srv/vmlinuz deploy_ramdisk=/srv/initramfs.img qemu_disks=/srv/disk.img.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_text)]
    driver_info: Vec<(String, Value)>,
    /// Hardware properties, for example root_device='{"serial": "ROOT1"}'. A value that is JSON is
    /// taken as such, anything else as text.
    #[arg(long, value_name = "KEY=VALUE", num_args = 1.., value_parser = key_json)]
    property: Vec<(String, Value)>,
    /// Whether the machine is cleaned before it becomes available [default: as the conductor has it].
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
    pub(super) fn into_fields(self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("name".to_owned(), self.name.into());
        fields.insert("driver".to_owned(), self.driver.into());
        fields.insert("driver_info".to_owned(), Value::Object(self.driver_info.into_iter().collect()));
        fields.insert("properties".to_owned(), Value::Object(self.property.into_iter().collect()));
        fields.extend(self.interface.into_iter().map(|(kind, name)| (kind.field(), name.into())));
        fields.extend(self.automated_clean.map(|is| ("automated_clean".to_owned(), json!(is))));
        fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
