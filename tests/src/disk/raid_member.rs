//! Members of software RAID, written byte by byte: for arrays that no step of an agent makes, such as those that
//! lie on others.

/// Bytes before what an array keeps on a member.
pub const DATA: u64 = 1 << 20;
/// Where in these the superblock of the format 1.2 lies.
const SUPERBLOCK: usize = 4096;
/// How many roles the superblock has room for.
const ROLES: usize = 128;
/// Role of a member that is none.
const SPARE: u16 = 0xffff;
const SECTOR: u64 = 512;

/// A clean array of two members.
#[derive(Debug, Clone, Copy)]
pub struct RaidArray {
    /// Its name and, repeated, its identity.
    pub name: u8,
    /// 0 or 1.
    pub level: u32,
    /// Bytes of each member, with what is before its data.
    pub member_size: u64,
}

impl RaidArray {
    /// What is before the data of its first member, 0, or its second one, 1 (Linux, `md_p.h`).
    pub fn member(&self, role: u8) -> Vec<u8> {
        let mut superblock = vec![0; 256 + 2 * ROLES];
        let mut put = |offset: usize, bytes: &[u8]| {
            superblock[offset..offset + bytes.len()].copy_from_slice(bytes);
        };
        let sectors = (self.member_size - DATA) / SECTOR;
        // Each member of a mirror has as much as the array; stripes have chunks instead.
        let (used, chunk) = if self.level == 0 { (0, 1024_u32) } else { (sectors, 0) };
        put(0, &0xa92b_4efc_u32.to_le_bytes());
        put(4, &1_u32.to_le_bytes());
        put(16, &[self.name; 16]);
        put(32, &[self.name]);
        put(72, &self.level.to_le_bytes());
        put(80, &used.to_le_bytes());
        put(88, &chunk.to_le_bytes());
        put(92, &2_u32.to_le_bytes());
        put(128, &(DATA / SECTOR).to_le_bytes());
        put(136, &sectors.to_le_bytes());
        put(144, &(SUPERBLOCK as u64 / SECTOR).to_le_bytes());
        put(160, &u32::from(role).to_le_bytes());
        put(168, &[self.name ^ role ^ 0x80; 16]);
        put(200, &1_u64.to_le_bytes());
        // Where the members still differ: nowhere.
        put(208, &u64::MAX.to_le_bytes());
        put(220, &(ROLES as u32).to_le_bytes());
        for place in 0..ROLES {
            let role = if place < 2 { place as u16 } else { SPARE };
            put(256 + 2 * place, &role.to_le_bytes());
        }
        let checksum = checksum(&superblock);
        superblock[216..220].copy_from_slice(&checksum.to_le_bytes());
        let mut start = vec![0; DATA as usize];
        start[SUPERBLOCK..SUPERBLOCK + superblock.len()].copy_from_slice(&superblock);
        start
    }
}

/// The sum of all words, with the overflow added at the end.
fn checksum(superblock: &[u8]) -> u32 {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let sum: u64 = superblock.chunks(4).map(word).sum();
    ((sum & 0xffff_ffff) + (sum >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::Command;

    #[test]
    fn mdadm_reads_a_member() {
        let array = RaidArray { name: b'a', level: 1, member_size: 8 << 20 };
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&array.member(1)).unwrap();
        file.as_file().set_len(array.member_size).unwrap();
        let output = Command::new("mdadm").arg("--examine").arg(file.path()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        for told in [
            "Version : 1.2",
            "Raid Level : raid1",
            "State : clean",
            "- correct",
            "Device Role : Active device 1",
        ] {
            assert!(text.contains(told), "{told}: {text}{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
