//! What of a device its array uses: the bytes that are written when all of the array is, and those by which the array is
//! found again. The kernel says so while the array runs, and a layout that is not known here covers nothing.

use crate::map::Ranges;
use crate::md::array;
use crate::md::superblock::Superblock;
use crate::table::read_exact_at;
use farrier_linux::sysfs;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Unit of sysfs and of superblocks, whatever the sectors of the device.
const SECTOR: u64 = 512;
/// Unit in which the kernel writes superblocks and bitmaps.
const PAGE: u64 = 4096;
/// Formats whose superblocks are known.
const FORMATS: [&str; 3] = ["1.0", "1.1", "1.2"];
/// Features of a superblock: a bitmap, a member that is being rebuilt, a list of bad blocks, the layout of a stripe.
/// Others, such as journals and changes of the layout, use places of their own (Linux, `md_p.h`).
const BITMAP: u32 = 1;
const KNOWN_FEATURES: u32 = BITMAP | 2 | 8 | 4096;
/// First bytes of a bitmap, and where in it the sectors that it is for and the bytes of a chunk are (`md-bitmap.h`).
const BITMAP_MAGIC: &[u8] = b"bitm";
const BITMAP_SECTORS: usize = 40;
const BITMAP_CHUNK: usize = 52;
const BITMAP_HEADER: u64 = 256;
/// Largest bitmap that is left as it is: mdadm makes them a tenth of that at most.
const MAX_BITMAP: u64 = 1 << 20;

/// A member of an array, by its place on a disk. Offsets are bytes of the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoveredMember {
    /// The sysfs directory of the disk.
    pub disk: PathBuf,
    /// The partition, or all of the disk.
    pub place: Range<u64>,
    /// What is written with the array. A spare has nothing.
    pub data: Range<u64>,
    /// Superblock and bitmap.
    pub metadata: Ranges,
}

/// The members of the running array in `directory` of sysfs.
///
/// # Errors
///
/// Why it is not known what of them the array covers.
pub fn members(directory: &Path) -> Result<Vec<CoveredMember>, String> {
    let attributes = directory.join("md");
    let text = |name: &str| sysfs::attribute(&attributes, name).unwrap_or_default();
    let format = text("metadata_version");
    if !FORMATS.contains(&format.as_str()) {
        return Err(format!("its superblocks have the format {format:?}"));
    }
    let devices = devices(directory);
    let geometry = Geometry {
        level: text("level"),
        disks: number(&attributes, "raid_disks")?,
        layout: number(&attributes, "layout").unwrap_or_default(),
        chunk: number(&attributes, "chunk_size").unwrap_or_default() / SECTOR,
        component: number(&attributes, "component_size").unwrap_or_default() * 2,
    };
    let mut sizes = Vec::new();
    for device in devices.iter().filter(|device| device.is_in_use()) {
        sizes.push(number(&device.attributes, "size")? * 2);
    }
    let size = number(directory, "size")?;
    if geometry.array_size(&sizes)? != size {
        return Err(format!("it has {size} sectors, which its layout does not explain"));
    }
    devices.iter().map(|device| device.covered(&geometry)).collect()
}

/// What is wrong with the running array in `directory` of sysfs; nothing when all of its members have what it has.
pub fn fault(directory: &Path) -> Option<String> {
    let attributes = directory.join("md");
    let missing = sysfs::number::<u64>(&attributes, "degraded").unwrap_or_default();
    let wanted = sysfs::number::<usize>(&attributes, "raid_disks").unwrap_or_default();
    let devices = devices(directory);
    let in_use = devices.iter().filter(|device| device.is_in_use()).count();
    if missing > 0 || in_use < wanted {
        return Some(format!("{in_use} of {wanted} members are in step"));
    }
    devices.iter().find_map(|device| {
        let state = sysfs::attribute(&device.attributes, "state").unwrap_or_default();
        let bad = ["bad_blocks", "unacknowledged_bad_blocks"];
        let has_bad = bad.iter().any(|name| sysfs::attribute(&device.attributes, name).is_some());
        if state.contains("faulty") {
            Some(format!("{} is faulty", device.name))
        } else {
            has_bad.then(|| format!("{} has blocks that cannot be written", device.name))
        }
    })
}

/// What the kernel says of a member.
struct Device {
    /// Its kernel name.
    name: String,
    /// The folder with what the array says of it.
    attributes: PathBuf,
    /// Its own folder.
    directory: PathBuf,
}

fn devices(directory: &Path) -> Vec<Device> {
    let attributes = directory.join("md");
    let names = sysfs::entries(&attributes).into_iter();
    let device = |entry: String| {
        let name = entry.strip_prefix("dev-")?.to_owned();
        let linked = directory.join("slaves").join(&name);
        let directory = linked.canonicalize().unwrap_or(linked);
        Some(Device { name, attributes: attributes.join(entry), directory })
    };
    names.filter_map(device).collect()
}

impl Device {
    /// Whether it has what the array has. A spare has not, nor one that is being rebuilt.
    fn is_in_use(&self) -> bool {
        let state = sysfs::attribute(&self.attributes, "state").unwrap_or_default();
        state.split(',').any(|word| word.trim() == "in_sync")
            && sysfs::number::<u32>(&self.attributes, "slot").is_some()
    }

    fn covered(&self, geometry: &Geometry) -> Result<CoveredMember, String> {
        let is_partition = self.directory.join("partition").exists();
        let disk = if is_partition { self.directory.parent() } else { Some(self.directory.as_path()) };
        let disk = disk.ok_or_else(|| format!("{} is no disk", self.name))?.to_owned();
        if array::is_array(&disk) || disk.join("dm").exists() {
            return Err(format!("{} lies on other devices", self.name));
        }
        let start = if is_partition { number(&self.directory, "start")? * SECTOR } else { 0 };
        let size = number(&self.directory, "size")? * SECTOR;
        let first = start + number(&self.attributes, "offset")? * SECTOR;
        let length = number(&self.attributes, "size")? * 2;
        let length = if self.is_in_use() { geometry.covered(length)? * SECTOR } else { 0 };
        let data = first..first + length;
        let metadata: Ranges =
            self.metadata()?.iter().map(|range| start + range.start..start + range.end).collect();
        if data.end > start + size
            || metadata.overlap(&data)
            || metadata.iter().any(|one| one.end > start + size)
        {
            return Err(format!("{} is smaller than its data", self.name));
        }
        Ok(CoveredMember { disk, place: start..start + size, data, metadata })
    }

    /// Where on it superblock and bitmap are.
    fn metadata(&self) -> Result<Ranges, String> {
        let failed = |error| format!("{} cannot be read: {error}", self.name);
        let mut source = File::open(sysfs::node(&self.directory)).map_err(failed)?;
        let size = source.seek(SeekFrom::End(0)).map_err(failed)?;
        let found = Superblock::find(&mut source, 0, size).map_err(failed)?;
        let superblock = found.ok_or_else(|| format!("{} has no superblock", self.name))?;
        if superblock.features & !KNOWN_FEATURES != 0 {
            return Err(format!("{} has the features {:#x}", self.name, superblock.features));
        }
        let mut bitmap = 0..0;
        if superblock.features & BITMAP != 0 {
            let start = superblock.place.checked_add_signed(i64::from(superblock.bitmap) * SECTOR as i64);
            let start = start.ok_or_else(|| format!("{} has its bitmap nowhere", self.name))?;
            let mut header = [0; BITMAP_HEADER as usize];
            read_exact_at(&mut source, start, &mut header).map_err(failed)?;
            let length = bitmap_length(&header).ok_or_else(|| format!("{} has an odd bitmap", self.name))?;
            bitmap = start..start + length;
        }
        Ok([superblock.place..superblock.place + PAGE, bitmap].into_iter().collect())
    }
}

/// Bytes of a bitmap with this header, in whole pages.
fn bitmap_length(header: &[u8]) -> Option<u64> {
    let sectors = u64::from_le_bytes(header.get(BITMAP_SECTORS..BITMAP_SECTORS + 8)?.try_into().ok()?);
    let chunk = u64::from(u32::from_le_bytes(header.get(BITMAP_CHUNK..BITMAP_CHUNK + 4)?.try_into().ok()?));
    if !header.starts_with(BITMAP_MAGIC) || chunk < SECTOR {
        return None;
    }
    let bits = sectors.div_ceil(chunk / SECTOR);
    let length = (BITMAP_HEADER + bits.div_ceil(8)).next_multiple_of(PAGE);
    (length <= MAX_BITMAP).then_some(length)
}

/// How an array lays its content out, in sectors.
struct Geometry {
    level: String,
    disks: u64,
    layout: u64,
    chunk: u64,
    component: u64,
}

impl Geometry {
    /// What of a member with `size` sectors for data is written with the array.
    fn covered(&self, size: u64) -> Result<u64, String> {
        Ok(match self.level.as_str() {
            "raid0" => self.whole_chunks(size)?,
            "raid1" => self.component,
            "raid4" | "raid5" | "raid6" => self.whole_chunks(self.component)?,
            "raid10" => {
                let whole = self.whole_chunks(self.component)?;
                // Where the copies do not come out even, the last row is not full.
                if (whole / self.chunk * self.disks).is_multiple_of(self.copies()?) {
                    whole
                } else {
                    whole - self.chunk
                }
            }
            other => return Err(format!("its level is {other:?}")),
        })
    }

    /// What an array of members in use with these sectors for data has.
    fn array_size(&self, sizes: &[u64]) -> Result<u64, String> {
        Ok(match self.level.as_str() {
            "raid0" => sizes.iter().map(|size| self.whole_chunks(*size)).sum::<Result<_, _>>()?,
            "raid4" | "raid5" => self.whole_chunks(self.component)? * self.disks.saturating_sub(1),
            "raid6" => self.whole_chunks(self.component)? * self.disks.saturating_sub(2),
            "raid10" => self.component / self.chunk.max(1) * self.disks / self.copies()? * self.chunk,
            _ => self.component,
        })
    }

    fn whole_chunks(&self, sectors: u64) -> Result<u64, String> {
        if self.chunk == 0 {
            return Err("its chunks have no size".to_owned());
        }
        Ok(sectors - sectors % self.chunk)
    }

    /// Copies of a RAID 10 that lie beside each other. Those of other layouts lie elsewhere on the members.
    fn copies(&self) -> Result<u64, String> {
        let (near, far) = (self.layout & 0xff, self.layout >> 8 & 0xff);
        if near == 0 || far != 1 {
            return Err(format!("its layout is {:#x}", self.layout));
        }
        Ok(near)
    }
}

fn number(directory: &Path, name: &str) -> Result<u64, String> {
    sysfs::number(directory, name).ok_or_else(|| format!("{} has no {name}", directory.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(level: &str, disks: u64, layout: u64, component: u64) -> Geometry {
        Geometry { level: level.to_owned(), disks, layout, chunk: 1024, component }
    }

    #[test]
    fn g01_every_level_covers_what_it_writes_and_no_sector_more() {
        for (level, disks, layout, component, covered, size) in [
            ("raid1", 2, 0, 10_001, 10_001, 10_001),
            ("raid0", 2, 0, 0, 9216, 18_432),
            ("raid5", 3, 2, 10_001, 9216, 18_432),
            ("raid6", 4, 2, 10_001, 9216, 18_432),
            ("raid10", 4, 0x102, 10_001, 9216, 18_432),
            ("raid10", 3, 0x102, 9216, 8192, 13 * 1024),
        ] {
            let geometry = geometry(level, disks, layout, component);
            assert_eq!(geometry.covered(10_001), Ok(covered), "{level}");
            assert_eq!(geometry.array_size(&[10_001, 9_500]), Ok(size), "{level}");
        }
        for (level, layout) in [("linear", 0), ("raid10", 0x201), ("raid10", 0x1_0201), ("", 0)] {
            assert!(geometry(level, 2, layout, 10_240).covered(10_240).is_err(), "{level} {layout:#x}");
        }
        let chunkless = Geometry { chunk: 0, ..geometry("raid5", 3, 2, 10_240) };
        assert!(chunkless.covered(10_240).is_err() && chunkless.array_size(&[]).is_err());
    }

    #[test]
    fn g01_a_bitmap_is_as_long_as_its_array_needs_and_hides_nothing_more() {
        let header = |sectors: u64, chunk: u32| {
            let mut header = [0; BITMAP_HEADER as usize];
            header[..4].copy_from_slice(BITMAP_MAGIC);
            header[BITMAP_SECTORS..BITMAP_SECTORS + 8].copy_from_slice(&sectors.to_le_bytes());
            header[BITMAP_CHUNK..BITMAP_CHUNK + 4].copy_from_slice(&chunk.to_le_bytes());
            header
        };
        for (sectors, chunk, expected) in [
            (200 << 21, 64 << 20, Some(4096)),
            (8 << 31, 64 << 20, Some(20_480)),
            (8 << 31, 4096, None),
            (1, 0, None),
            (u64::MAX, 512, None),
        ] {
            assert_eq!(bitmap_length(&header(sectors, chunk)), expected, "{sectors} {chunk}");
        }
        assert_eq!(bitmap_length(&[0; 256]), None);
    }
}
