//! By what partition tables tell the use of a partition: the type in a GPT (a GUID) and in an MBR (a byte).

/// Types in a GPT.
pub mod gpt {
    use uuid::Uuid;

    /// An EFI system partition.
    pub const ESP: Uuid = Uuid::from_u128(0xc12a7328_f81f_11d2_ba4b_00a0c93ec93b);
    /// The place for GRUB's core without UEFI.
    pub const BIOS_BOOT: Uuid = Uuid::from_u128(0x21686148_6449_6e6f_744e_656564454649);
    /// Where firmware of POWER machines finds its loader.
    pub const PREP: Uuid = Uuid::from_u128(0x9e1a2d38_c612_4316_aa26_8b49521e5a8b);
    /// A Linux file system; a config drive has it too.
    pub const LINUX: Uuid = Uuid::from_u128(0x0fc63daf_8483_4772_8e79_3d69d8477de4);
    /// Swap space.
    pub const SWAP: Uuid = Uuid::from_u128(0x0657fd6d_a4ab_43c4_84e5_0933c84b4f4f);
    /// A member of an array.
    pub const RAID: Uuid = Uuid::from_u128(0xa19d880f_05fc_4d3b_a006_743f0f84911e);
    /// A part of a GPFS, which several machines use.
    pub const GPFS: Uuid = Uuid::from_u128(0x37affc90_ef7d_4e96_91c3_2d7ae055b174);
    /// A VMFS, which several machines use.
    pub const VMFS: Uuid = Uuid::from_u128(0xaa31e02a_400f_11db_9590_000c2911d1b8);
}

/// Types in an MBR.
pub mod mbr {
    /// An EFI system partition.
    pub const ESP: u8 = 0xef;
    /// Where firmware of POWER machines finds its loader.
    pub const PREP: u8 = 0x41;
    /// A Linux file system.
    pub const LINUX: u8 = 0x83;
    /// Swap space.
    pub const SWAP: u8 = 0x82;
    /// A member of an array.
    pub const RAID: u8 = 0xfd;
    /// A VMFS, which several machines use.
    pub const VMFS: u8 = 0xfb;
    /// FAT32 with LBA addresses, as parted gives to `fat32`; a config drive has it.
    pub const FAT32_LBA: u8 = 0x0c;
    /// What announces a GPT.
    pub const PROTECTIVE: u8 = 0xee;
    /// A partition that holds logical ones.
    pub const EXTENDED: [u8; 3] = [0x05, 0x0f, 0x85];
    /// FAT of every size.
    pub const FAT: [u8; 6] = [0x01, 0x04, 0x06, 0x0b, FAT32_LBA, 0x0e];
}
