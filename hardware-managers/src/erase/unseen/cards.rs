//! SD cards and eMMC devices: those that are no block device, and the area that nothing erases.

use super::{Examination, Storage, names_of_controller};
use farrier_linux::sysfs;
use std::path::Path;

/// Kinds of cards that hold data; the others are network cards and similar ones.
const STORAGE: [&str; 3] = ["MMC", "SD", "SDcombo"];

/// Examines the cards in the sysfs mounted at `sysfs`.
pub fn examine(sysfs: &Path, examination: &mut Examination) {
    let cards = sysfs.join("bus/mmc/devices");
    for name in sysfs::entries(&cards) {
        let card = cards.join(&name);
        let kind = sysfs::attribute(&card, "type").unwrap_or_default();
        if !STORAGE.contains(&kind.as_str()) {
            continue;
        }
        let model = sysfs::attribute(&card, "name").unwrap_or_default();
        let mut names = vec![name.clone()];
        names.extend(names_of_controller(&card));
        let blocks = sysfs::entries(&card.join("block"));
        match blocks.first() {
            Some(block) => examination.examined(format!("{name} ({kind} {model}): the block device {block}")),
            None => {
                let text = format!(
                    "the {kind} card {name} ({model}) has no block device: look at the kernel log, replace it, or pack \
                     the module mmc_block"
                );
                examination.unseen(Storage::Card, names.clone(), text);
            }
        }
        if has_protected_area(&card) {
            let text = format!(
                "the replay protected area (RPMB) of {name} ({model}) is not erased: only who has its key can write it"
            );
            examination.unseen(Storage::ReplayProtected, names, text);
        }
    }
}

/// The size of the area, as its register has it.
fn has_protected_area(card: &Path) -> bool {
    let size = sysfs::attribute(card, "raw_rpmb_size_mult").unwrap_or_default();
    u32::from_str_radix(size.trim_start_matches("0x"), 16).is_ok_and(|size| size > 0)
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    #[test]
    fn a12_g03_a_card_without_a_block_device_is_missed_and_rpmb_is_listed() {
        for (kind, block, size, expected) in [
            ("MMC", Some("mmcblk0"), Some("0x000020"), &[Storage::ReplayProtected][..]),
            ("MMC", Some("mmcblk0"), Some("0x000000"), &[]),
            ("SD", Some("mmcblk0"), None, &[]),
            ("SD", None, None, &[Storage::Card]),
            ("MMC", None, Some("0x80"), &[Storage::Card, Storage::ReplayProtected]),
            ("SDIO", None, None, &[]),
        ] {
            let tree = Tree::new();
            tree.write("bus/mmc/devices/mmc0:0001/type", kind);
            if let Some(block) = block {
                tree.write(&format!("bus/mmc/devices/mmc0:0001/block/{block}/size"), "1");
            }
            if let Some(size) = size {
                tree.write("bus/mmc/devices/mmc0:0001/raw_rpmb_size_mult", size);
            }
            let mut found = Examination::default();
            examine(tree.path(), &mut found);
            let kinds: Vec<_> = found.unseen.iter().map(|one| one.storage).collect();
            assert_eq!(kinds, expected, "{kind} {size:?}");
        }
    }
}
