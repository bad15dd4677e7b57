//! The password of a rescue, of which the conductor keeps the hash alone (section 2.7).

use crate::model::typed_maps::instance_info::InstanceInfo;
#[cfg(feature = "drivers")]
use crate::model::typed_maps::typed_map::BadValue;
#[cfg(feature = "drivers")]
use rand::{TryRngCore, rngs::OsRng};
#[cfg(feature = "drivers")]
use sha_crypt::{PasswordHasher, ShaCrypt};

/// The keys of `instance_info` that end with a rescue: the password itself, which older conductors kept, and its hash.
const PASSWORD: &str = "rescue_password";
const HASH: &str = "hashed_rescue_password";

#[cfg(feature = "drivers")]
/// Bytes of randomness in a salt; 16 characters as text, the most that crypt(3) looks at.
const SALT_BYTES: usize = 12;

#[cfg(feature = "drivers")]
/// Longest password in bytes, as that of crypt(3): the time to hash one grows with its length.
const MAX_PASSWORD: usize = 511;

/// How passwords of rescues are hashed (`[conductor]rescue_password_hash_algorithm`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PasswordHashAlgorithm {
    /// The `$5$` of crypt(3).
    #[default]
    Sha256,
    /// The `$6$` of crypt(3).
    Sha512,
}

#[cfg(feature = "drivers")]
impl PasswordHashAlgorithm {
    /// The hash of a password, as a password file has it, with a salt of its own.
    ///
    /// # Errors
    ///
    /// The password is empty, or too long.
    pub fn hash(self, password: &str) -> Result<String, BadValue> {
        let refuse = |reason: &str| Err(BadValue::new(InstanceInfo::FIELD, PASSWORD, reason));
        match password.len() {
            0 => return refuse("is empty: a rescued machine needs a password"),
            1..=MAX_PASSWORD => {}
            _ => return refuse("has more than 511 bytes; choose a shorter one"),
        }
        let mut salt = [0; SALT_BYTES];
        OsRng.try_fill_bytes(&mut salt).expect("the kernel has random bytes");
        let hasher = match self {
            Self::Sha256 => ShaCrypt::SHA256,
            Self::Sha512 => ShaCrypt::SHA512,
        };
        match hasher.hash_password_with_salt(password.as_bytes(), &salt) {
            Ok(hash) => Ok(hash.to_string()),
            Err(error) => refuse(&format!("cannot be hashed: {error}")),
        }
    }
}

impl InstanceInfo {
    /// The hash of the password for the next rescue system; nothing when none is wanted, or it has it.
    pub fn hashed_rescue_password(&self) -> Option<&str> {
        self.text(HASH).ok().flatten()
    }

    /// Keeps the hash of the password for the next rescue system.
    pub fn set_hashed_rescue_password(&mut self, hash: String) {
        self.forget_rescue_password();
        self.insert(HASH.to_owned(), hash.into());
    }

    /// Forgets the password of a rescue, however it is kept.
    pub fn forget_rescue_password(&mut self) {
        self.remove(PASSWORD);
        self.remove(HASH);
    }
}

#[cfg(all(test, feature = "drivers"))]
mod tests {
    use super::*;
    use serde_json::json;
    use sha_crypt::PasswordVerifier;

    #[test]
    fn s19_hashes_are_those_that_a_ramdisk_takes_and_no_two_are_the_same() {
        for (algorithm, prefix, length) in
            [(PasswordHashAlgorithm::Sha256, "$5$", 43), (PasswordHashAlgorithm::Sha512, "$6$", 86)]
        {
            let hash = algorithm.hash("oats and barley").unwrap();
            let parts: Vec<_> = hash.split('$').collect();
            assert!(hash.starts_with(prefix), "{hash}");
            assert_eq!((parts[parts.len() - 2].len(), parts[parts.len() - 1].len()), (16, length), "{hash}");
            ShaCrypt::default().verify_password(b"oats and barley", hash.as_str()).unwrap();
            assert!(ShaCrypt::default().verify_password(b"oats", hash.as_str()).is_err());
            assert_ne!(hash, algorithm.hash("oats and barley").unwrap());
        }
    }

    #[test]
    fn passwords_that_nobody_can_use_are_refused_and_not_told() {
        for (password, part) in [(String::new(), "is empty"), ("q".repeat(512), "more than 511 bytes")] {
            let error = PasswordHashAlgorithm::Sha256.hash(&password).unwrap_err().to_string();
            assert!(error.starts_with("instance_info rescue_password ") || error.contains(part), "{error}");
            assert!(error.contains(part) && !error.contains("qq"), "{error}");
        }
    }

    #[test]
    fn both_keys_end_together() {
        let stored = json!({"rescue_password": "clear", "image_source": "http://h/i"});
        let mut info: InstanceInfo = serde_json::from_value(stored).unwrap();
        info.set_hashed_rescue_password("$5$x$y".into());
        assert_eq!(info.hashed_rescue_password(), Some("$5$x$y"));
        assert_eq!(info.get("rescue_password"), None);
        info.forget_rescue_password();
        assert_eq!(info, serde_json::from_value(json!({"image_source": "http://h/i"})).unwrap());
    }
}
