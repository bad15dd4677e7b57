//! What a Debian package says about itself in its documentation, wherever it is unpacked.

use std::io::Read;
use std::path::Path;

use crate::manifest::{FileRecord, PackedFile};

/// Describes a file of a package for the manifest.
pub fn describe(root: &Path, package: &str, path: &str, content: &[u8]) -> PackedFile {
    let documentation = root.join("usr/share/doc").join(package);
    let copyright = std::fs::read_to_string(documentation.join("copyright")).unwrap_or_default();
    PackedFile {
        path: path.to_owned(),
        package: package.to_owned(),
        version: version(&documentation),
        license: license(&copyright),
        file: FileRecord::of(content),
    }
}

/// Version in the first line of the change log, `package (version) …`.
fn version(documentation: &Path) -> Option<String> {
    let names = ["changelog.Debian.gz", "changelog.gz"];
    let file = names.iter().find_map(|name| std::fs::File::open(documentation.join(name)).ok())?;
    let mut start = [0; 512];
    let length = flate2::read::GzDecoder::new(file).read(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start[..length]).into_owned();
    let (_, rest) = text.lines().next()?.split_once('(')?;
    Some(rest.split_once(')')?.0.to_owned())
}

/// Licence of most of the package: that of `Files: *` in a copyright file in the machine-readable form.
fn license(copyright: &str) -> Option<String> {
    let mut paragraphs = copyright.split("\n\n");
    let general = paragraphs.find(|paragraph| paragraph.lines().any(|line| line.trim_end() == "Files: *"))?;
    general.lines().find_map(|line| line.strip_prefix("License:")).map(|license| license.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn version_and_licence_are_read_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let nothing = describe(folder.path(), "shim-signed", "usr/lib/shim", b"x");
        assert_eq!((nothing.version, nothing.license), (None, None));
        let documentation = folder.path().join("usr/share/doc/shim-signed");
        std::fs::create_dir_all(&documentation).unwrap();
        let copyright = "Format: https://x\n\nFiles: debian/*\nLicense: other\n\nFiles: *\nCopyright: me\n\
                         License: BSD-2-Clause\n Text\n";
        std::fs::write(documentation.join("copyright"), copyright).unwrap();
        let file = std::fs::File::create(documentation.join("changelog.Debian.gz")).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        encoder.write_all(b"shim-signed (1.51+16.1) bookworm; urgency=low\n\n  * x\n").unwrap();
        encoder.finish().unwrap();
        let known = describe(folder.path(), "shim-signed", "usr/lib/shim", b"x");
        assert_eq!(known.version.as_deref(), Some("1.51+16.1"));
        assert_eq!(known.license.as_deref(), Some("BSD-2-Clause"));
    }
}
