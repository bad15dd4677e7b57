//! What files of boot loaders are for.

/// What a boot loader's file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Loads kernel and ramdisk from a CD under BIOS.
    Isolinux,
    /// The library that isolinux loads.
    IsolinuxLibrary,
    /// Starts isolinux when the image is on a disk or USB stick.
    HybridMbr,
    /// The first program under UEFI, signed by Microsoft.
    Shim,
    /// GRUB for CDs, signed by the distribution, whose key shim knows.
    GrubCd,
    /// The same for the network.
    GrubNet,
    /// Head of a unified kernel image.
    Stub,
}
