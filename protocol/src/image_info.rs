//! What to write: the `image_info` of `prepare_image` (section 5.1).

use crate::error::{CommandError, ErrorKind};
use crate::lookup::MASKED;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// The image to write. Keys that this version does not use are ignored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ImageInfo {
    /// Last component of the image source; a name, never a path.
    pub id: String,
    /// Where to get it, tried in order.
    pub urls: Vec<String>,
    /// Hexadecimal digest whose length decides the algorithm, or the URL of a checksum file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
    /// Name of the digest algorithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_hash_algo: Option<String>,
    /// Hexadecimal digest by that algorithm, or the URL of a checksum file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os_hash_value: Option<String>,
    /// Declared format: `raw`, `gpt` or `qcow2`; `unknown` and nothing mean undeclared. Images that are
    /// declared `raw` or `gpt` are never unpacked.
    #[serde(default)]
    pub disk_format: Option<String>,
    /// Whether the conductor allows streaming; Farrier always streams.
    #[serde(default)]
    pub stream_raw_images: bool,
    /// `partition` for partition images; anything else is a whole disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_type: Option<String>,
    /// Size of the root partition in MiB; partition images need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_mb: Option<u64>,
    /// Size of the swap partition in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap_mb: Option<u64>,
    /// Size of the ephemeral partition in MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_mb: Option<u64>,
    /// File system of the ephemeral partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ephemeral_format: Option<String>,
    /// Whether the ephemeral partition of an earlier deployment stays.
    #[serde(default)]
    pub preserve_ephemeral: bool,
    /// Firmware mode of the deployed system; only shapes the result text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploy_boot_mode: Option<String>,
    /// Config drive of old conductors; the separate argument goes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configdrive: Option<String>,
    /// Proxies by the scheme of the URL, `http` or `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxies: Option<BTreeMap<String, Secret>>,
    /// Hosts that are reached without a proxy, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_proxy: Option<String>,
    /// `http_basic` when the image server wants user and password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_server_auth_strategy: Option<String>,
    /// User at the image server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_server_user: Option<String>,
    /// Password at the image server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_server_password: Option<Secret>,
    /// Base64 of a complete `Authorization` header value; goes before user and password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_request_authorization: Option<Secret>,
    /// Node the image is for; appears in logs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_uuid: Option<String>,
}

/// A text that no log and no error may show (S48).
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASKED)
    }
}

impl ImageInfo {
    /// Whether it has credentials for the image server.
    pub fn has_credentials(&self) -> bool {
        self.image_server_auth_strategy.is_some()
            || self.image_server_user.is_some()
            || self.image_server_password.is_some()
            || self.image_request_authorization.is_some()
    }

    /// Reads and validates an `image_info` object (section 5.1).
    ///
    /// # Errors
    ///
    /// `InvalidCommandParamsError`, naming the field at fault.
    pub fn from_params(value: &Value) -> Result<Self, CommandError> {
        let object = value.as_object().ok_or_else(|| invalid("image_info must be an object"))?;
        require_text(object, "id")?;
        require_urls(object)?;
        for name in ["checksum", "os_hash_algo", "os_hash_value"] {
            if object.get(name).is_some_and(|field| !field.is_null()) {
                require_text(object, name)?;
            }
        }
        let info: Self = serde_json::from_value(value.clone())
            .map_err(|error| invalid(format!("image_info cannot be read: {error}")))?;
        info.validate()?;
        Ok(info)
    }

    /// Whether the image fills one partition and not a disk.
    pub fn is_partition(&self) -> bool {
        self.image_type.as_deref() == Some("partition")
    }

    fn validate(&self) -> Result<(), CommandError> {
        if self.is_partition() && self.root_mb.unwrap_or_default() == 0 {
            return Err(invalid("image_info.root_mb must be given for a partition image"));
        }
        if self.id.contains(['/', '\0']) || self.id == ".." || self.id == "." {
            return Err(invalid(format!("image_info.id {:?} must be a name, not a path", self.id)));
        }
        if self.os_hash_algo.is_some() != self.os_hash_value.is_some() {
            return Err(invalid(
                "image_info.os_hash_algo and image_info.os_hash_value must be given together",
            ));
        }
        if self.checksum.is_none() && self.os_hash_value.is_none() {
            return Err(invalid("image_info needs a checksum, or os_hash_algo with os_hash_value"));
        }
        Ok(())
    }
}

fn require_text(object: &Map<String, Value>, name: &str) -> Result<(), CommandError> {
    match object.get(name).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(()),
        _ => Err(invalid(format!("image_info.{name} must be a non-empty string"))),
    }
}

fn require_urls(object: &Map<String, Value>) -> Result<(), CommandError> {
    let urls = object.get("urls").and_then(Value::as_array);
    match urls {
        Some(urls) if !urls.is_empty() && urls.iter().all(Value::is_string) => Ok(()),
        _ => Err(invalid("image_info.urls must be a non-empty list of strings")),
    }
}

fn invalid(details: impl Into<String>) -> CommandError {
    CommandError::new(ErrorKind::InvalidCommandParamsError, details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn valid() -> Value {
        json!({
            "id": "image.raw",
            "urls": ["http://192.0.2.5/image.raw"],
            "os_hash_algo": "sha256",
            "os_hash_value": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "disk_format": "raw",
            "container_format": null,
            "stream_raw_images": true,
        })
    }

    #[test]
    fn the_conductors_object_is_accepted() {
        let info = ImageInfo::from_params(&valid()).unwrap();
        assert_eq!(info.id, "image.raw");
        assert!(info.stream_raw_images);
    }

    #[test]
    fn s48_secrets_travel_but_are_not_shown() {
        let mut value = valid();
        value["image_server_password"] = json!("hidden");
        value["image_request_authorization"] = json!("hidden");
        value["proxies"] = json!({"http": "http://ann:hidden@proxy"});
        let info = ImageInfo::from_params(&value).unwrap();
        assert!(!format!("{info:?}").contains("hidden"));
        let sent = serde_json::to_value(&info).unwrap();
        assert_eq!(sent["image_server_password"], "hidden");
    }

    #[test]
    fn f05_the_modern_pair_is_enough_and_so_is_the_legacy_field() {
        let mut value = valid();
        value["os_hash_algo"] = Value::Null;
        value["os_hash_value"] = Value::Null;
        value["checksum"] = json!("d41d8cd98f00b204e9800998ecf8427e");
        assert!(ImageInfo::from_params(&value).is_ok());
    }

    #[test]
    fn each_bad_field_is_named() {
        for (field, bad, named) in [
            ("id", json!(""), "image_info.id"),
            ("id", json!(7), "image_info.id"),
            ("id", json!("../etc/passwd"), "must be a name"),
            ("urls", json!([]), "image_info.urls"),
            ("urls", json!("http://x"), "image_info.urls"),
            ("urls", json!([1]), "image_info.urls"),
            ("os_hash_algo", json!(""), "image_info.os_hash_algo"),
            ("os_hash_algo", json!(null), "given together"),
            ("os_hash_value", json!(1), "image_info.os_hash_value"),
            ("checksum", json!(""), "image_info.checksum"),
        ] {
            let mut value = valid();
            value[field] = bad.clone();
            let error = ImageInfo::from_params(&value).unwrap_err();
            assert_eq!(error.kind, "InvalidCommandParamsError");
            assert!(error.details.contains(named), "{field}={bad}: {}", error.details);
        }
    }

    #[test]
    fn a_partition_image_needs_the_size_of_its_root() {
        for (root_mb, expected) in [(json!(null), false), (json!(0), false), (json!(40960), true)] {
            let mut value = valid();
            value["image_type"] = json!("partition");
            value["root_mb"] = root_mb.clone();
            assert_eq!(ImageInfo::from_params(&value).is_ok(), expected, "{root_mb}");
        }
    }

    #[test]
    fn some_checksum_is_required() {
        let mut value = valid();
        value.as_object_mut().unwrap().remove("os_hash_algo");
        value.as_object_mut().unwrap().remove("os_hash_value");
        assert!(ImageInfo::from_params(&value).unwrap_err().details.contains("checksum"));
    }
}
