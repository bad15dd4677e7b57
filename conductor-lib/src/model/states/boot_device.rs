//! What firmware starts from (section 9.2).

use crate::model::states::named_states;
use serde::{Deserialize, Serialize};
use std::fmt;

named_states! {
    /// What firmware starts from.
    BootDevice {
        /// The network, by PXE.
        Pxe = "pxe",
        /// The disk.
        Disk = "disk",
        /// The drive for CDs, be it a virtual one.
        Cdrom = "cdrom",
        /// Its own setup.
        Bios = "bios",
        /// The disk, in a safe mode.
        Safe = "safe",
        /// A wide area network.
        Wanboot = "wanboot",
        /// A volume by iSCSI.
        Iscsiboot = "iscsiboot",
        /// The floppy, be it a virtual one.
        Floppy = "floppy",
        /// The network, by HTTP of UEFI.
        Uefihttp = "uefihttp",
    }
}
