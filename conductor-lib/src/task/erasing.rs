//! What a task keeps of certificates of erasure.

use super::Task;
use crate::error::Error;
use crate::evidence::erasing::{EraseCertificate, Erasure, InspectedDisk};
use crate::store::CertificateChange;

/// What of the certificates is to be saved.
#[derive(Debug, Default)]
pub(super) struct UnsavedCertificates {
    forgets: bool,
    new: Vec<EraseCertificate>,
}

impl UnsavedCertificates {
    pub(super) fn change(&self) -> CertificateChange<'_> {
        CertificateChange { forgets: self.forgets, new: &self.new }
    }
}

impl Task {
    /// Keeps certificates, which counts once saved.
    pub(crate) fn keep_certificates(&mut self, new: Vec<EraseCertificate>) {
        self.certificates.new.extend(new);
    }

    /// Nothing is proven any more of the disks, which counts once saved.
    pub(crate) fn forget_certificates(&mut self) {
        self.certificates = UnsavedCertificates { forgets: true, new: Vec::new() };
        self.node.driver_internal_info.erasure = None;
    }

    /// Marks whether the disks are proven to be erased, by the certificates that were kept since the last were
    /// forgotten, and by the disks of the last inspection. It counts once saved.
    ///
    /// # Errors
    ///
    /// [`Error::Store`].
    pub(crate) async fn mark_erasure(&mut self) -> Result<(), Error> {
        let UnsavedCertificates { forgets, new } = &self.certificates;
        let mut certificates = match forgets {
            true => Vec::new(),
            false => self.services.store.certificates(self.node.uuid).await?,
        };
        certificates.extend(new.iter().cloned());
        let inspection = self.services.store.inspection(self.node.uuid).await?;
        let inspected = inspection.map(|found| InspectedDisk::of(&found.inventory)).unwrap_or_default();
        let mark = Erasure::proven_by(&certificates, &inspected, self.services.now());
        self.node.driver_internal_info.erasure = Some(mark);
        Ok(())
    }
}
