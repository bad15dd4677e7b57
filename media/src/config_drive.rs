//! Config drives: ISO 9660 images with the label `config-2`, sent as base64 of gzip (contract 11.7).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use hadris_iso::joliet::JolietLevel;
use hadris_iso::read::PathSeparator;
use hadris_iso::rrip::RripOptions;
use hadris_iso::write::options::{CreationFeatures, IsoFormatOptions};
use hadris_iso::write::{InputEntry, InputEntryKind, InputTree, IsoImageWriter};
use serde_json::{Map, Value};
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};

/// Largest config drive, in bytes of the image itself.
pub const SIZE_LIMIT: u64 = 64 << 20;

const LABEL: &str = "config-2";

/// A config drive could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConfigDriveError {
    /// A file or folder could not be read.
    #[error("config drive {path}: {source}; check that it exists and is readable")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder could not be turned into an image.
    #[error(
        "config drive {path}: no ISO 9660 image can be made of it: {reason}; use plain files and folders"
    )]
    Build {
        /// The folder.
        path: PathBuf,
        /// What the writer said.
        reason: String,
    },
    /// A file is none of the known forms.
    #[error(
        "config drive {path} is neither a folder, an ISO 9660 or FAT image, nor base64 of a gzip of one; \
         give the folder that holds openstack/latest/"
    )]
    Unknown {
        /// The file.
        path: PathBuf,
    },
    /// A part of a new drive is unusable.
    #[error("config drive {part}: {reason}")]
    Part {
        /// The part.
        part: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The image is too large for the partition that it goes to.
    #[error("config drive {path} is larger than {} MiB; leave large files out", SIZE_LIMIT >> 20)]
    TooLarge {
        /// The file or folder.
        path: PathBuf,
    },
}

/// The config drive at `path` as agents take it: base64 of a gzip of an ISO 9660 or FAT image. A
/// folder becomes an image, an image is packed, and text that is packed already is only checked.
///
/// # Errors
///
/// [`ConfigDriveError`], naming the path.
pub fn pack(path: &Path) -> Result<String, ConfigDriveError> {
    let read = |source| ConfigDriveError::Read { path: path.to_owned(), source };
    let kind = std::fs::metadata(path).map_err(read)?;
    if kind.is_dir() {
        return encode(path, &build(path)?);
    }
    // Base64 is a third longer than what it encodes, so no usable file is larger than this.
    if kind.len() > SIZE_LIMIT * 2 {
        return Err(ConfigDriveError::TooLarge { path: path.to_owned() });
    }
    let content = std::fs::read(path).map_err(read)?;
    if is_image(&content) {
        return encode(path, &content);
    }
    check_packed(path, &content)
}

/// Makes a config drive of its parts: the objects `meta_data`, `network_data` and `vendor_data`, and `user_data`, which
/// may be a text, an object or a list. What is not given is empty, and network data then not there.
///
/// # Errors
///
/// [`ConfigDriveError::Part`] for a part that is unknown or of another kind, [`ConfigDriveError::TooLarge`].
pub fn make(parts: &Map<String, Value>) -> Result<String, ConfigDriveError> {
    let refuse = |part: &str, reason: &str| {
        Err(ConfigDriveError::Part { part: part.to_owned(), reason: reason.to_owned() })
    };
    let mut latest = Vec::new();
    for (part, value) in parts {
        latest.push(match (part.as_str(), value) {
            (_, Value::Null) => continue,
            ("user_data", Value::String(text)) => InputEntry::file("user_data", text.as_bytes()),
            ("user_data", Value::Object(_) | Value::Array(_)) => {
                InputEntry::file("user_data", value.to_string())
            }
            ("user_data", _) => return refuse(part, "must be a text, an object or a list"),
            ("meta_data" | "network_data" | "vendor_data", Value::Object(_)) => {
                InputEntry::file(format!("{part}.json"), value.to_string())
            }
            ("meta_data" | "network_data" | "vendor_data", _) => return refuse(part, "must be an object"),
            _ => return refuse(part, "is no part; use meta_data, network_data, user_data and vendor_data"),
        });
    }
    if !parts.get("meta_data").is_some_and(Value::is_object) {
        latest.push(InputEntry::file("meta_data.json", "{}"));
    }
    let latest = InputEntry::directory("latest", latest);
    let entries = vec![InputEntry::directory("openstack", vec![latest])];
    let place = Path::new("openstack/latest");
    encode(place, &write(place, InputTree { path_separator: PathSeparator::ForwardSlash, entries })?)
}

fn build(folder: &Path) -> Result<Vec<u8>, ConfigDriveError> {
    let failed = |reason: String| ConfigDriveError::Build { path: folder.to_owned(), reason };
    let tree =
        InputTree::from_fs(folder, PathSeparator::ForwardSlash).map_err(|error| failed(error.to_string()))?;
    write(folder, tree)
}

fn write(folder: &Path, tree: InputTree) -> Result<Vec<u8>, ConfigDriveError> {
    let failed = |reason: String| ConfigDriveError::Build { path: folder.to_owned(), reason };
    if size_of(&tree.entries) > SIZE_LIMIT {
        return Err(ConfigDriveError::TooLarge { path: folder.to_owned() });
    }
    let image = IsoImageWriter::create(Cursor::new(Vec::new()), tree, format_options(LABEL));
    Ok(image.map_err(|error| failed(error.to_string()))?.into_inner())
}

/// ISO 9660 with the long names of Joliet and Rock Ridge.
pub(crate) fn format_options(label: &str) -> IsoFormatOptions {
    IsoFormatOptions {
        volume_name: label.to_owned(),
        system_id: None,
        volume_set_id: None,
        publisher_id: None,
        preparer_id: None,
        application_id: None,
        sector_size: 2048,
        path_separator: PathSeparator::ForwardSlash,
        strict_charset: false,
        features: CreationFeatures {
            joliet: Some(JolietLevel::Level3),
            rock_ridge: Some(RripOptions::default()),
            ..CreationFeatures::rock_ridge()
        },
    }
}

fn size_of(entries: &[InputEntry]) -> u64 {
    let size = |entry: &InputEntry| match &entry.kind {
        InputEntryKind::File(content) => content.len() as u64,
        InputEntryKind::Directory(children) => size_of(children),
        _ => 0,
    };
    entries.iter().map(size).sum()
}

fn is_image(content: &[u8]) -> bool {
    let iso = content.get(32769..32774) == Some(b"CD001");
    let fat = content.get(510..512) == Some(&[0x55, 0xaa])
        && (content.get(54..57) == Some(b"FAT") || content.get(82..85) == Some(b"FAT"));
    iso || fat
}

fn encode(path: &Path, image: &[u8]) -> Result<String, ConfigDriveError> {
    if image.len() as u64 > SIZE_LIMIT {
        return Err(ConfigDriveError::TooLarge { path: path.to_owned() });
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(image).expect("memory takes what is written");
    Ok(STANDARD.encode(gzip.finish().expect("memory takes what is written")))
}

fn check_packed(path: &Path, content: &[u8]) -> Result<String, ConfigDriveError> {
    let unknown = |_| ConfigDriveError::Unknown { path: path.to_owned() };
    let text: String = std::str::from_utf8(content).map_err(unknown)?.split_whitespace().collect();
    unpack(path, &text).map(|_| text)
}

/// The image in a config drive as agents take it, which errors call `path`.
///
/// # Errors
///
/// [`ConfigDriveError::Unknown`], [`ConfigDriveError::TooLarge`].
pub fn unpack(path: &Path, text: &str) -> Result<Vec<u8>, ConfigDriveError> {
    let unknown = || ConfigDriveError::Unknown { path: path.to_owned() };
    let text: String = text.split_whitespace().collect();
    let gzip = STANDARD.decode(&text).map_err(|_| unknown())?;
    let mut image = Vec::new();
    // One byte more than allowed tells a large image without unpacking all of it.
    GzDecoder::new(&gzip[..]).take(SIZE_LIMIT + 1).read_to_end(&mut image).map_err(|_| unknown())?;
    match image.len() as u64 {
        length if length > SIZE_LIMIT => Err(ConfigDriveError::TooLarge { path: path.to_owned() }),
        _ if is_image(&image) => Ok(image),
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hadris_iso::read::IsoImage;
    use serde_json::json;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let latest = folder.path().join("openstack/latest");
        std::fs::create_dir_all(&latest).unwrap();
        std::fs::write(latest.join("meta_data.json"), r#"{"hostname": "demo"}"#).unwrap();
        std::fs::write(latest.join("user_data"), "#cloud-config\n").unwrap();
        folder
    }

    fn unpack(packed: &str) -> Vec<u8> {
        super::unpack(Path::new("x"), packed).unwrap()
    }

    #[test]
    fn a_folder_becomes_an_iso_with_label_and_long_names() {
        let folder = folder();
        let image = unpack(&pack(folder.path()).unwrap());
        assert_eq!(&image[32769..32774], b"CD001");
        assert_eq!(&image[32808..32840], b"config-2                        ");
        assert_eq!(image.len() % 2048, 0);
        let iso = IsoImage::open(Cursor::new(image)).unwrap();
        let names: Vec<_> = iso.root_dir().iter(&iso).entries().map(|entry| entry.unwrap()).collect();
        assert!(names.iter().any(|entry| entry.matches_name("openstack")));
    }

    #[test]
    fn a_drive_is_made_of_its_parts() {
        let parts = json!({
            "meta_data": {"hostname": "demo"}, "user_data": "#cloud-config\n", "vendor_data": {"a": 1}, "network_data": null,
        });
        let packed = make(parts.as_object().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("drive");
        std::fs::write(&file, &packed).unwrap();
        assert_eq!(pack(&file).unwrap(), packed);
        let image = unpack(&packed);
        let holds = |text: &str| image.windows(text.len()).any(|window| window == text.as_bytes());
        assert!(holds(r#"{"hostname":"demo"}"#) && holds("#cloud-config\n") && holds(r#"{"a":1}"#));
        let iso = IsoImage::open(Cursor::new(image)).unwrap();
        let names: Vec<_> = iso.root_dir().iter(&iso).entries().map(|entry| entry.unwrap()).collect();
        assert!(names.iter().any(|entry| entry.matches_name("openstack")));
        for (parts, part) in [
            (json!({"meta_data": "x"}), "meta_data: must be an object"),
            (json!({"user_data": 1}), "user_data: must be"),
            (json!({"more": {}}), "more: is no part"),
        ] {
            let error = make(parts.as_object().unwrap()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn images_are_packed_and_packed_text_passes() {
        let folder = folder();
        let packed = pack(folder.path()).unwrap();
        let iso = folder.path().join("drive.iso");
        std::fs::write(&iso, unpack(&packed)).unwrap();
        assert_eq!(unpack(&pack(&iso).unwrap()), unpack(&packed));
        let text = folder.path().join("drive.txt");
        std::fs::write(&text, format!("{}\n{}\n", &packed[..80], &packed[80..])).unwrap();
        assert_eq!(pack(&text).unwrap(), packed);
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("drive");
        for content in [&b"hello"[..], b"", b"H4sIAAAA", &[0; 40000], &STANDARD.encode(b"plain").into_bytes()]
        {
            std::fs::write(&file, content).unwrap();
            let error = pack(&file).unwrap_err().to_string();
            assert!(error.contains(&file.display().to_string()) && error.contains("neither"), "{error}");
        }
        let missing = pack(&folder.path().join("none")).unwrap_err();
        assert!(matches!(missing, ConfigDriveError::Read { .. }), "{missing}");
    }

    #[test]
    fn large_drives_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let bomb = encode(folder.path(), &vec![0; SIZE_LIMIT as usize]).unwrap();
        let file = folder.path().join("drive");
        std::fs::write(&file, bomb).unwrap();
        assert!(matches!(pack(&file), Err(ConfigDriveError::Unknown { .. })));
        let large = std::fs::File::create(folder.path().join("large")).unwrap();
        large.set_len(SIZE_LIMIT + 1).unwrap();
        assert!(matches!(pack(folder.path()), Err(ConfigDriveError::TooLarge { .. })));
    }
}
