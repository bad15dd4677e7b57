//! An exported disk as initiators reach it.

use super::error::IscsiError;
use farrier_conductor::deploy::disk_export::{DiskExport, Portal};
use farrier_iscsi::target::{Chap, IscsiName};

/// A disk that is exported for one deployment, with names that are proven to be names and nothing more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogicalUnit {
    /// Where the target listens.
    pub portal: Portal,
    /// Name of the target.
    pub target: IscsiName,
    /// Name of the initiator.
    pub initiator: IscsiName,
    /// By what the initiator proves itself.
    pub chap: Chap,
}

impl LogicalUnit {
    /// What is exported.
    ///
    /// # Errors
    ///
    /// [`IscsiError::Disk`] when a name is none, or the secret unsafe.
    pub fn of(export: &DiskExport) -> Result<Self, IscsiError> {
        Ok(Self {
            portal: export.portal.clone(),
            target: IscsiName::parse("iqn", &export.target)?,
            initiator: IscsiName::parse("initiators", &export.initiator)?,
            chap: Chap::new(&export.chap_user, &export.chap_password)?,
        })
    }

    /// No login succeeded.
    pub(super) fn no_login(&self, reason: impl Into<String>) -> IscsiError {
        let (target, portal) = (self.target.to_string(), self.portal.to_string());
        IscsiError::Login { target, portal, reason: reason.into() }
    }
}
