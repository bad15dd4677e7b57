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

use crate::state::StateDir;
use crate::state::token;
use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};
use farrier_node_api::authorization::Role;
use std::path::PathBuf;

/// Options that say which file it is.
#[derive(Debug, Args)]
pub(crate) struct AuthFile {
    /// File of the operators: lines as in Ironic's http_basic_auth_user_file, with `:reader` after those who may only
    /// look [default: STATE_DIR/operators].
    #[arg(long, global = true, value_name = "FILE", env = "FARRIER_AUTH_FILE")]
    auth_file: Option<PathBuf>,
}

impl AuthFile {
    pub(crate) fn path(&self, state: &StateDir) -> PathBuf {
        self.auth_file.clone().unwrap_or_else(|| state.operators())
    }
}

/// `farrier auth`. A conductor takes up a change within seconds.
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Add a user, or give one a new password: asked for on the terminal, else the first line of the input.
    Add {
        name: String,
        /// admin, or reader, who may only look.
        #[arg(long)]
        role: Role,
        /// Work of a check, two to the power of it rounds.
        #[arg(long, value_name = "COST", default_value_t = bcrypt::DEFAULT_COST, value_parser = clap::value_parser!(u32).range(4..=16))]
        bcrypt_cost: u32,
    },
    /// Make a token for a program, in place of the one that it has, and print it; it cannot be shown again.
    Token {
        name: String,
        /// admin, or reader, which may only look.
        #[arg(long)]
        role: Role,
    },
    /// Remove a user or a token.
    Remove { name: String },
    /// List who there is.
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
                users_file::check_name(&name).map_err(|reason| anyhow!(reason))?;
                let credential = Credential::Password(password::hash(&password::ask()?, bcrypt_cost)?);
                UsersFile::change(&file, |users| users.set(Entry { name, credential, role }))?;
            }
            Self::Token { name, role } => {
                users_file::check_name(&name).map_err(|reason| anyhow!(reason))?;
                let token = token::new();
                let credential = Credential::of_token(token.as_bytes());
                UsersFile::change(&file, |users| users.set(Entry { name, credential, role }))?;
                println!("{token}");
            }
            Self::Remove { name } => {
                if !UsersFile::change(&file, |users| users.remove(&name))? {
                    bail!("nobody in {} has the name {name:?}", file.display());
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
