//! Under which terms a disk is exported.

use crate::error::Error;
use std::fmt;

/// Longest name of a target or an initiator, in bytes (RFC 7143, section 4.2.7.1).
const MOST_NAME: usize = 223;
/// Fewest bytes of a secret: 96 bits (RFC 7143, section 9.2.1).
const LEAST_SECRET: usize = 12;
/// Most bytes of a user or a secret that LIO takes.
const MOST_CREDENTIAL: usize = 255;

/// How a disk is exported, and to which initiators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Name of the target.
    pub target: IscsiName,
    /// TCP port of the portal.
    pub port: u16,
    /// Whether initiators may only read.
    pub read_only: bool,
    /// Whether the disk's metadata is wiped before.
    pub wiped: bool,
    /// What initiators prove themselves with; nothing lets them in without.
    pub chap: Option<Chap>,
    /// The initiators that may log in; none admits every initiator.
    pub initiators: Vec<IscsiName>,
}

impl Terms {
    /// The error of an export under these terms.
    pub(super) fn failed(&self, reason: String) -> Error {
        Error::Target { target: self.target.to_string(), reason }
    }
}

/// Name of a target or of an initiator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IscsiName(String);

impl IscsiName {
    /// Takes a name of the forms `iqn.`, `eui.` and `naa.` (RFC 7143, section 4.2.7), in the field `field`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidExport`].
    pub fn parse(field: &'static str, text: &str) -> Result<Self, Error> {
        let reason = if text.len() > MOST_NAME {
            "is longer than 223 bytes"
        } else if !text.bytes().all(|one| one.is_ascii_alphanumeric() || b"-.:_".contains(&one)) {
            "has other characters than letters, digits, hyphens, dots, colons and underscores"
        } else if !is_iqn(text) && !is_number(text, "eui.", &[16]) && !is_number(text, "naa.", &[16, 32]) {
            "is no iSCSI name such as iqn.2008-10.org.openstack:node"
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(Error::InvalidExport { field, reason: format!("{text:?} {reason}") })
    }
}

impl fmt::Display for IscsiName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `iqn.`, year and month, and a name that belonged to somebody then.
fn is_iqn(text: &str) -> bool {
    let Some((date, rest)) = text.strip_prefix("iqn.").and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let mut date = date.split('-').map(|number| (number.len(), number.parse::<u16>().is_ok()));
    let is_date = [date.next(), date.next(), date.next()] == [Some((4, true)), Some((2, true)), None];
    is_date && rest.starts_with(|first: char| first.is_ascii_alphanumeric())
}

fn is_number(text: &str, prefix: &str, lengths: &[usize]) -> bool {
    let digits = text.strip_prefix(prefix).filter(|digits| lengths.contains(&digits.len()));
    digits.is_some_and(|digits| digits.bytes().all(|one| one.is_ascii_hexdigit()))
}

/// A user and a secret of the Challenge Handshake Authentication Protocol.
#[derive(Clone, PartialEq, Eq)]
pub struct Chap {
    /// The user.
    pub user: String,
    /// The secret, which nothing shows.
    pub secret: String,
}

impl Chap {
    /// Takes a user and a secret.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidExport`] when LIO, or a careful initiator, would not take them.
    pub fn new(user: &str, secret: &str) -> Result<Self, Error> {
        let invalid = |field, reason: &str| Err(Error::InvalidExport { field, reason: reason.to_owned() });
        let is_plain =
            |text: &str| text.len() <= MOST_CREDENTIAL && text.bytes().all(|one| one.is_ascii_graphic());
        // LIO takes a text that begins so for none.
        let is_none = |text: &str| text.starts_with("NULL");
        if user.is_empty() || !is_plain(user) || is_none(user) {
            return invalid(
                "chap_user",
                "must be 1 to 255 letters, digits and signs of ASCII, and not begin with NULL",
            );
        }
        if secret.len() < LEAST_SECRET || !is_plain(secret) || is_none(secret) {
            return invalid(
                "chap_password",
                "must be 12 to 255 letters, digits and signs of ASCII, and not begin with NULL",
            );
        }
        Ok(Self { user: user.to_owned(), secret: secret.to_owned() })
    }
}

impl fmt::Debug for Chap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chap").field("user", &self.user).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_standard_and_lead_nowhere_else() {
        for (name, told) in [
            ("iqn.2008-10.org.openstack:1be26c0b-03f2-4d2e-ae87-c02d7f33c123", None),
            ("iqn.1998-01.com.vmware:Host_1-2bd5", None),
            ("eui.02004567A425678D", None),
            ("naa.52004567BA64678D", None),
            ("naa.62004567BA64678D0123456789ABCDEF", None),
            ("", Some("no iSCSI name")),
            ("disk", Some("no iSCSI name")),
            ("iqn.2008-10", Some("no iSCSI name")),
            ("iqn.2008-10.", Some("no iSCSI name")),
            ("iqn.08-10.org.openstack:x", Some("no iSCSI name")),
            ("iqn.2008-10-11.org.openstack:x", Some("no iSCSI name")),
            ("iqn.2008-1x.org.openstack:x", Some("no iSCSI name")),
            ("eui.02004567A425678", Some("no iSCSI name")),
            ("naa.5200", Some("no iSCSI name")),
            ("iqn.2008-10.org/../../core", Some("other characters")),
            ("iqn.2008-10.org.openstack:x y", Some("other characters")),
            ("iqn.2008-10.org.openstack:\n", Some("other characters")),
            ("iqn.2008-10.org.openstack:ü", Some("other characters")),
        ] {
            let outcome = IscsiName::parse("iqn", name).map_err(|error| error.to_string());
            match told {
                None => assert_eq!(outcome.unwrap().to_string(), name),
                Some(told) => {
                    let error = outcome.unwrap_err();
                    assert!(error.starts_with("iqn: ") && error.contains(told), "{name}: {error}");
                }
            }
        }
        let longest = format!("iqn.2008-10.org.openstack:{}", "x".repeat(MOST_NAME - 26));
        assert!(IscsiName::parse("iqn", &longest).is_ok());
        let error = IscsiName::parse("iqn", &format!("{longest}x")).unwrap_err().to_string();
        assert!(error.contains("longer than 223"), "{error}");
    }

    #[test]
    fn s48_secrets_are_long_enough_plain_and_not_shown() {
        let long = "x".repeat(256);
        for (user, secret, field) in [
            ("ann", "correct-horse", None),
            ("", "correct-horse", Some("chap_user")),
            ("an n", "correct-horse", Some("chap_user")),
            ("NULLA", "correct-horse", Some("chap_user")),
            (&long, "correct-horse", Some("chap_user")),
            ("ann", "too-short-1", Some("chap_password")),
            ("ann", "correct horse", Some("chap_password")),
            ("ann", "NULL-and-more", Some("chap_password")),
            ("ann", &long, Some("chap_password")),
        ] {
            let outcome = Chap::new(user, secret);
            match (outcome, field) {
                (Ok(chap), None) => {
                    let shown = format!("{chap:?}");
                    assert!(shown.contains(user) && !shown.contains(secret), "{shown}");
                }
                (Err(Error::InvalidExport { field, reason }), Some(expected)) => {
                    assert_eq!(field, expected);
                    assert!(!reason.contains(secret), "{reason}");
                }
                (outcome, _) => panic!("{user} {secret}: {outcome:?}"),
            }
        }
    }
}
