//! Boot loaders that distributions package, by the names for firmware (section 6.4).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A loader of a distribution.
#[derive(Debug, Clone, Copy)]
pub struct Loader {
    /// The name by which machines load it.
    pub name: &'static str,
    /// Where Debian's package has it.
    pub file: &'static str,
    /// That package.
    pub package: &'static str,
    /// What it is.
    pub role: &'static str,
}

const fn loader(name: &'static str, file: &'static str, package: &'static str, role: &'static str) -> Loader {
    Loader { name, file, package, role }
}

/// Those that there are.
pub const LOADERS: &[Loader] = &[
    loader("pxelinux.0", "/usr/lib/PXELINUX/pxelinux.0", "pxelinux", "PXELINUX, for BIOS"),
    loader(
        "ldlinux.c32",
        "/usr/lib/syslinux/modules/bios/ldlinux.c32",
        "syslinux-common",
        "the other half of PXELINUX",
    ),
    loader(
        "bootx64.efi",
        "/usr/lib/shim/shimx64.efi.signed",
        "shim-signed",
        "shim, for UEFI: loads GRUB, under Secure Boot too",
    ),
    loader(
        "grubx64.efi",
        "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed",
        "grub-efi-amd64-signed",
        "GRUB, which shim asks for by this name",
    ),
    loader("bootaa64.efi", "/usr/lib/shim/shimaa64.efi.signed", "shim-signed:arm64", "shim for aarch64"),
    loader(
        "grubaa64.efi",
        "/usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed",
        "grub-efi-arm64-signed:arm64",
        "GRUB for aarch64",
    ),
    loader("undionly.kpxe", "/usr/lib/ipxe/undionly.kpxe", "ipxe", "iPXE for BIOS, by the card's own driver"),
    loader("snponly.efi", "/usr/lib/ipxe/snponly.efi", "ipxe", "iPXE for UEFI, by the firmware's driver"),
    loader("ipxe.efi", "/usr/lib/ipxe/ipxe.efi", "ipxe", "iPXE for UEFI, by its own drivers"),
    loader(
        "ipxe-arm64.efi",
        "/usr/lib/ipxe/ipxe-arm64.efi",
        "ipxe",
        "iPXE for UEFI on aarch64, from Debian 13 on",
    ),
    loader(
        "gcdx64.efi",
        "/usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed",
        "grub-efi-amd64-signed",
        "GRUB of virtual media",
    ),
    loader(
        "gcdaa64.efi",
        "/usr/lib/grub/arm64-efi-signed/gcdaa64.efi.signed",
        "grub-efi-arm64-signed:arm64",
        "GRUB of virtual media for aarch64",
    ),
    loader(
        "isolinux.bin",
        "/usr/lib/ISOLINUX/isolinux.bin",
        "isolinux",
        "ISOLINUX, of virtual media for BIOS",
    ),
    loader(
        "isohdpfx.bin",
        "/usr/lib/ISOLINUX/isohdpfx.bin",
        "isolinux",
        "the boot record by which ISOLINUX starts from a disk",
    ),
];

/// What every request of GRUB's module `http` has, and so a GRUB that can load by HTTP.
const HTTP_REQUEST: &[u8] = b" HTTP/1.1\r\n";

/// A loader is missing, or of no use.
#[derive(Debug, thiserror::Error)]
pub enum LoaderError {
    /// It cannot be read.
    #[error(
        "the boot loader {name} must be at {file}: {source}; install {package}, or name another by \
         --loader-file-paths {name}:FILE"
    )]
    Missing {
        /// The name by which machines load it.
        name: &'static str,
        /// The file.
        file: PathBuf,
        /// The package that has it.
        package: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// GRUB for machines that boot by HTTP is built without its module `http`.
    #[error(
        "GRUB for HTTP boot is {file}, which has no module http and would stop at its prompt; name one that has it by \
         --loader-file-paths {name}:FILE, or choose the boot interface http-ipxe, ipxe or pxe"
    )]
    NoHttp {
        /// The name by which machines load it.
        name: &'static str,
        /// The file.
        file: PathBuf,
    },
}

/// The loaders that machines get (`[pxe]loader_file_paths`).
#[derive(Debug, Clone, Default)]
pub struct Loaders {
    own: BTreeMap<String, PathBuf>,
}

impl Loaders {
    /// Those of the distribution, but for these: files of the operator's choice, by name.
    pub fn new(own: BTreeMap<String, PathBuf>) -> Self {
        Self { own }
    }

    /// The file of a loader; nothing for a name that is none. Slashes before it do not count.
    pub fn find(&self, name: &str) -> Option<&Path> {
        let name = name.trim_start_matches('/');
        let own = self.own.get(name).map(PathBuf::as_path);
        own.or_else(|| LOADERS.iter().find(|loader| loader.name == name).map(|loader| Path::new(loader.file)))
    }

    /// All of them, by the names that machines load them by.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Path)> {
        let distributed = LOADERS.iter().filter(|loader| !self.own.contains_key(loader.name));
        let own = self.own.iter().map(|(name, file)| (name.as_str(), file.as_path()));
        own.chain(distributed.map(|loader| (loader.name, Path::new(loader.file))))
    }

    /// Checks that the GRUB of an architecture works when UEFI loaded it by HTTP. Some distributions sign one that
    /// cannot: it knows its server, and no protocol to ask it by.
    ///
    /// # Errors
    ///
    /// [`LoaderError`].
    pub fn check_http(&self, architecture: &str) -> Result<(), LoaderError> {
        let name = if architecture == "aarch64" { "grubaa64.efi" } else { "grubx64.efi" };
        match self.read(name)? {
            (_, grub) if grub.windows(HTTP_REQUEST.len()).any(|part| part == HTTP_REQUEST) => Ok(()),
            (file, _) => Err(LoaderError::NoHttp { name, file }),
        }
    }

    /// The file of a loader, and what it holds.
    ///
    /// # Errors
    ///
    /// [`LoaderError::Missing`].
    pub fn read(&self, name: &'static str) -> Result<(PathBuf, Vec<u8>), LoaderError> {
        let file = self.find(name).unwrap_or(Path::new(name)).to_owned();
        let package = Self::package(name).unwrap_or_default();
        match std::fs::read(&file) {
            Ok(content) => Ok((file, content)),
            Err(source) => Err(LoaderError::Missing { name, file, package, source }),
        }
    }

    /// The package that a loader is in, which no file was found for.
    pub fn package(name: &str) -> Option<&'static str> {
        LOADERS.iter().find(|loader| loader.name == name).map(|loader| loader.package)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grub_that_cannot_ask_by_http_is_refused_with_the_way_to_another() {
        let folder = tempfile::tempdir().unwrap();
        let loaders = |name: &str, content: Option<&[u8]>| {
            let file = folder.path().join(name);
            if let Some(content) = content {
                std::fs::write(&file, content).unwrap();
            }
            Loaders::new([(name.to_owned(), file)].into())
        };
        let with_http = loaders("grubx64.efi", Some(b"MZ GET / HTTP/1.1\r\nHost: "));
        with_http.check_http("x86_64").unwrap();
        let without = loaders("grubaa64.efi", Some(b"MZ HTTPClient HTTP/1.1"));
        let refused = without.check_http("aarch64").unwrap_err().to_string();
        assert!(refused.contains("--loader-file-paths grubaa64.efi:FILE"), "{refused}");
        let missing = loaders("grubaa64.efi", None);
        std::fs::remove_file(folder.path().join("grubaa64.efi")).unwrap();
        let refused = missing.check_http("aarch64").unwrap_err().to_string();
        assert!(refused.contains("install grub-efi-arm64-signed:arm64, or name another"), "{refused}");
        assert!(refused.ends_with("--loader-file-paths grubaa64.efi:FILE"), "{refused}");
    }

    #[test]
    fn an_operators_own_loader_takes_the_place_of_the_distributions() {
        let own =
            [("bootx64.efi".to_owned(), "/srv/shim.efi".into()), ("x.efi".to_owned(), "/srv/x.efi".into())];
        let loaders = Loaders::new(own.into());
        for (name, file) in [
            ("bootx64.efi", Some("/srv/shim.efi")),
            ("/x.efi", Some("/srv/x.efi")),
            ("pxelinux.0", Some("/usr/lib/PXELINUX/pxelinux.0")),
            ("../bootx64.efi", None),
            ("boot", None),
            ("", None),
        ] {
            assert_eq!(loaders.find(name), file.map(Path::new), "{name}");
        }
        assert_eq!(Loaders::package("snponly.efi"), Some("ipxe"));
    }
}
