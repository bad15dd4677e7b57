//! Operating systems that come as a container image and install themselves (section 12.1).

use super::error::ContainerError;
use super::permit::Reference;
use super::runner::Runner;
use super::secret::PullSecret;
use crate::error::StepError;
use crate::setting::Section;
use farrier_disk::HandedOverDisk;
use serde_json::{Map, Value};
use std::io::Write;
use std::path::Path;
use tempfile::NamedTempFile;

/// MiB of a disk that the root file system leaves to boot partitions and a config drive.
const BESIDE_ROOT: u64 = 768;
/// What the program in the container needs of the machine. A network of its own would need a firewall in the
/// ramdisk.
const RUN_OPTIONS: &[&str] = &[
    "--log-level=debug",
    "--rm",
    "--privileged",
    "--pid=host",
    "--network=host",
    "--volume=/var/lib/containers:/var/lib/containers",
    "--volume=/dev:/dev",
];
const COMMAND: &[&str] = &["bootc", "install", "to-disk", "--wipe", "--skip-fetch-check"];
/// Where a kernel with SELinux says whether it enforces it, below the root.
const SELINUX: &str = "sys/fs/selinux/enforce";

/// An installation that is ordered.
#[derive(Clone, Copy)]
pub struct Order<'a> {
    /// The image, `oci://registry/path` with a tag or digest.
    pub image_source: &'a str,
    /// What the node's record says about its instance.
    pub instance_info: &'a Map<String, Value>,
    /// Credentials for the registry, as a conductor sends them.
    pub pull_secret: Option<&'a str>,
    /// Config drive, or its URL.
    pub config_drive: Option<&'a str>,
}

/// An image that was fetched and can be installed as its user wants it.
#[derive(Debug)]
pub struct Fetched {
    image: Reference,
    /// Whether the disk is encrypted with a key in the machine's TPM.
    is_encrypted: bool,
    /// Public keys of root.
    keys: Option<String>,
}

/// Fetches the image of an installation. Its credentials are gone afterwards. How often podman tries is left
/// to it: before version 5 it has no option for the pause.
///
/// # Errors
///
/// [`ContainerError`].
pub fn fetch(
    runner: &Runner,
    order: &Order<'_>,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Fetched, ContainerError> {
    let image = Reference::parse(order.image_source)?;
    let instance = Section::instance_info(order.instance_info);
    let unreadable = |error: StepError| ContainerError::Setting(error.to_string());
    let is_encrypted = instance.switch("bootc_tpm2_luks", false).map_err(unreadable)?;
    let keys = instance.read("bootc_authorized_keys", "a text", Value::as_str).map_err(unreadable)?;
    let keys = keys.filter(|keys| !keys.is_empty()).map(str::to_owned);
    let secret = order.pull_secret.map(PullSecret::decode).transpose()?;
    runner.pull(&image, &[], secret.as_ref(), is_stopped)?;
    Ok(Fetched { image, is_encrypted, keys })
}

/// Has the image install itself on a disk, for the machine whose files lie below `root`.
///
/// # Errors
///
/// [`ContainerError`]. What is on the disk then is nothing to boot from.
pub fn install(
    runner: &Runner,
    fetched: &Fetched,
    disk: &HandedOverDisk,
    root: &Path,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), ContainerError> {
    let mut words = words(disk.path(), disk.size(), fetched.is_encrypted, root);
    let keys = fetched.keys.as_ref().map(|keys| write_keys(keys, &root.join("run"))).transpose()?;
    if let Some(keys) = &keys {
        words.show_keys(keys.path());
    }
    runner.run(&fetched.image, &words.options, &words.command, is_stopped).map(drop)
}

/// What stands in front of the image on the runner's command line, and behind it.
struct CommandLine {
    options: Vec<String>,
    command: Vec<String>,
}

fn words(disk: &Path, size: u64, is_encrypted: bool, root: &Path) -> CommandLine {
    let (mut options, mut command) = (texts(RUN_OPTIONS), texts(COMMAND));
    command.push(format!("--root-size={}M", (size >> 20).saturating_sub(BESIDE_ROOT)));
    if is_encrypted {
        command.push("--block-setup=tpm2-luks".to_owned());
    }
    if root.join(SELINUX).exists() {
        options.push("--security-opt=label=type:unconfined_t".to_owned());
    } else {
        command.push("--disable-selinux".to_owned());
    }
    command.push(disk.display().to_string());
    CommandLine { options, command }
}

impl CommandLine {
    /// Shows the container a file with public keys, and nothing beside it.
    fn show_keys(&mut self, keys: &Path) {
        let path = keys.display();
        self.options.push(format!("--volume={path}:{path}:ro"));
        let disk = self.command.len() - 1;
        self.command.insert(disk, format!("--root-ssh-authorized-keys={path}"));
    }
}

fn texts(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The keys in a file that is gone when this is dropped.
fn write_keys(keys: &str, folder: &Path) -> Result<NamedTempFile, ContainerError> {
    let write = || {
        let mut file = NamedTempFile::new_in(folder)?;
        writeln!(file, "{}", keys.trim_end())?;
        Ok(file)
    };
    write().map_err(|source| ContainerError::File { file: folder.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::super::fake_runner::FakeRunner;
    use super::*;
    use serde_json::json;
    use std::fs;

    const GOING_ON: fn() -> bool = || false;
    const DISK: &str = "/dev/vda";

    fn order<'a>(instance_info: &'a Map<String, Value>, secret: Option<&'a str>) -> Order<'a> {
        let image_source = "oci://registry.example/os/image:1";
        Order { image_source, instance_info, pull_secret: secret, config_drive: None }
    }

    fn line(is_encrypted: bool, root: &Path) -> (String, String) {
        let words = words(Path::new(DISK), 10 << 30, is_encrypted, root);
        (words.options.join(" "), words.command.join(" "))
    }

    #[test]
    fn the_image_is_run_on_the_whole_disk_as_the_contract_says() {
        let root = tempfile::tempdir().unwrap();
        let (options, command) = line(false, root.path());
        let expected = "--log-level=debug --rm --privileged --pid=host --network=host \
                        --volume=/var/lib/containers:/var/lib/containers --volume=/dev:/dev";
        assert_eq!(options, expected);
        let expected =
            "bootc install to-disk --wipe --skip-fetch-check --root-size=9472M --disable-selinux /dev/vda";
        assert_eq!(command, expected);
        fs::create_dir_all(root.path().join("sys/fs/selinux")).unwrap();
        fs::write(root.path().join(SELINUX), "1").unwrap();
        let (options, command) = line(true, root.path());
        assert!(options.ends_with(" --security-opt=label=type:unconfined_t"), "{options}");
        assert!(command.ends_with(" --root-size=9472M --block-setup=tpm2-luks /dev/vda"), "{command}");
    }

    #[test]
    fn keys_are_shown_in_a_file_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let file = write_keys("ssh-ed25519 AAAA ann\n", folder.path()).unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "ssh-ed25519 AAAA ann\n");
        let mut words = words(Path::new(DISK), 10 << 30, false, folder.path());
        words.show_keys(file.path());
        let path = file.path().display();
        assert_eq!(words.options.last(), Some(&format!("--volume={path}:{path}:ro")));
        let end = words.command[words.command.len() - 2..].join(" ");
        assert_eq!(end, format!("--root-ssh-authorized-keys={path} {DISK}"));
    }

    #[test]
    fn what_the_user_wants_is_read_before_anything_is_fetched_and_never_guessed() {
        let fake = FakeRunner::new("exit 0");
        let read = |info: Value| {
            fetch(&fake.runner(), &order(info.as_object().unwrap(), None), &GOING_ON)
                .map(|fetched| (fetched.is_encrypted, fetched.keys))
        };
        let keys = Some("ssh-ed25519 AAAA ann".to_owned());
        for (info, expected) in [
            (json!({}), (false, None)),
            (json!({"bootc_tpm2_luks": "True", "bootc_authorized_keys": ""}), (true, None)),
            (json!({"bootc_tpm2_luks": null, "bootc_authorized_keys": keys}), (false, keys.clone())),
        ] {
            assert_eq!(read(info.clone()).unwrap(), expected, "{info}");
        }
        let fetched = fake.calls().len();
        for info in [
            json!({"bootc_tpm2_luks": 1}),
            json!({"bootc_tpm2_luks": "yes"}),
            json!({"bootc_authorized_keys": [1]}),
        ] {
            let error = read(info.clone()).unwrap_err().of_install();
            assert_eq!(error.kind, "InvalidCommandParamsError", "{info}");
        }
        assert_eq!(fake.calls().len(), fetched);
    }

    #[test]
    fn s09_the_credentials_are_gone_when_the_image_is_there() {
        let fake = FakeRunner::new("case $1 in pull) cp \"${2#--authfile=}\" \"$ROOT/seen\";; esac");
        let info = Map::new();
        fetch(&fake.runner(), &order(&info, Some("ZFhObGNqcHdZWE56")), &GOING_ON).unwrap();
        let seen = fs::read_to_string(fake.root().join("seen")).unwrap();
        assert!(seen.contains("\"registry.example\":{\"auth\":\"dXNlcjpwYXNz\"}"), "{seen}");
        assert_eq!(fs::read_dir(fake.root().join("run")).unwrap().count(), 0);
        let call = &fake.calls()[0];
        assert!(call.ends_with(" registry.example/os/image:1"), "{call}");
    }

    #[test]
    fn every_failure_has_the_class_of_the_contract() {
        for (script, secret, kind) in [
            ("exit 0", Some("?"), "InvalidCommandParamsError"),
            ("exit 125", None, "ImageDownloadError"),
            ("[ $1 = pull ] || { echo no space left >&2; exit 1; }", None, "ImageWriteError"),
            (
                "[ $1 = pull ] || { echo 'crun: executable file `bootc` not found in $PATH' >&2; exit 127; }",
                None,
                "ImageDownloadError",
            ),
        ] {
            let fake = FakeRunner::new(script);
            let (runner, info) = (fake.runner(), Map::new());
            let run = |image: Fetched| runner.run(&image.image, &[], &texts(COMMAND), &GOING_ON);
            let outcome = fetch(&runner, &order(&info, secret), &GOING_ON).and_then(run);
            assert_eq!(outcome.unwrap_err().of_install().kind, kind, "{script}");
        }
    }
}
