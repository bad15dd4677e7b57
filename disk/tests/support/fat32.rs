//! Files in FAT32 volumes of few clusters, which mkfs.vfat makes and neither mtools nor crates write to.

/// Puts a file into an empty volume, in folders each of which has one cluster. Names are padded with blanks.
pub fn put(volume: &mut [u8], folders: &[&[u8; 11]], name: &[u8; 11], content: &[u8]) {
    let small = |offset: usize| usize::from(u16::from_le_bytes([volume[offset], volume[offset + 1]]));
    let (sector, tables, root) = (small(11), usize::from(volume[16]), small(44));
    let (cluster, table) = (usize::from(volume[13]) * sector, small(14) * sector);
    let length = (small(36) | small(38) << 16) * sector;
    let first = root + 1 + folders.len();
    let place = |number: usize| table + tables * length + (number - 2) * cluster;
    let mut link = |number: usize, next: u32| {
        for copy in 0..tables {
            volume[table + copy * length + number * 4..][..4].copy_from_slice(&next.to_le_bytes());
        }
    };
    let clusters = content.len().div_ceil(cluster);
    (0..clusters).for_each(|index| {
        let next = if index + 1 == clusters { 0x0fff_ffff } else { first + index + 1 };
        link(first + index, next as u32);
    });
    (0..folders.len()).for_each(|index| link(root + 1 + index, 0x0fff_ffff));
    volume[place(first)..][..content.len()].copy_from_slice(content);
    let is_free = |entry: &[u8]| entry[0] == 0;
    let mut add = |folder: usize, name: &[u8; 11], attributes: u8, start: usize, size: usize| {
        let entries = &mut volume[place(folder)..][..cluster];
        let entry = entries.chunks_exact_mut(32).find(|entry| is_free(entry)).unwrap();
        entry[..11].copy_from_slice(name);
        entry[11] = attributes;
        entry[20..22].copy_from_slice(&((start >> 16) as u16).to_le_bytes());
        entry[26..28].copy_from_slice(&(start as u16).to_le_bytes());
        entry[28..32].copy_from_slice(&(size as u32).to_le_bytes());
    };
    let mut folder = root;
    for (number, name) in (root + 1..).zip(folders) {
        add(folder, name, 0x10, number, 0);
        add(number, b".          ", 0x10, number, 0);
        add(number, b"..         ", 0x10, if folder == root { 0 } else { folder }, 0);
        folder = number;
    }
    add(folder, name, 0x20, first, content.len());
}
