//! The SSH server of a rescued machine (section 11.2), beside the login on its consoles. Nothing listens
//! before.
//!
//! The host key is made for each rescue and lies in memory alone. The consoles show its fingerprint: by
//! that the user knows the machine.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use rand::Rng;
use ring::signature::{Ed25519KeyPair, KeyPair};
use sha2::{Digest, Sha256};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Arguments of the server: in the foreground, with its messages on standard error.
pub const ARGUMENTS: [&str; 6] = ["-F", "-E", "-P", "/run/dropbear.pid", "-r", "/etc/dropbear/host-key"];
/// The key that they name, below the root directory.
const HOST_KEY: &str = "etc/dropbear/host-key";
/// Name of the kind of key (RFC 8709).
const KIND: &[u8] = b"ssh-ed25519";
/// Keys that log in as `rescue`, below the root directory: those of the build, and the kernel line's.
const AUTHORISED: &str = "root/.ssh/authorized_keys";
/// The parameter with a public key, in quotation marks because of the spaces in it (section 3.2).
const PARAMETER: &str = "sshkey=";
/// How the kinds of public keys begin.
const KINDS: [&str; 4] = ["ssh-", "ecdsa-", "sk-ssh-", "sk-ecdsa-"];

/// Makes the host key below `root` and returns its fingerprint as SSH clients show it.
///
/// # Errors
///
/// The file cannot be written.
pub fn make_host_key(root: &Path) -> io::Result<String> {
    let seed: [u8; 32] = rand::rng().random();
    let pair =
        Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|error| io::Error::other(error.to_string()))?;
    let public = pair.public_key().as_ref();
    write(&root.join(HOST_KEY), 0o600, &[text(KIND), text(&[&seed, public].concat())].concat())?;
    let digest = Sha256::digest([text(KIND), text(public)].concat());
    Ok(format!("SHA256:{}", STANDARD_NO_PAD.encode(digest)))
}

/// Bytes behind their length (RFC 4251, section 5: `string`).
fn text(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

/// Lets the key on the kernel line in, if there is one.
///
/// # Errors
///
/// The file cannot be written.
pub fn authorise(root: &Path, kernel_line: &str) -> io::Result<()> {
    let Some(key) = key_on(kernel_line) else { return Ok(()) };
    let file = root.join(AUTHORISED);
    let others = fs::read_to_string(&file).unwrap_or_default();
    write(&file, 0o600, format!("{others}{key}\n").as_bytes())
}

fn write(file: &Path, mode: u32, content: &[u8]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode).open(file)?.write_all(content)
}

/// The public key on a kernel line. Anything else in its place is no key.
fn key_on(line: &str) -> Option<&str> {
    let starts = line.match_indices(PARAMETER).map(|(at, _)| at);
    let start = starts.filter(|at| *at == 0 || line[..*at].ends_with(char::is_whitespace)).last()?;
    let value = &line[start + PARAMETER.len()..];
    let mark = value.chars().next().filter(|mark| ['"', '\''].contains(mark))?;
    let key = value[1..].split_once(mark)?.0.trim();
    (KINDS.iter().any(|kind| key.starts_with(kind)) && !key.contains(char::is_control)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_server_reads_the_host_key_and_agrees_on_its_fingerprint() {
        let root = tempfile::tempdir().unwrap();
        let fingerprint = make_host_key(root.path()).unwrap();
        let read = Command::new("dropbearkey").arg("-y").arg("-f").arg(root.path().join(HOST_KEY)).output();
        let text = String::from_utf8(read.unwrap().stdout).unwrap();
        assert!(text.contains(&fingerprint), "{fingerprint}: {text}");
        assert_ne!(make_host_key(root.path()).unwrap(), fingerprint);
        assert!(ARGUMENTS[5].ends_with(HOST_KEY));
    }

    #[test]
    fn the_key_on_the_kernel_line_joins_those_of_the_build() {
        let root = tempfile::tempdir().unwrap();
        authorise(root.path(), "quiet").unwrap();
        assert!(!root.path().join(AUTHORISED).exists());
        write(&root.path().join(AUTHORISED), 0o600, b"ssh-rsa AAAB build\n").unwrap();
        authorise(root.path(), "quiet sshkey=\"ssh-ed25519 AAAA me@home\" ipa-debug=1").unwrap();
        let keys = fs::read_to_string(root.path().join(AUTHORISED)).unwrap();
        assert_eq!(keys, "ssh-rsa AAAB build\nssh-ed25519 AAAA me@home\n");
    }

    #[test]
    fn only_a_public_key_in_quotation_marks_is_one() {
        for (line, expected) in [
            ("sshkey=\"ssh-rsa AAAA x\"", Some("ssh-rsa AAAA x")),
            ("a sshkey='ecdsa-sha2-nistp256 AAAA'\n", Some("ecdsa-sha2-nistp256 AAAA")),
            ("sshkey=\"ssh-rsa A\" sshkey=\"ssh-rsa B\"", Some("ssh-rsa B")),
            ("xsshkey=\"ssh-rsa A\"", None),
            ("sshkey=ssh-rsa AAAA", None),
            ("sshkey=\"ssh-rsa AAAA", None),
            ("sshkey=\"command=x ssh-rsa AAAA\"", None),
            ("sshkey=", None),
            ("", None),
        ] {
            assert_eq!(key_on(line), expected, "{line}");
        }
    }
}
