//! Disks with zones: what is done to all of their zones at once.

use super::error::EraseError;
use super::medium::Medium;
use farrier_disk::map::Tables;
use farrier_disk::table::Partition;
use farrier_disk::{Sectors, WritableDisk, wipe};
use farrier_linux::block::zones::Zone;

/// Empties every zone of a disk that is written in order. Nothing happens to any other disk.
///
/// # Errors
///
/// [`EraseError::Disk`].
pub fn reset_all(medium: &dyn Medium) -> Result<(), EraseError> {
    if medium.zones()?.is_empty() { Ok(()) } else { Ok(medium.reset_zones(0, medium.size())?) }
}

/// Removes the metadata of a disk with zones: those that are written in order become empty, and of the conventional
/// ones, which come first, whatever the disk and its partitions are known by is zeroed.
///
/// # Errors
///
/// [`EraseError::Disk`].
pub fn erase_metadata(disk: &WritableDisk) -> Result<(), EraseError> {
    let end = conventional_end(&disk.zones()?);
    // What the tables name tells where signatures are; without it those of the disk itself go.
    let volumes = Tables::read(disk).map(|tables| tables.volumes()).unwrap_or_else(|error| {
        tracing::warn!("signatures in old partitions may stay: {error}");
        Vec::new()
    });
    reset_all(disk)?;
    for volume in within(&volumes, end) {
        wipe::zero_signatures(disk, &volume)?;
    }
    if end > 0 {
        wipe::zero_signatures(disk, &Partition::at(0, end))?;
    }
    Ok(Sectors::flush(disk)?)
}

/// Where the conventional zones end that a disk begins with.
fn conventional_end(zones: &[Zone]) -> u64 {
    let first = zones.iter().take_while(|zone| zone.is_conventional);
    first.last().map_or(0, |zone| zone.start + zone.length)
}

/// Volumes as far as they lie before `end`.
fn within(volumes: &[Partition], end: u64) -> Vec<Partition> {
    let cut = |volume: &Partition| Partition::at(volume.start, volume.size.min(end - volume.start));
    volumes.iter().filter(|volume| volume.start < end && volume.size > 0).map(cut).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g08_only_what_lies_in_conventional_zones_is_zeroed_in_place() {
        let zone = |number: u64, is_conventional| Zone {
            start: number << 20,
            length: 1 << 20,
            capacity: 1 << 20,
            is_conventional,
            is_empty: false,
            is_lost: false,
        };
        for (kinds, expected) in [
            (&[][..], 0),
            (&[false, false], 0),
            (&[true, true, false], 2 << 20),
            // Conventional zones behind others are not those that a disk begins with.
            (&[true, false, true], 1 << 20),
        ] {
            let zones: Vec<_> =
                kinds.iter().enumerate().map(|(number, kind)| zone(number as u64, *kind)).collect();
            assert_eq!(conventional_end(&zones), expected, "{kinds:?}");
        }
        let volumes =
            [Partition::at(0, 100), Partition::at(900, 500), Partition::at(1000, 1), Partition::at(5, 0)];
        let cut: Vec<_> = within(&volumes, 1000).iter().map(|volume| (volume.start, volume.size)).collect();
        assert_eq!(cut, [(0, 100), (900, 100)]);
    }
}
