//! Kernels straight from their Debian packages (deb(5)), of which distributions need one or several.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::BuildError;

const MAGIC: &[u8] = b"!<arch>\n";
const HEADER: usize = 60;

/// Unpacked kernel packages; they go away with this.
#[derive(Debug)]
pub struct KernelPackage {
    /// The kernel's file.
    pub kernel: PathBuf,
    /// Its modules, a folder named after the kernel's release.
    pub modules: PathBuf,
    _folder: TempDir,
}

impl KernelPackage {
    /// Unpacks packages into a temporary folder.
    ///
    /// # Errors
    ///
    /// [`BuildError::Package`] for a file that is no package, and when they hold no kernel with modules.
    pub fn unpack(packages: &[PathBuf]) -> Result<Self, BuildError> {
        let folder = TempDir::new().map_err(BuildError::writing(&std::env::temp_dir()))?;
        for package in packages {
            unpack(package, folder.path())
                .map_err(|error| BuildError::Package { path: package.clone(), reason: error.to_string() })?;
        }
        let missing = |what: &str| BuildError::Package {
            path: packages.first().cloned().unwrap_or_default(),
            reason: format!("there is no {what} in it; give all packages of the kernel"),
        };
        let kernel =
            entry(&folder.path().join("boot"), "vmlinuz-").ok_or_else(|| missing("boot/vmlinuz-*"))?;
        let modules = ["lib/modules", "usr/lib/modules"].map(|path| entry(&folder.path().join(path), ""));
        let modules = modules.into_iter().flatten().next().ok_or_else(|| missing("lib/modules/*"))?;
        Ok(Self { kernel, modules, _folder: folder })
    }
}

/// The first entry of a folder whose name starts with `prefix`.
fn entry(folder: &Path, prefix: &str) -> Option<PathBuf> {
    let mut paths: Vec<_> = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
        .into_iter()
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix)))
}

/// Unpacks the files of one package.
fn unpack(package: &Path, folder: &Path) -> io::Result<()> {
    let broken = |reason| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut file = File::open(package)?;
    let mut magic = [0; MAGIC.len()];
    file.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err(broken("it is no Debian package"));
    }
    loop {
        let mut header = [0; HEADER];
        file.read_exact(&mut header).map_err(|_| broken("it has no data.tar"))?;
        let header = String::from_utf8_lossy(&header).into_owned();
        let name = header.get(..16).unwrap_or_default().trim_end().trim_end_matches('/').to_owned();
        let size: u64 = header
            .get(48..58)
            .and_then(|size| size.trim().parse().ok())
            .ok_or_else(|| broken("it is damaged"))?;
        // Members begin at even places.
        let mut member = (&mut file).take(size + size % 2);
        let Some(compression) = name.strip_prefix("data.tar") else {
            io::copy(&mut member, &mut io::sink())?;
            continue;
        };
        let member = member.take(size);
        let content: Box<dyn Read> = match compression {
            "" => Box::new(member),
            ".gz" => Box::new(flate2::read::GzDecoder::new(member)),
            ".xz" => Box::new(liblzma::read::XzDecoder::new(member)),
            ".zst" => Box::new(zstd::Decoder::new(member)?),
            _ => return Err(broken("its compression is not known")),
        };
        let mut archive = tar::Archive::new(content);
        archive.set_preserve_mtime(false);
        return archive.unpack(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package with a file of each path.
    fn package(folder: &Path, name: &str, paths: &[&str]) -> PathBuf {
        let mut tar = tar::Builder::new(zstd::Encoder::new(Vec::new(), 1).unwrap());
        for path in paths {
            let mut header = tar::Header::new_gnu();
            header.set_size(3);
            header.set_mode(0o644);
            tar.append_data(&mut header, path, &b"abc"[..]).unwrap();
        }
        let data = tar.into_inner().unwrap().finish().unwrap();
        let mut deb = MAGIC.to_vec();
        for (name, content) in [("debian-binary", &b"2.0"[..]), ("data.tar.zst", &data)] {
            deb.extend(format!("{name:<16}{:<32}{:<10}`\n", "0", content.len()).bytes());
            deb.extend(content);
            deb.resize(deb.len().next_multiple_of(2), b'\n');
        }
        let file = folder.join(name);
        fs::write(&file, deb).unwrap();
        file
    }

    #[test]
    fn kernel_and_modules_may_come_in_two_packages() {
        let folder = tempfile::tempdir().unwrap();
        let image = package(folder.path(), "image.deb", &["./boot/vmlinuz-6.8", "./boot/config-6.8"]);
        let modules = package(folder.path(), "modules.deb", &["./lib/modules/6.8/kernel/a.ko"]);
        let unpacked = KernelPackage::unpack(&[image.clone(), modules]).unwrap();
        assert_eq!(fs::read(&unpacked.kernel).unwrap(), b"abc");
        assert!(
            unpacked.modules.ends_with("lib/modules/6.8") && unpacked.modules.join("kernel/a.ko").is_file()
        );

        let text = KernelPackage::unpack(&[image]).unwrap_err().to_string();
        assert!(text.contains("image.deb") && text.contains("no lib/modules/*"), "{text}");
        let other = folder.path().join("other.deb");
        fs::write(&other, "no package at all").unwrap();
        let text = KernelPackage::unpack(&[other]).unwrap_err().to_string();
        assert!(text.contains("other.deb") && text.contains("no Debian package"), "{text}");
    }
}
