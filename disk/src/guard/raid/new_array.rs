//! Arrays that may be written because of what they lie on: the content of their members is nobody's.

use crate::device::BlockDevice;
use crate::error::Error;
use crate::io::WritableDisk;
use crate::md::MemberDevice;
use crate::md::array::Array;
use std::path::{Path, PathBuf};

/// Opens `array`, which has exactly these members, for writing.
///
/// # Errors
///
/// [`Error::Raid`] when it is another array, or those of [`RootDisk::open`](crate::RootDisk::open).
pub fn open_array(array: &Array, members: &[MemberDevice]) -> Result<WritableDisk, Error> {
    require_members(array, members)?;
    WritableDisk::open(&BlockDevice::describe(Path::new("/sys"), &array.kernel_name)?)
}

fn require_members(array: &Array, members: &[MemberDevice]) -> Result<(), Error> {
    let name = |member: &MemberDevice| member.path().strip_prefix("/dev").ok().map(Path::to_owned);
    let mut wanted: Vec<_> = members.iter().filter_map(name).collect();
    wanted.sort();
    if array.members.iter().map(PathBuf::from).eq(wanted.iter().cloned()) {
        return Ok(());
    }
    let wanted: Vec<_> = wanted.iter().map(|member| member.display().to_string()).collect();
    let reason = format!("its members are {}, not {}", array.members.join(", "), wanted.join(", "));
    Err(Error::Raid { device: array.path(), reason })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d20_an_array_with_other_members_is_not_opened() {
        let array = |members: &[&str]| Array {
            kernel_name: "md0".to_owned(),
            name: Some("any:os".to_owned()),
            level: Some("raid1".to_owned()),
            members: members.iter().map(|member| (*member).to_owned()).collect(),
            wanted_members: members.len(),
            is_active: true,
        };
        let made = ["/dev/vdb2", "/dev/vda2"].map(|path| MemberDevice::at(path.into()));
        require_members(&array(&["vda2", "vdb2"]), &made).unwrap();
        for others in [&["vda2"][..], &["vda2", "vdb3"], &["vda2", "vdb2", "vdc2"], &[]] {
            let text = require_members(&array(others), &made).unwrap_err().to_string();
            assert!(text.contains("md0") && text.contains("not vda2, vdb2"), "{text}");
        }
    }
}
