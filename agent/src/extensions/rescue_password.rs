//! The password of a rescued machine (section 11.2).
//!
//! The agent's part is to leave a hash behind; PID 1 makes a user with it ([`farrier_init::hand_over`]).

pub mod sha256_crypt;
#[cfg(test)]
mod traces_tests;

use farrier_init::hand_over::{PASSWORD_FILE, PASSWORD_FOLDER};
use farrier_protocol::error::{CommandError, ErrorKind};
use rand::Rng;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Characters of salts and hashes.
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// Longest salt; longer ones are cut by some implementations and not by others.
const MAX_SALT: usize = 16;

/// Longest password or hash in bytes, as that of crypt(3): the time to hash one grows with its length.
const MAX_PASSWORD: usize = 511;

/// Refuses what is no password, before anything is done with it.
///
/// # Errors
///
/// It is empty, or longer than [`MAX_PASSWORD`].
pub fn validate_password(password: &str) -> Result<(), CommandError> {
    let invalid = |details: String| Err(CommandError::new(ErrorKind::InvalidCommandParamsError, details));
    match password.len() {
        0 => invalid("rescue_password is empty: a rescued machine needs a password".to_owned()),
        1..=MAX_PASSWORD => Ok(()),
        length => {
            invalid(format!("rescue_password has {length} bytes: choose one of at most {MAX_PASSWORD}"))
        }
    }
}

/// The hash to store: the given one if it is one that logs in, else one made of the given text (S19).
///
/// # Errors
///
/// As [`validate_password`], or the text is not a crypt hash of SHA-256 or SHA-512.
pub fn password_hash(password: &str, is_hashed: bool) -> Result<String, CommandError> {
    validate_password(password)?;
    let invalid = |details: &str| Err(CommandError::new(ErrorKind::InvalidCommandParamsError, details));
    match (is_hashed, password) {
        (true, hash) if is_crypt_hash(hash) => Ok(hash.to_owned()),
        (true, _) => invalid(
            "rescue_password is not a crypt hash of SHA-256 ($5$) or SHA-512 ($6$): \
             set [conductor]rescue_password_hash_algorithm to one of them",
        ),
        (false, text) => Ok(sha256_crypt::hash(text.as_bytes(), &salt())),
    }
}

/// Whether the text is `$5$` or `$6$`, perhaps `rounds=<number>$`, a salt, `$` and a hash.
///
/// It goes into the password file of the ramdisk, so that nothing else may hide in it.
fn is_crypt_hash(text: &str) -> bool {
    let (rest, length) = match (text.strip_prefix("$5$"), text.strip_prefix("$6$")) {
        (Some(rest), _) => (rest, 43),
        (_, Some(rest)) => (rest, 86),
        _ => return false,
    };
    let rest = match rest.strip_prefix("rounds=").map(|rest| rest.split_once('$')) {
        Some(Some((rounds, rest))) if rounds.parse::<u32>().is_ok() => rest,
        Some(_) => return false,
        None => rest,
    };
    let is_plain = |text: &str| text.bytes().all(|byte| ALPHABET.contains(&byte));
    rest.split_once('$').is_some_and(|(salt, hash)| {
        salt.len() <= MAX_SALT && is_plain(salt) && hash.len() == length && is_plain(hash)
    })
}

/// A salt from the system's random numbers (S24).
fn salt() -> String {
    let mut random = rand::rng();
    (0..MAX_SALT).map(|_| char::from(ALPHABET[random.random_range(0..ALPHABET.len())])).collect()
}

/// Stores the hash below `root`, readable by its owner.
///
/// # Errors
///
/// The ramdisk has no login service, or the file cannot be written.
pub fn store(root: &Path, hash: &str) -> Result<(), CommandError> {
    try_store(root, hash).map_err(|error| {
        let details = format!(
            "/{PASSWORD_FOLDER}/{PASSWORD_FILE} cannot be written ({error}): boot a ramdisk with a login service for rescue"
        );
        CommandError::new(ErrorKind::CommandExecutionError, details)
    })
}

fn try_store(root: &Path, hash: &str) -> io::Result<()> {
    let path = root.join(PASSWORD_FOLDER).join(PASSWORD_FILE);
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(hash.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn s19_only_hashes_that_log_in_are_accepted() {
        let (short, long) = ("a".repeat(43), "Z/".repeat(43));
        for (hash, expected) in [
            (format!("$5$salt${short}"), true),
            (format!("$6$salt${long}"), true),
            (format!("$6$rounds=5000$salt${long}"), true),
            (format!("$6$rounds=many$salt${long}"), false),
            (format!("$6$salt${short}"), false),
            (format!("$1$salt${short}"), false),
            (format!("$6$salt:x${long}"), false),
            (format!("$5$salt${}\n", "a".repeat(42)), false),
            (format!("$5$seventeen-letters${short}"), false),
            ("$5$salt".to_owned(), false),
            ("secret".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(password_hash(&hash, true).ok(), expected.then(|| hash.clone()), "{hash}");
        }
    }

    #[test]
    fn s19_s24_plain_text_is_hashed_with_a_fresh_random_salt() {
        let (one, other) = (password_hash("secret", false).unwrap(), password_hash("secret", false).unwrap());
        assert!(is_crypt_hash(&one) && one.starts_with("$5$"), "{one}");
        assert_ne!(one, other);
        assert!(password_hash("", false).is_err());
    }

    #[test]
    fn x46_a_password_that_takes_long_to_hash_is_refused() {
        for (length, is_accepted) in
            [(1, true), (MAX_PASSWORD, true), (MAX_PASSWORD + 1, false), (100 << 10, false)]
        {
            for is_hashed in [false, true] {
                let outcome = password_hash(&"x".repeat(length), is_hashed);
                assert_eq!(outcome.is_ok(), is_accepted && !is_hashed, "{length} {is_hashed}");
                let is_of_length = outcome.is_err_and(|error| error.details.contains("at most 511"));
                assert_eq!(is_of_length, !is_accepted, "{length} {is_hashed}");
            }
        }
    }

    #[test]
    fn the_hash_is_private_and_needs_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let error = store(root.path(), "$5$").unwrap_err();
        assert!(error.details.contains("/etc/ipa-rescue-config/ipa-rescue-password"), "{}", error.details);
        let directory = root.path().join(PASSWORD_FOLDER);
        fs::create_dir_all(&directory).unwrap();
        store(root.path(), "$5$").unwrap();
        assert_eq!(fs::read_to_string(directory.join(PASSWORD_FILE)).unwrap(), "$5$");
        let mode = fs::metadata(directory.join(PASSWORD_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
