//! A rescued machine becomes its user's (section 11.2 of the agent's contract).
//!
//! Nothing of the operator's stays ([`traces`]), the user comes in at a console ([`login`]) or by [`ssh`], and the
//! network becomes that of the user's [`config_drive`].

pub mod config_drive;
pub mod login;
pub mod ssh;
pub mod traces;

/// Folder that the login service of the ramdisk watches, below the root directory.
pub const PASSWORD_FOLDER: &str = "etc/ipa-rescue-config";
/// The file in it, with the hash of the password.
pub const PASSWORD_FILE: &str = "ipa-rescue-password";
