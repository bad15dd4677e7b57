//! The ways of erasing a disk.

use std::fmt;

/// A way of erasing. Variants of one command set stand from the strongest to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// NVMe Sanitize: the keys are destroyed.
    NvmeSanitizeCrypto,
    /// NVMe Sanitize: every block is erased.
    NvmeSanitizeBlock,
    /// NVMe Sanitize: a pattern is written everywhere.
    NvmeSanitizeOverwrite,
    /// NVMe Format: the key of the namespace is destroyed.
    NvmeFormatCrypto,
    /// NVMe Format: the namespace's blocks are erased.
    NvmeFormatUserData,
    /// ATA Sanitize: the keys are destroyed.
    AtaSanitizeCrypto,
    /// ATA Sanitize: every block is erased.
    AtaSanitizeBlock,
    /// ATA Sanitize: zeros are written everywhere.
    AtaSanitizeOverwrite,
    /// ATA Security Erase, enhanced.
    AtaSecurityEnhanced,
    /// ATA Security Erase.
    AtaSecurity,
    /// SCSI Sanitize: the keys are destroyed.
    ScsiSanitizeCrypto,
    /// SCSI Sanitize: every block is erased.
    ScsiSanitizeBlock,
    /// SCSI Sanitize: zeros are written everywhere.
    ScsiSanitizeOverwrite,
    /// SCSI Format Unit with zeros.
    ScsiFormat,
    /// Every sector is written by this machine.
    Overwrite,
    /// Partition tables and signatures only.
    Metadata,
}

impl Method {
    /// Whether it reaches what the sectors of the disk do not, such as a host protected area: Sanitize is about all
    /// that ever held data (ACS-4, section 4.17; SBC-4, section 4.11; NVM Express Base Specification 2.0, section 8.21).
    pub fn reaches_hidden(self) -> bool {
        matches!(
            self,
            Self::NvmeSanitizeCrypto
                | Self::NvmeSanitizeBlock
                | Self::NvmeSanitizeOverwrite
                | Self::AtaSanitizeCrypto
                | Self::AtaSanitizeBlock
                | Self::AtaSanitizeOverwrite
                | Self::ScsiSanitizeCrypto
                | Self::ScsiSanitizeBlock
                | Self::ScsiSanitizeOverwrite
        )
    }

    /// Name in certificates and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NvmeSanitizeCrypto => "nvme-sanitize-crypto",
            Self::NvmeSanitizeBlock => "nvme-sanitize-block",
            Self::NvmeSanitizeOverwrite => "nvme-sanitize-overwrite",
            Self::NvmeFormatCrypto => "nvme-format-crypto",
            Self::NvmeFormatUserData => "nvme-format-user-data",
            Self::AtaSanitizeCrypto => "ata-sanitize-crypto",
            Self::AtaSanitizeBlock => "ata-sanitize-block",
            Self::AtaSanitizeOverwrite => "ata-sanitize-overwrite",
            Self::AtaSecurityEnhanced => "ata-security-enhanced",
            Self::AtaSecurity => "ata-security",
            Self::ScsiSanitizeCrypto => "scsi-sanitize-crypto",
            Self::ScsiSanitizeBlock => "scsi-sanitize-block",
            Self::ScsiSanitizeOverwrite => "scsi-sanitize-overwrite",
            Self::ScsiFormat => "scsi-format",
            Self::Overwrite => "overwrite",
            Self::Metadata => "metadata",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
