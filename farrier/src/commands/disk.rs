//! `farrier disk …`: the disk of a machine, reached by iSCSI without a system on it.

use crate::client::NodeApi;
use crate::state::private_file;
use anyhow::Context;
use clap::Subcommand;
use farrier_conductor::deploy::disk_export::DiskExport;
use std::fmt::{self, Display};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Where iscsiadm keeps what it knows of targets.
const RECORDS: &str = "/etc/iscsi/nodes";

/// Commands for disks.
#[derive(Debug, Subcommand)]
pub(crate) enum DiskCommand {
    /// Export the root disk of a node over iSCSI, and print command lines for QEMU and open-iscsi. The node must be
    /// manageable, held or failed; it accepts no other operation until the release.
    Export {
        /// Name or UUID of the node.
        node: String,
        /// Export the disk read-only.
        #[arg(long)]
        read_only: bool,
        /// Folder for the CHAP secret, readable by its owner [default: disk-of-NODE in the current folder].
        #[arg(long, value_name = "FOLDER")]
        secrets: Option<PathBuf>,
    },
    /// Stop the export, and end the sessions of all initiators.
    Release {
        /// Name or UUID of the node.
        node: String,
    },
}

impl DiskCommand {
    pub(crate) async fn run(self, api: &NodeApi) -> anyhow::Result<()> {
        match self {
            Self::Export { node, read_only, secrets } => {
                let label = api.show(&node).await?.label().to_owned();
                let folder = secrets.unwrap_or_else(|| PathBuf::from(format!("disk-of-{label}")));
                // Before anything is exported whose secret could not be kept.
                let folder = private_folder(&folder)
                    .with_context(|| format!("the folder {} cannot be made", folder.display()))?;
                let export = api.export_disk(&node, read_only).await?;
                let lines = Lines { export: &export, folder: &folder, label: &label, read_only };
                lines.keep_secrets().with_context(|| {
                    let folder = folder.display();
                    format!("the secret cannot be kept in {folder}; run `farrier disk release {label}`")
                })?;
                print!("{lines}");
                Ok(())
            }
            Self::Release { node } => api.release_disk(&node).await,
        }
    }
}

/// The path of a folder that its owner alone may look into; it is made where it is not there.
fn private_folder(folder: &Path) -> io::Result<PathBuf> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::canonicalize(folder),
    }
}

/// What an operator may run.
struct Lines<'a> {
    export: &'a DiskExport,
    folder: &'a Path,
    label: &'a str,
    read_only: bool,
}

impl Lines<'_> {
    /// The secret alone, as QEMU reads it.
    fn secret(&self) -> PathBuf {
        self.folder.join("secret")
    }

    /// What open-iscsi's record of the target needs to hold.
    fn record(&self) -> PathBuf {
        self.folder.join("record")
    }

    fn keep_secrets(&self) -> io::Result<()> {
        let DiskExport { initiator, chap_user, chap_password, .. } = self.export;
        private_file::write(&self.secret(), chap_password.as_bytes())?;
        let record = format!(
            "iface.initiatorname = {initiator}\nnode.session.auth.authmethod = CHAP\n\
             node.session.auth.username = {chap_user}\nnode.session.auth.password = {chap_password}\n"
        );
        private_file::write(&self.record(), record.as_bytes())
    }

    /// Arguments by which QEMU's programs find the disk.
    fn qemu(&self, option: &str) -> String {
        let DiskExport { portal, target, initiator, chap_user, .. } = self.export;
        let disk = format!(
            "driver=iscsi,transport=tcp,portal={portal},target={target},lun=1,initiator-name={initiator},\
             user={chap_user},password-secret=chap"
        );
        let secret =
            format!("secret,id=chap,file={}", self.secret().display().to_string().replace(',', ",,"));
        format!("--object {} {option} {}", quoted(secret), quoted(disk))
    }
}

impl Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { export: DiskExport { portal, target, initiator, .. }, folder, label, read_only } = self;
        let (folder, may) = (folder.display(), if *read_only { ", read-only" } else { "" });
        writeln!(f, "# The disk of {label} is exported at {portal} as")?;
        writeln!(f, "#   {target}, logical unit 1{may},")?;
        writeln!(f, "# only to the initiator {initiator}.")?;
        writeln!(f, "# Its secret is in {folder}. To end the export: farrier disk release {label}\n")?;
        writeln!(f, "# QEMU, as any user, with the package qemu-block-extra: to save the disk to a file,")?;
        let file = quoted(format!("{label}.qcow2"));
        writeln!(f, "qemu-img convert -O qcow2 {} {file}", self.qemu("--image-opts"))?;
        if !read_only {
            writeln!(f, "# to write an image to it,")?;
            writeln!(
                f,
                "qemu-img convert -n {}",
                self.qemu("--target-image-opts").replacen(" --target", " IMAGE --target", 1)
            )?;
        }
        writeln!(f, "# to attach it as a block device of this host, as root, after modprobe nbd")?;
        let mode = if *read_only { "--read-only " } else { "" };
        writeln!(f, "qemu-nbd {mode}--connect=/dev/nbd0 {}", self.qemu("--image-opts"))?;
        writeln!(f, "qemu-nbd --disconnect /dev/nbd0\n")?;
        let (address, port) = (portal.address(), portal.port());
        let (node, record) =
            (format!("iscsiadm -m node -T {target} -p {portal}"), quoted(self.record().display()));
        writeln!(f, "# open-iscsi, as root:")?;
        writeln!(f, "iscsiadm -m node -o new -T {target} -p {portal},1")?;
        writeln!(f, "cat {record} >> {}", quoted(format!("{RECORDS}/{target}/{address},{port},1/default")))?;
        for end in ["--login", "--logout", "-o delete"] {
            writeln!(f, "{node} {end}")?;
        }
        Ok(())
    }
}

/// A word as a shell takes it for one.
fn quoted(word: impl Display) -> String {
    let word = word.to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=+@%".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use uuid::Uuid;

    #[test]
    fn no_line_shows_the_secret_and_its_files_are_for_their_owner() {
        let above = tempfile::tempdir().unwrap();
        let folder = private_folder(&above.path().join("it's, here")).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(private_folder(&folder).unwrap(), folder, "one that is there will do");
        let export = DiskExport::anew("https://[2001:db8::7]:9999", 3999, Uuid::nil()).unwrap();
        for read_only in [false, true] {
            let lines = Lines { export: &export, folder: &folder, label: "horse", read_only };
            lines.keep_secrets().unwrap();
            let text = lines.to_string();
            assert!(!text.contains(&export.chap_password), "{text}");
            assert!(text.contains("portal=[2001:db8::7]:3999,target=iqn."), "{text}");
            assert!(text.contains(r"file=") && text.contains(r"it'\''s,, here/secret'"), "{text}");
            assert!(text.contains(&format!("/etc/iscsi/nodes/{}/2001:db8::7,3999,1/default", export.target)));
            assert_eq!(text.contains("IMAGE"), !read_only, "{text}");
        }
        for (name, content) in [
            ("secret", export.chap_password.clone()),
            ("record", format!("node.session.auth.password = {}\n", export.chap_password)),
        ] {
            let file = folder.join(name);
            assert!(fs::read_to_string(&file).unwrap().ends_with(&content));
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }
}
