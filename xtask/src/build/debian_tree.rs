//! A Debian system in a folder, made without starting it. Only root can.

use std::fs::{self, File};
use std::hash::Hash;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::host::command::{command, shown};

const MIRROR: &str = "http://deb.debian.org/debian";

/// Files written before packages are installed: they make the system small.
const SETTINGS: &[(&str, &str)] = &[
    (
        "etc/dpkg/dpkg.cfg.d/90-small",
        "path-exclude=/usr/share/doc/*\n\
         path-include=/usr/share/doc/*/copyright\n\
         path-exclude=/usr/share/info/*\n\
         path-exclude=/usr/share/locale/*\n\
         path-exclude=/usr/share/man/*\n",
    ),
    (
        "etc/apt/apt.conf.d/90-small",
        "APT::Install-Recommends \"false\";\nDpkg::Options:: \"--force-unsafe-io\";\n",
    ),
    (
        "etc/apt/sources.list",
        "deb http://deb.debian.org/debian bookworm main\n\
         deb http://deb.debian.org/debian bookworm-updates main\n\
         deb http://deb.debian.org/debian-security bookworm-security main\n",
    ),
];

/// Nothing may be started while packages are configured.
const POLICY: &str = "usr/sbin/policy-rc.d";

/// What the installation leaves behind.
const LEFTOVERS: &[&str] =
    &["etc/hostname", POLICY, "usr/share/locale", "var/cache/apt", "var/lib/apt/lists", "var/log/apt"];

/// The folder, and the log of what was done in it.
#[derive(Debug)]
pub struct DebianTree<'a> {
    root: &'a Path,
    log: &'a Path,
}

/// All that decides what every tree holds.
pub fn recipe() -> impl Hash {
    (MIRROR, SETTINGS, LEFTOVERS)
}

impl<'a> DebianTree<'a> {
    /// Makes the smallest system below `root`, in place of what is there. Programs print into `log`.
    pub fn bootstrap(root: &'a Path, log: &'a Path) -> Result<Self> {
        if root.exists() {
            fs::remove_dir_all(root)?;
        }
        File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        println!("  base system (debootstrap)");
        let tree = Self { root, log };
        tree.logged(command("debootstrap").args(["--variant=minbase", "bookworm"]).arg(root).arg(MIRROR))?;
        for (path, content) in SETTINGS {
            tree.write(path, content)?;
        }
        tree.write_program(POLICY, "#!/bin/sh\nexit 101\n")?;
        Ok(tree)
    }

    /// Where the tree is.
    pub fn root(&self) -> &Path {
        self.root
    }

    /// Installs packages, and what is new of those that are there.
    pub fn install(&self, packages: &[&str]) -> Result<()> {
        self.run("apt-get", &["-q", "update"])?;
        self.run("apt-get", &["-q", "-y", "upgrade"])?;
        self.run("apt-get", &[&["-q", "-y", "install"], packages].concat())
    }

    /// Runs one of the tree's own programs in it.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        let mut chroot = command("chroot");
        chroot.arg(self.root).args(["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"]);
        chroot.args(["DEBIAN_FRONTEND=noninteractive", program]).args(arguments);
        self.logged(&mut chroot)
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, path: &str, content: &str) -> Result<PathBuf> {
        let file = self.root.join(path);
        if let Some(folder) = file.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// Writes a file that can be started.
    pub fn write_program(&self, path: &str, content: &str) -> Result<()> {
        let file = self.write(path, content)?;
        Ok(fs::set_permissions(file, PermissionsExt::from_mode(0o755))?)
    }

    /// Removes files and folders, if they are there.
    pub fn remove(&self, paths: &[&str]) -> Result<()> {
        for path in paths.iter().map(|path| self.root.join(path)) {
            if path.is_dir() {
                fs::remove_dir_all(path)?;
            } else if path.exists() {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Removes what only the installation needed.
    pub fn clean(&self) -> Result<()> {
        self.remove(LEFTOVERS)
    }

    /// Runs with the output at the end of the log.
    fn logged(&self, command: &mut Command) -> Result<()> {
        let output = File::options().append(true).open(self.log)?;
        let errors = output.try_clone()?;
        let status = command.stdin(Stdio::null()).stdout(output).stderr(errors).status();
        let status = status.with_context(|| format!("cannot start {}", shown(command)))?;
        if !status.success() {
            let text = fs::read_to_string(self.log).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            let tail = lines[lines.len().saturating_sub(10)..].join("\n");
            bail!("{} ended with {status}; the end of {}:\n{tail}", shown(command), self.log.display());
        }
        Ok(())
    }
}
