//! Who may operate a conductor, and `farrier auth`, which changes that.

mod keystone;
mod operators;
mod password;
mod password_cache;
mod rate_limit;
mod shown;
mod users_file;

pub(crate) use keystone::Keystone;
pub(crate) use operators::{Anybody, Operators};
pub(crate) use users_file::{Credential, Entry, UsersFile};

use crate::failure::{INVALID_OPTION, WithCode, coded};
use crate::state::StateDir;
use crate::state::token;
use clap::{Args, Subcommand};
use farrier_access::Role;
use std::path::PathBuf;

/// The operators file.
#[derive(Debug, Args)]
pub(crate) struct AuthFile {
    /// Operators file, in the format of Ironic's http_basic_auth_user_file; `:reader` at the end of a line
    /// restricts a user to reading [default: STATE_DIR/operators].
    #[arg(long, global = true, value_name = "FILE", env = "FARRIER_AUTH_FILE")]
    auth_file: Option<PathBuf>,
}

impl AuthFile {
    pub(crate) fn path(&self, state: &StateDir) -> PathBuf {
        self.auth_file.clone().unwrap_or_else(|| state.operators())
    }
}

/// Manages the operators. A running conductor applies changes within seconds.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Add a user, or change a password, which is read from the terminal or from the first line of standard input.
    Add {
        /// Name of the user.
        name: String,
        /// Role of the user: admin, or reader (read-only).
        #[arg(long)]
        role: Role,
        /// Cost of the bcrypt hash: the logarithm of its rounds.
        #[arg(long, value_name = "COST", default_value_t = bcrypt::DEFAULT_COST, value_parser = clap::value_parser!(u32).range(4..=16))]
        bcrypt_cost: u32,
    },
    /// Create or replace a token for a program, and print it. It cannot be shown again.
    Token {
        /// Name of the token.
        name: String,
        /// Role of the token: admin, or reader (read-only).
        #[arg(long)]
        role: Role,
    },
    /// Remove a user or a token.
    Remove {
        /// Name of the user or the token.
        name: String,
    },
    /// List users and tokens.
    List,
}

impl AuthCommand {
    pub(crate) fn run(self, file: &AuthFile, state: &StateDir) -> anyhow::Result<()> {
        if file.auth_file.is_none() && matches!(self, Self::Add { .. } | Self::Token { .. }) {
            state.make()?;
        }
        let file = file.path(state);
        match self {
            Self::Add { name, role, bcrypt_cost } => {
                users_file::check_name(&name).map_err(|reason| coded(INVALID_OPTION, reason))?;
                let password = password::ask().code(INVALID_OPTION)?;
                let credential = Credential::Password(password::hash(&password, bcrypt_cost)?);
                UsersFile::change(&file, |users| users.set(Entry { name, credential, role }))?;
            }
            Self::Token { name, role } => {
                users_file::check_name(&name).map_err(|reason| coded(INVALID_OPTION, reason))?;
                let token = token::new();
                let credential = Credential::of_token(token.as_bytes());
                UsersFile::change(&file, |users| users.set(Entry { name, credential, role }))?;
                println!("{token}");
            }
            Self::Remove { name } => {
                if !UsersFile::change(&file, |users| users.remove(&name))? {
                    let text = format!("{} has no user or token {name:?}", file.display());
                    return Err(coded(INVALID_OPTION, text));
                }
            }
            Self::List => {
                for entry in UsersFile::read(&file)?.entries() {
                    println!("{:<24} {:<8} {}", entry.name, entry.credential.kind(), entry.role);
                }
            }
        }
        Ok(())
    }
}
