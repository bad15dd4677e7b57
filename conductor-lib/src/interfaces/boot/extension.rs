//! What boot interfaces can do beyond the contract: media of their own, instances in memory, files for boot loaders.

use super::BootContext;
use crate::interfaces::base::InterfaceError;
use crate::model::InterfaceKind::Boot;
use crate::model::{Node, RamdiskInstance};
use async_trait::async_trait;
use std::path::PathBuf;
use std::time::Instant;

/// A file that firmware or a boot loader asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BootFile {
    /// Its content, rendered from the record.
    Text(String),
    /// A file of the conductor's host.
    File(PathBuf),
}

/// What a [boot interface](super::BootInterface) can do beyond contract 6.1. Its methods are called under the node's
/// lease, but for those of boot files.
#[async_trait]
pub trait BootExtension: Send + Sync {
    /// Whether the kernel parameters of the ramdisk reach this machine alone, so that the token of its agent may be among
    /// them: it then proves itself by what only it was given, and not by being the first that asks.
    fn can_provide_config(&self) -> bool {
        false
    }

    /// Whether the ramdisk may read what it was booted from for as long as it runs, and
    /// [`clean_up_ramdisk`](super::BootInterface::clean_up_ramdisk) takes that away: virtual media. Then
    /// [`prepare_instance`](super::BootInterface::prepare_instance) is called when the agent has ended.
    fn runs_from_medium(&self) -> bool {
        false
    }

    /// Whether the conductor serves the medium from which machines start, so that the trace of a boot shows whether
    /// that medium was read.
    fn serves_medium(&self) -> bool {
        false
    }

    /// The conductor's URL as a machine reaches it that is booted like this, given the URL on the conductor's own host.
    fn callback_url(&self, url: &str) -> String {
        url.to_owned()
    }

    /// Has the machine start an instance from now on that is a ramdisk, with its config drive (base64 of gzip, or its
    /// URL) beside it where there is one. Called for those alone that have
    /// [`RamdiskBoot`](super::BootCapability::RamdiskBoot), and with a config drive for those with
    /// [`RamdiskBootConfigdrive`](super::BootCapability::RamdiskBootConfigdrive).
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn prepare_ramdisk_instance(
        &self,
        _boot: BootContext<'_>,
        _instance: &RamdiskInstance,
        _config_drive: Option<&str>,
    ) -> Result<(), InterfaceError> {
        InterfaceError::unsupported(Boot, "prepare_ramdisk_instance")
    }

    /// A file that firmware or a boot loader of the machine asks for by TFTP or HTTP (section 6.4). Nothing when there is
    /// none of this name now.
    ///
    /// # Errors
    ///
    /// [`InterfaceError::Unsupported`] when no client asks.
    async fn get_boot_file(&self, _node: &Node, _name: &str) -> Result<Option<BootFile>, InterfaceError> {
        InterfaceError::unsupported(Boot, "get_boot_file")
    }

    /// Restores the files that this interface keeps for the machine on servers that are not the conductor's, by a record that
    /// was read at this time, and returns whether it keeps anything there. No conductor works on the node, or one begins to.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`]; what is there stays.
    async fn refresh_boot_files(&self, _node: &Node, _seen_at: Instant) -> Result<bool, InterfaceError> {
        Ok(false)
    }
}

/// The extension of an interface that has none.
pub(super) struct NoExtension;

impl BootExtension for NoExtension {}
