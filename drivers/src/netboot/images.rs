//! Kernels, ramdisks and media, as records name them (sections 6.2 and 11.1).
//!
//! One is a URL that the machine itself reaches, or a file of the conductor's host. A file lies below one of the folders
//! that the operator of the conductor allows; other files of a record are refused, and checked again, with every
//! link followed, when it is served.

use farrier_conductor::interfaces::{InterfaceError, Properties};
use farrier_conductor::model::Node;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Component, Path, PathBuf};

use super::by_arch::ConfiguredImages;
use super::names::Ramdisk;

/// The keys that name those of the agent.
pub(super) const KEYS: Properties = &[
    (
        "deploy_kernel",
        "the ramdisk's kernel: a file of the conductor's host, or a URL that iPXE itself loads; that of the conductor \
         unless it is given",
    ),
    ("deploy_ramdisk", "the ramdisk: a file or a URL, with deploy_kernel"),
    ("rescue_kernel", "the kernel for rescues, with rescue_ramdisk; deploy_kernel unless they are given"),
    ("rescue_ramdisk", "the ramdisk for rescues, with rescue_kernel; deploy_ramdisk unless they are given"),
];

/// The keys of kernel and ramdisk.
pub(crate) const DEPLOY: [&str; 2] = ["deploy_kernel", "deploy_ramdisk"];
pub(crate) const RESCUE: [&str; 2] = ["rescue_kernel", "rescue_ramdisk"];

/// Characters that a URL may have and that mean something to a script: iPXE takes `${…}` for a setting, and GRUB and
/// iPXE alike take `;`, `|`, `&` and `#` between words for their own (S43).
const INTERPRETED: &str = "$;|&#'\"\\`{}";

/// Folders that no image is ever taken from.
const REFUSED: [&str; 6] = ["/dev", "/sys", "/proc", "/boot", "/etc", "/run"];

/// A kernel, a ramdisk or a medium.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    /// A URL that the machine reaches by itself, and that is one word of a script.
    Url(String),
    /// A file of the conductor's host.
    File(PathBuf),
}

/// Kernel and ramdisk that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    /// The kernel.
    pub kernel: Image,
    /// The ramdisk.
    pub ramdisk: Image,
}

/// The folders that files may be taken from (`[conductor]file_url_allowed_paths`).
#[derive(Debug, Clone, Default)]
pub struct AllowedFolders(Vec<PathBuf>);

impl Images {
    /// Those of the agent: what the node names, or else what the conductor has for it. A pair is taken whole: half of one
    /// is an error, since a kernel does not boot with the modules of another.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::DriverInfo`] for the first that is missing or that cannot be loaded, and
    /// [`InterfaceError::Invalid`] where the conductor has named it.
    pub fn of_agent(
        node: &Node,
        ramdisk: Ramdisk,
        allowed: &AllowedFolders,
        configured: &ConfiguredImages,
    ) -> Result<Self, InterfaceError> {
        let pairs: &[[&str; 2]] = match ramdisk {
            Ramdisk::Rescue => &[RESCUE, DEPLOY],
            Ramdisk::Deploy => &[DEPLOY],
        };
        for pair in pairs {
            if pair.iter().any(|key| names(node, key)) {
                let read = |key| match node.driver_info.get(key) {
                    None | Some(Value::Null) => {
                        Err(InterfaceError::driver_info(key, "is missing; give its file or URL"))
                    }
                    Some(value) => Image::read(value.as_str().unwrap_or_default(), allowed)
                        .map_err(|reason| InterfaceError::driver_info(key, reason)),
                };
                return Ok(Self { kernel: read(pair[0])?, ramdisk: read(pair[1])? });
            }
            if let Some([kernel, ramdisk]) = configured.pair(node, *pair)? {
                let read =
                    |key: &str, text| Image::read(text, allowed).map_err(|reason| of_conductor(key, &reason));
                return Ok(Self { kernel: read(pair[0], kernel)?, ramdisk: read(pair[1], ramdisk)? });
            }
        }
        let missing = "is missing; give its file or URL, or configure one for all nodes";
        Err(InterfaceError::driver_info(DEPLOY[0], missing))
    }
}

/// Whether a node names something by a key.
pub(crate) fn names(node: &Node, key: &str) -> bool {
    node.driver_info.get(key).is_some_and(|value| !value.is_null() && *value != "")
}

/// An image that the conductor has configured cannot be loaded.
pub(crate) fn of_conductor(key: &str, reason: &str) -> InterfaceError {
    InterfaceError::invalid(&format!("{key} of the conductor's configuration"), reason)
}

impl Image {
    /// Reads what a record names for boot scripts; the error is the end of a sentence about it.
    pub(super) fn read(text: &str, allowed: &AllowedFolders) -> Result<Self, String> {
        let refused =
            || "must be a file:// URL, or one with http, https or tftp, which firmware can load".to_owned();
        let image = Self::parse(text, allowed, &["http", "https", "tftp"])?.ok_or_else(refused)?;
        let Self::Url(url) = &image else { return Ok(image) };
        match url.chars().find(|character| INTERPRETED.contains(*character)) {
            None => Ok(image),
            Some(character) => Err(format!(
                "holds {character:?}, which boot scripts interpret; encode it as %{:02X}",
                character as u32
            )),
        }
    }

    /// Reads what a record names for media, which the conductor itself reads; the error is the end of a sentence about it.
    #[cfg(feature = "virtual-media")]
    pub(crate) fn of_medium(text: &str, allowed: &AllowedFolders) -> Result<Self, String> {
        let refused = || "must be a file:// URL, or one with http or https".to_owned();
        Self::parse(text, allowed, &["http", "https"])?.ok_or_else(refused)?.resolved(allowed)
    }

    /// The same with the file itself, behind every link; the error is the end of a sentence about it.
    #[cfg(feature = "virtual-media")]
    pub(crate) fn resolved(self, allowed: &AllowedFolders) -> Result<Self, String> {
        match self {
            Self::File(file) => allowed.take(&file).map(Self::File),
            Self::Url(_) => Ok(self),
        }
    }

    /// A file, or a URL with one of these schemes; nothing for another.
    fn parse(text: &str, allowed: &AllowedFolders, schemes: &[&str]) -> Result<Option<Self>, String> {
        if text.starts_with('/') {
            return allowed.check(Path::new(text)).map(|()| Some(Self::File(text.into())));
        }
        let Ok(url) = Url::parse(text) else { return Ok(None) };
        if url.scheme() == "file" {
            let path = url.to_file_path().map_err(|()| "must name a file of this host".to_owned())?;
            return allowed.check(&path).map(|()| Some(Self::File(path)));
        }
        Ok(schemes.contains(&url.scheme()).then(|| Self::Url(url.into())))
    }
}

impl AllowedFolders {
    /// These, none of which is one that images are never taken from.
    ///
    /// # Errors
    ///
    /// One that is.
    pub fn new(folders: Vec<PathBuf>) -> Result<Self, PathBuf> {
        match folders.iter().find(|folder| !folder.is_absolute() || is_refused(folder)) {
            Some(refused) => Err(refused.clone()),
            None => Ok(Self(folders)),
        }
    }

    /// The folders.
    pub fn folders(&self) -> &[PathBuf] {
        &self.0
    }

    /// The file itself, behind every link; the error is the end of a sentence about it, which tells of no file elsewhere
    /// whether it is there.
    pub(crate) fn take(&self, file: &Path) -> Result<PathBuf, String> {
        self.check(file)?;
        let refused = || format!("is no file that may be taken: {}; see whether it is there", file.display());
        self.resolve(file).ok_or_else(refused)
    }

    /// Whether a file may be made, or replaced, in a folder that is there; the error is the end of a sentence about it.
    #[cfg(feature = "qemu")]
    pub(crate) fn place(&self, file: &Path) -> Result<PathBuf, String> {
        self.check(file)?;
        let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
        let folder = folder.filter(|folder| !is_refused(folder) && self.has(folder));
        let place = folder.zip(file.file_name()).map(|(folder, name)| folder.join(name));
        let place = place.filter(|place| !place.is_symlink());
        place.ok_or_else(|| {
            format!("is no place for a file: {}; see whether its folder is there", file.display())
        })
    }

    /// Whether a file may be taken, as far as its name tells; the error is the end of a sentence about it.
    pub(crate) fn check(&self, file: &Path) -> Result<(), String> {
        let is_plain =
            file.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if is_plain && !is_refused(file) && self.0.iter().any(|folder| file.starts_with(folder)) {
            return Ok(());
        }
        let folders: Vec<_> = self.0.iter().map(|folder| folder.display().to_string()).collect();
        Err(format!(
            "{} is not below a folder that files may be taken from, which are: {} \
             (--file-url-allowed-paths)",
            file.display(),
            if folders.is_empty() { "none".to_owned() } else { folders.join(", ") }
        ))
    }

    /// The file itself, behind every link, when it may be taken; nothing when it may not, or is not there.
    pub fn resolve(&self, file: &Path) -> Option<PathBuf> {
        let real = file.canonicalize().ok()?;
        (self.has(&real) && !is_refused(&real) && real.is_file()).then_some(real)
    }

    /// Whether a path without links is below one of the folders.
    fn has(&self, real: &Path) -> bool {
        self.0.iter().filter_map(|folder| folder.canonicalize().ok()).any(|folder| real.starts_with(folder))
    }
}

fn is_refused(file: &Path) -> bool {
    REFUSED.iter().any(|folder| file.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::node;
    use super::*;
    use serde_json::json;

    fn allowed() -> AllowedFolders {
        AllowedFolders::new(vec!["/srv/images".into()]).unwrap()
    }

    #[test]
    fn s43_an_image_is_one_word_of_a_script() {
        for (kernel, expected) in [
            (json!("http://192.0.2.5/k"), Ok("http://192.0.2.5/k")),
            (json!("http://[2001:db8::5]:8080/a/../k?x=1"), Ok("http://[2001:db8::5]:8080/k?x=1")),
            (json!("tftp://192.0.2.5/k"), Ok("tftp://192.0.2.5/k")),
            (json!("http://h/a b\nshell"), Ok("http://h/a%20bshell")),
            (json!("http://h/${net0/mac}"), Err("'$'")),
            (json!("http://h/k;reboot"), Err("';'")),
            (json!("http://h/k||shell"), Err("'|'")),
            (json!("http://h/k#x"), Err("'#'")),
            (json!("http://h/k?a=1&b=2"), Err("'&'")),
            (json!("file:///srv/images/vm%20linuz"), Ok("/srv/images/vm linuz")),
            (json!("/srv/images/vmlinuz"), Ok("/srv/images/vmlinuz")),
            (json!("/srv/images/../../etc/shadow"), Err("is not below a folder")),
            (json!("/srv/images.secret/k"), Err("is not below a folder")),
            (json!("file:///etc/shadow"), Err("which are: /srv/images")),
            (json!("file://elsewhere/srv/images/k"), Err("must name a file of this host")),
            (json!("nfs://h/k"), Err("http, https or tftp")),
            (json!(7), Err("http, https or tftp")),
            (json!(null), Err("is missing")),
        ] {
            let node = node(&json!({"deploy_kernel": kernel, "deploy_ramdisk": "http://h/r"}));
            let found = Images::of_agent(&node, Ramdisk::Deploy, &allowed(), &ConfiguredImages::default())
                .map(|images| match images.kernel {
                    Image::Url(url) => url,
                    Image::File(file) => file.display().to_string(),
                });
            match (expected, &found.map_err(|error| error.to_string())) {
                (Ok(url), Ok(found)) => assert_eq!(found, url),
                (Err(part), Err(error)) => assert!(error.contains(part), "{error}"),
                (_, found) => panic!("{kernel}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_rescue_has_its_own_pair_or_that_of_deployments_but_never_half_of_one() {
        let deploy = json!({"deploy_kernel": "http://h/k", "deploy_ramdisk": "http://h/r"});
        let with = |more: serde_json::Value| {
            let mut info = deploy.clone();
            info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            info
        };
        let both = with(json!({"rescue_kernel": "http://h/rk", "rescue_ramdisk": "http://h/rr"}));
        for (info, ramdisk, kernel) in [
            (&both, Ramdisk::Rescue, Some("http://h/rk")),
            (&both, Ramdisk::Deploy, Some("http://h/k")),
            (&deploy, Ramdisk::Rescue, Some("http://h/k")),
            (&with(json!({"rescue_kernel": "http://h/rk"})), Ramdisk::Rescue, None),
        ] {
            let found = Images::of_agent(&node(info), ramdisk, &allowed(), &ConfiguredImages::default())
                .ok()
                .map(|images| images.kernel);
            assert_eq!(found, kernel.map(|url| Image::Url(url.to_owned())), "{info} for {ramdisk:?}");
        }
    }

    #[test]
    fn c05_a_node_without_images_has_those_of_the_conductor() {
        let configured = |of_rescue: bool| {
            let images = ConfiguredImages::default()
                .with("deploy_kernel", Some("http://c/k".into()), [])
                .with("deploy_ramdisk", Some("http://c/r".into()), []);
            match of_rescue {
                true => images.with("rescue_kernel", Some("http://c/rk".into()), []).with(
                    "rescue_ramdisk",
                    Some("http://c/rr".into()),
                    [],
                ),
                false => images,
            }
        };
        let own = json!({"deploy_kernel": "http://h/k", "deploy_ramdisk": "http://h/r"});
        let none = json!({"deploy_kernel": null, "deploy_ramdisk": ""});
        for (info, ramdisk, of_rescue, expected) in [
            (&none, Ramdisk::Deploy, false, Ok("http://c/k")),
            (&none, Ramdisk::Rescue, false, Ok("http://c/k")),
            (&none, Ramdisk::Rescue, true, Ok("http://c/rk")),
            (&own, Ramdisk::Deploy, true, Ok("http://h/k")),
            (&own, Ramdisk::Rescue, false, Ok("http://h/k")),
            (
                &json!({"deploy_ramdisk": "http://h/r"}),
                Ramdisk::Deploy,
                false,
                Err("deploy_kernel: is missing"),
            ),
        ] {
            let found = Images::of_agent(&node(info), ramdisk, &allowed(), &configured(of_rescue));
            match (expected, found) {
                (Ok(url), Ok(found)) => assert_eq!(found.kernel, Image::Url(url.to_owned()), "{info}"),
                (Err(part), Err(error)) => assert!(error.to_string().contains(part), "{error}"),
                (_, found) => panic!("{info}: {found:?}"),
            }
        }
        let outside = ConfiguredImages::default().with("deploy_kernel", Some("/etc/k".into()), []).with(
            "deploy_ramdisk",
            Some("http://c/r".into()),
            [],
        );
        let refused = Images::of_agent(&node(&none), Ramdisk::Deploy, &allowed(), &outside).unwrap_err();
        assert!(refused.to_string().starts_with("deploy_kernel of the conductor"), "{refused}");
    }

    #[test]
    fn a_link_out_of_the_allowed_folders_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (inside, outside) = (folder.path().join("images"), folder.path().join("secret"));
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(&outside, "s").unwrap();
        std::fs::write(inside.join("vmlinuz"), "k").unwrap();
        std::os::unix::fs::symlink(&outside, inside.join("link")).unwrap();
        std::os::unix::fs::symlink("vmlinuz", inside.join("current")).unwrap();
        let allowed = AllowedFolders::new(vec![inside.clone()]).unwrap();
        for (name, is_there) in
            [("vmlinuz", true), ("current", true), ("link", false), ("", false), ("none", false)]
        {
            assert_eq!(allowed.resolve(&inside.join(name)).is_some(), is_there, "{name}");
        }
        for folder in ["/etc/images", "/proc", "images"] {
            assert!(AllowedFolders::new(vec![folder.into()]).is_err(), "{folder}");
        }
    }
}
