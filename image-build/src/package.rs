//! Debian packages below the root of a system or of an unpacked tree: which of them owns a file, and what it says
//! about itself.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::BuildError;
use crate::manifest::{FileRecord, PackedFile};

/// dpkg's database below a root: `status` with the control fields of each package, `info/<package>.list` with
/// its files (dpkg(1), deb-control(5)).
const DATABASE: &str = "var/lib/dpkg";

/// Where programs and libraries lie, after [`merged`].
const FOLDERS: &[&str] = &["bin/", "sbin/", "lib"];

/// The packages below one root, by dpkg's database there.
#[derive(Debug)]
pub struct Packages {
    root: PathBuf,
    versions: HashMap<String, String>,
    owners: HashMap<String, String>,
}

impl Packages {
    /// Reads the database below `root`; without one, no file has an owner.
    ///
    /// # Errors
    ///
    /// [`BuildError::Read`].
    pub fn below(root: &Path) -> Result<Self, BuildError> {
        let mut packages = Self { root: root.to_owned(), versions: HashMap::new(), owners: HashMap::new() };
        let (status, lists) = (root.join(DATABASE).join("status"), root.join(DATABASE).join("info"));
        if status.exists() {
            packages.versions = versions(&fs::read_to_string(&status).map_err(BuildError::reading(&status))?);
            packages.read_lists(&lists)?;
        }
        Ok(packages)
    }

    fn read_lists(&mut self, folder: &Path) -> Result<(), BuildError> {
        for entry in fs::read_dir(folder).map_err(BuildError::reading(folder))? {
            let file = entry.map_err(BuildError::reading(folder))?.path();
            let Some(package) = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".list")) else {
                continue;
            };
            let text = fs::read(&file).map_err(BuildError::reading(&file))?;
            let paths = String::from_utf8_lossy(&text);
            let paths = paths.lines().map(merged);
            let paths = paths.filter(|path| FOLDERS.iter().any(|folder| path.starts_with(folder)));
            self.owners.extend(paths.map(|path| (path.to_owned(), package.to_owned())));
        }
        Ok(())
    }

    /// Describes a file below the root for the manifest, by the package that owns it: `source` is its path below
    /// the root, `path` that in the ramdisk.
    ///
    /// # Errors
    ///
    /// [`BuildError::Owner`] for a file of no package that is known here.
    pub fn describe(&self, source: &str, path: &str, file: FileRecord) -> Result<PackedFile, BuildError> {
        let owner = self.owners.get(merged(source));
        let version = owner.and_then(|owner| self.versions.get(owner));
        let (Some(owner), Some(version)) = (owner, version) else {
            return Err(BuildError::Owner { path: self.root.join(source), root: self.root.clone() });
        };
        let package = owner.split(':').next().unwrap_or(owner);
        Ok(PackedFile {
            path: path.to_owned(),
            package: package.to_owned(),
            version: Some(version.clone()),
            license: license(&documentation(&self.root, package)),
            file,
        })
    }
}

/// Versions in dpkg's `status` by the names of the lists: that of the package, with its architecture where
/// several may be installed.
fn versions(status: &str) -> HashMap<String, String> {
    let mut versions = HashMap::new();
    for paragraph in status.split("\n\n") {
        let field = |name| paragraph.lines().find_map(|line: &str| line.strip_prefix(name)).map(str::trim);
        if let (Some(package), Some(version)) = (field("Package:"), field("Version:")) {
            let architecture = field("Architecture:").unwrap_or_default();
            versions.insert(format!("{package}:{architecture}"), version.to_owned());
            versions.insert(package.to_owned(), version.to_owned());
        }
    }
    versions
}

/// A path below the root without the `usr` that systems with merged folders have and packages may not name.
fn merged(path: &str) -> &str {
    let path = path.trim_start_matches(['.', '/']);
    path.strip_prefix("usr/").unwrap_or(path)
}

/// Describes a file of a package that is unpacked below `root` for the manifest, by its documentation there.
pub fn describe(root: &Path, package: &str, path: &str, content: &[u8]) -> PackedFile {
    let documentation = documentation(root, package);
    PackedFile {
        path: path.to_owned(),
        package: package.to_owned(),
        version: version(&documentation),
        license: license(&documentation),
        file: FileRecord::of(content),
    }
}

fn documentation(root: &Path, package: &str) -> PathBuf {
    root.join("usr/share/doc").join(package)
}

/// Version in the first line of the change log, `package (version) …`.
fn version(documentation: &Path) -> Option<String> {
    let names = ["changelog.Debian.gz", "changelog.gz"];
    let file = names.iter().find_map(|name| fs::File::open(documentation.join(name)).ok())?;
    let mut start = [0; 512];
    let length = flate2::read::GzDecoder::new(file).read(&mut start).ok()?;
    let text = String::from_utf8_lossy(&start[..length]).into_owned();
    let (_, rest) = text.lines().next()?.split_once('(')?;
    Some(rest.split_once(')')?.0.to_owned())
}

/// Licence of most of the package: that of `Files: *` in a copyright file in the machine-readable form.
fn license(documentation: &Path) -> Option<String> {
    let copyright = fs::read_to_string(documentation.join("copyright")).ok()?;
    let mut paragraphs = copyright.split("\n\n");
    let general = paragraphs.find(|paragraph| paragraph.lines().any(|line| line.trim_end() == "Files: *"))?;
    general.lines().find_map(|line| line.strip_prefix("License:")).map(|license| license.trim().to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;
    use crate::output::write_file;

    /// dpkg's database below `root` with packages of one version and one file each.
    pub(crate) fn write_database(root: &Path, packages: &[(&str, &str, &str)]) {
        let mut status = String::new();
        for (package, version, path) in packages {
            let name = package.split(':').next().unwrap();
            status += &format!("Package: {name}\nArchitecture: amd64\nVersion: {version}\n\n");
            let list = root.join(DATABASE).join(format!("info/{package}.list"));
            write_file(&list, format!("/.\n/{path}\n").as_bytes()).unwrap();
        }
        write_file(&root.join(DATABASE).join("status"), status.as_bytes()).unwrap();
    }

    #[test]
    fn version_and_licence_are_read_where_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let nothing = describe(folder.path(), "shim-signed", "usr/lib/shim", b"x");
        assert_eq!((nothing.version, nothing.license), (None, None));
        let documentation = folder.path().join("usr/share/doc/shim-signed");
        fs::create_dir_all(&documentation).unwrap();
        let copyright = "Format: https://x\n\nFiles: debian/*\nLicense: other\n\nFiles: *\nCopyright: me\n\
                         License: BSD-2-Clause\n Text\n";
        fs::write(documentation.join("copyright"), copyright).unwrap();
        let file = fs::File::create(documentation.join("changelog.Debian.gz")).unwrap();
        let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        encoder.write_all(b"shim-signed (1.51+16.1) bookworm; urgency=low\n\n  * x\n").unwrap();
        encoder.finish().unwrap();
        let known = describe(folder.path(), "shim-signed", "usr/lib/shim", b"x");
        assert_eq!(known.version.as_deref(), Some("1.51+16.1"));
        assert_eq!(known.license.as_deref(), Some("BSD-2-Clause"));
    }

    #[test]
    fn x40_a_file_is_described_by_the_package_that_owns_it() {
        let folder = tempfile::tempdir().unwrap();
        let owned = [
            ("busybox", "1:1.35.0-4", "bin/busybox"),
            ("libc6:amd64", "2.36-9", "lib/x86_64-linux-gnu/libc.so.6"),
        ];
        write_database(folder.path(), &owned);
        let packages = Packages::below(folder.path()).unwrap();
        let described = |path: &str| packages.describe(path, "there", FileRecord::of(b"x"));
        for (path, package, version) in [
            ("usr/bin/busybox", "busybox", "1:1.35.0-4"),
            ("bin/busybox", "busybox", "1:1.35.0-4"),
            ("lib/x86_64-linux-gnu/libc.so.6", "libc6", "2.36-9"),
        ] {
            let file = described(path).unwrap();
            assert_eq!((&*file.package, file.version.as_deref()), (package, Some(version)), "{path}");
            assert_eq!(file.path, "there");
        }
        let error = described("sbin/mdadm").unwrap_err().to_string();
        assert!(error.contains("sbin/mdadm belongs to no package"), "{error}");
        let bare = Packages::below(&folder.path().join("var")).unwrap();
        assert!(bare.describe("bin/busybox", "there", FileRecord::of(b"x")).is_err());
    }
}
