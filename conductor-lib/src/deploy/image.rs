//! The image of a deployment, from `instance_info` to `image_info` (contract 1.9, 5.4 and 5.5).

use super::layout::Layout;
use crate::error::Error;
use crate::model::{BootMode, DriverInternalInfo, InstanceInfo};
use farrier_protocol::image_info::ImageInfo;
use url::Url;
use uuid::Uuid;

/// The image of a deployment: of a whole disk, or of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    url: String,
    id: String,
    algorithm: &'static str,
    digest: String,
    disk_format: String,
    layout: Option<Layout>,
}

impl Image {
    /// Reads `image_source`, `image_checksum` (or `image_os_hash_algo` with `image_os_hash_value`),
    /// `image_disk_format`, and the [`Layout`] around a partition image.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`], naming the field.
    pub fn from_instance_info(info: &InstanceInfo) -> Result<Self, Error> {
        let source = info
            .text("image_source")?
            .ok_or_else(|| Error::invalid("image_source", "is missing; give the URL of an image"))?;
        let id = image_id(source)?;
        let (algorithm, digest) = digest_of(info)?;
        Ok(Self {
            url: source.to_owned(),
            id,
            algorithm,
            digest,
            disk_format: info.text("image_disk_format")?.unwrap_or("raw").to_owned(),
            layout: Layout::read(info)?,
        })
    }

    /// The partitions around it; nothing for an image of a whole disk.
    pub fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// Refuses to keep what the layout would take the place of.
    ///
    /// # Errors
    ///
    /// As [`Layout::check_preserved`].
    pub fn check_preserved(&self, notes: &DriverInternalInfo) -> Result<(), Error> {
        self.layout.as_ref().map_or(Ok(()), |layout| layout.check_preserved(notes))
    }

    /// The arguments of the agent for the write, with the config drive as base64 of gzip.
    pub fn info(&self, node_uuid: Uuid, boot_mode: BootMode, config_drive: Option<&str>) -> ImageInfo {
        let mut info = ImageInfo {
            id: self.id.clone(),
            urls: vec![self.url.clone()],
            os_hash_algo: Some(self.algorithm.to_owned()),
            os_hash_value: Some(self.digest.clone()),
            disk_format: Some(self.disk_format.clone()),
            stream_raw_images: true,
            configdrive: config_drive.map(str::to_owned),
            node_uuid: Some(node_uuid.to_string()),
            ..ImageInfo::default()
        };
        if let Some(layout) = &self.layout {
            layout.tell(&mut info);
            info.deploy_boot_mode = Some(boot_mode.as_str().to_owned());
        }
        info
    }
}

/// The last component of the path, reduced to what is safe in a file name (contract 13.12).
fn image_id(source: &str) -> Result<String, Error> {
    let invalid = |reason: String| Error::invalid("image_source", reason);
    let url = Url::parse(source).map_err(|error| invalid(format!("{source:?} is not a URL: {error}")))?;
    if !["http", "https"].contains(&url.scheme()) || source.chars().any(char::is_control) {
        return Err(invalid(format!("{source:?} must be an http or https URL that the machine can reach")));
    }
    let name = url.path().rsplit('/').next().unwrap_or_default();
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' };
    let id: String = name.chars().map(safe).collect();
    Ok(if id.trim_matches('.').is_empty() { "image".to_owned() } else { id })
}

fn digest_of(info: &InstanceInfo) -> Result<(&'static str, String), Error> {
    let pair = (info.text("image_os_hash_algo")?, info.text("image_os_hash_value")?);
    let (field, algorithm, digest) = match (pair, info.text("image_checksum")?) {
        ((Some(algorithm), Some(digest)), _) => ("image_os_hash_value", Some(algorithm), digest),
        ((None, None), Some(checksum)) => match checksum.split_once(':') {
            Some((algorithm, digest)) => ("image_checksum", Some(algorithm), digest),
            None => ("image_checksum", None, checksum),
        },
        ((None, None), None) => {
            return Err(Error::invalid("image_checksum", "is missing; give the image's sha256 or sha512"));
        }
        _ => return Err(Error::invalid("image_os_hash_algo", "goes only together with image_os_hash_value")),
    };
    let digest = digest.to_ascii_lowercase();
    let found = match digest.len() {
        _ if !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) => None,
        64 => Some("sha256"),
        128 => Some("sha512"),
        _ => None,
    };
    match found {
        Some(found) if algorithm.is_none_or(|named| named.eq_ignore_ascii_case(found)) => Ok((found, digest)),
        _ => Err(Error::invalid(field, "must be sha256:HEX or sha512:HEX, or plain hex of 64 or 128 digits")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(mut change: Value) -> Result<Image, Error> {
        let mut info =
            json!({"image_source": "http://192.0.2.5/debian.raw", "image_checksum": "a".repeat(64)});
        info.as_object_mut().unwrap().append(change.as_object_mut().unwrap());
        Image::from_instance_info(&serde_json::from_value(info).unwrap())
    }

    #[test]
    fn the_agent_gets_what_its_own_validation_accepts() {
        let image = read(json!({})).unwrap();
        let value = serde_json::to_value(image.info(Uuid::nil(), BootMode::Uefi, Some("H4sI"))).unwrap();
        assert!(ImageInfo::from_params(&value).is_ok());
        assert_eq!(value["id"], "debian.raw");
        assert_eq!(value["urls"], json!(["http://192.0.2.5/debian.raw"]));
        assert_eq!(value["os_hash_algo"], "sha256");
        assert_eq!(value["disk_format"], "raw");
        assert_eq!(value["stream_raw_images"], true);
        assert_eq!(value["configdrive"], "H4sI");
        assert_eq!(value["image_type"], Value::Null);
    }

    #[test]
    fn a_partition_image_goes_with_its_layout_and_the_boot_mode() {
        let image =
            read(json!({"image_type": "partition", "root_gb": 2, "image_disk_format": "qcow2"})).unwrap();
        let info = image.info(Uuid::nil(), BootMode::Bios, None);
        assert!(ImageInfo::from_params(&serde_json::to_value(&info).unwrap()).unwrap().is_partition());
        assert_eq!((info.root_mb, info.disk_format.as_deref()), (Some(2048), Some("qcow2")));
        assert_eq!(info.deploy_boot_mode.as_deref(), Some("bios"));
    }

    #[test]
    fn s18_digests() {
        let (short, long) = ("0123456789abcdef".repeat(4), "0123456789ABCDEF".repeat(8));
        for (change, expected) in [
            (json!({"image_checksum": short}), Some("sha256")),
            (json!({"image_checksum": long}), Some("sha512")),
            (json!({"image_checksum": format!("SHA256:{short}")}), Some("sha256")),
            (json!({"image_checksum": format!("sha512:{short}")}), None),
            (json!({"image_checksum": "d41d8cd98f00b204e9800998ecf8427e"}), None),
            (json!({"image_checksum": format!("md5:{short}")}), None),
            (json!({"image_checksum": "g".repeat(64)}), None),
            (json!({"image_checksum": null}), None),
            (json!({"image_checksum": 5}), None),
            (json!({"image_os_hash_algo": "sha512", "image_os_hash_value": long}), Some("sha512")),
            (json!({"image_os_hash_algo": "sha512"}), None),
        ] {
            assert_eq!(read(change.clone()).ok().map(|image| image.algorithm), expected, "{change}");
        }
    }

    #[test]
    fn sources_are_urls_and_their_names_are_tame() {
        for (source, id) in [
            ("https://h/a/b.raw?token=x#y", Some("b.raw")),
            ("http://h/", Some("image")),
            ("http://h/a%2Fb c", Some("a_2Fb_20c")),
            ("http://h/..", Some("image")),
            ("file:///etc/passwd", None),
            ("/tmp/x.raw", None),
            ("http://h/a\nb", None),
            ("", None),
        ] {
            let image = read(json!({"image_source": source}));
            assert_eq!(image.ok().map(|image| image.id).as_deref(), id, "{source:?}");
        }
    }
}
