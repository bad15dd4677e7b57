//! The login service of the ramdisk: how the user of a rescued machine gets in (section 11.2).
//!
//! PID 1 makes the one account `rescue` with the hash that the agent stored, and keeps a login prompt
//! on every console. The ramdisk has nothing to guard against its user, so that the account is the
//! superuser's instead of one that may become it.

use super::{PASSWORD_FILE, PASSWORD_FOLDER};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Makes the account below `root`.
///
/// # Errors
///
/// There is no hash, or a file cannot be written.
pub fn open(root: &Path) -> io::Result<()> {
    let hash = fs::read_to_string(root.join(PASSWORD_FOLDER).join(PASSWORD_FILE))?;
    for (name, mode, line) in [
        ("passwd", 0o644, "rescue:x:0:0:rescue:/root:/bin/sh".to_owned()),
        ("group", 0o644, "rescue:x:0:".to_owned()),
        // Changed long ago, and good for ever.
        ("shadow", 0o600, format!("rescue:{}:1:0:99999:7:::", hash.trim())),
    ] {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(mode);
        writeln!(options.open(root.join("etc").join(name))?, "{line}")?;
    }
    Ok(())
}

/// The terminals to log in at, of the consoles that the kernel lists as active.
pub fn terminals(active: &str) -> Vec<String> {
    // The screen as a console is whichever terminal is in front; the first one is at the start.
    active.split_whitespace().map(|name| if name == "tty0" { "tty1" } else { name }.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_account_has_the_stored_hash_and_nobody_else_reads_it() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(PASSWORD_FOLDER);
        fs::create_dir_all(&folder).unwrap();
        assert!(open(root.path()).is_err());
        fs::write(folder.join(PASSWORD_FILE), "$5$salt$hash").unwrap();
        open(root.path()).unwrap();
        let read = |name: &str| fs::read_to_string(root.path().join("etc").join(name)).unwrap();
        assert_eq!(read("shadow"), "rescue:$5$salt$hash:1:0:99999:7:::\n");
        assert!(read("passwd").starts_with("rescue:x:0:0:"));
        let mode = fs::metadata(root.path().join("etc/shadow")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn every_console_has_a_terminal() {
        assert_eq!(terminals("tty0 ttyS0\n"), ["tty1", "ttyS0"]);
        assert!(terminals("").is_empty());
    }
}
