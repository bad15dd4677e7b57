//! A disk with its occupants: where they live, and what became of the table that leads to them.

use crate::content::{Content, Mark};
use crate::tables::{self, Copy, Gpt};
use crate::templates::Template;
use std::ops::Range;

const MIB: u64 = 1 << 20;
/// Room before the occupant's partition, and behind it: there a config drive has to fit.
const BEFORE: u64 = 40 * MIB;
const BEHIND: u64 = 120 * MIB;

/// Of a system that was deployed as a partition image, in MiB: its EFI system partition and its root partition, between
/// which the ephemeral one lies.
pub const ESP: u64 = 64;
pub const ROOT: u64 = 8;

/// Where an occupant lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// On the disk itself.
    Whole,
    /// In a partition of a GPT.
    Gpt,
    /// In a primary partition of an MBR.
    Mbr,
    /// In a logical partition.
    Logical,
    /// Where no table leads: a partition was there once.
    Bare,
    /// In the ephemeral partition of a system that was deployed as a partition image.
    Ephemeral,
}

impl Placement {
    pub const ALL: [Self; 6] =
        [Self::Whole, Self::Gpt, Self::Mbr, Self::Logical, Self::Bare, Self::Ephemeral];

    pub fn name(self) -> &'static str {
        match self {
            Self::Whole => "whole",
            Self::Gpt => "gpt",
            Self::Mbr => "mbr",
            Self::Logical => "logical",
            Self::Bare => "bare",
            Self::Ephemeral => "ephemeral",
        }
    }
}

/// What became of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is as its maker left it.
    Sound,
    /// The first MiB of the disk was zeroed; the backup is intact.
    FirstMibZeroed,
    /// The last MiB of the disk was zeroed.
    LastMibZeroed,
    /// One bit of the header is wrong; the backup is intact.
    HeaderBit,
    /// One bit of the entries is wrong; the backup is intact.
    EntriesBit,
    /// The same in the backup; the primary is intact.
    BackupBit,
    /// The first sector was zeroed, and nothing else.
    ProtectiveLost,
    /// The marks of both headers and of the first sector were zeroed, as `wipefs` leaves a disk.
    MarksWiped,
    /// Both headers were zeroed, and the first sector: only the entries are left.
    HeadersLost,
    /// Somebody partitioned the disk with an MBR and left the GPT alone. The occupant's partition is in the GPT only.
    MbrOver,
    /// The GPT was made for the other sector size.
    OtherSectors,
    /// The MBR names the occupant's partition as well.
    Hybrid,
    /// The partition was removed from the primary table; the backup is older.
    Removed,
    /// The MBR lost its mark, as `wipefs` leaves it.
    Unsigned,
    /// The GPT of an earlier life is still there, in both copies, and names a partition that is no more.
    StaleGpt,
    /// The same, but only its backup.
    StaleBackup,
}

impl State {
    /// Those that a placement can have.
    pub fn of(placement: Placement) -> &'static [Self] {
        match placement {
            Placement::Whole => &[Self::Sound, Self::StaleBackup],
            Placement::Gpt => &[
                Self::Sound,
                Self::FirstMibZeroed,
                Self::LastMibZeroed,
                Self::HeaderBit,
                Self::EntriesBit,
                Self::BackupBit,
                Self::ProtectiveLost,
                Self::MarksWiped,
                Self::HeadersLost,
                Self::MbrOver,
                Self::OtherSectors,
                Self::Hybrid,
                Self::Removed,
            ],
            Placement::Mbr | Placement::Logical => {
                &[Self::Sound, Self::Unsigned, Self::StaleGpt, Self::StaleBackup]
            }
            Placement::Bare | Placement::Ephemeral => &[Self::Sound],
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Sound => "sound",
            Self::FirstMibZeroed => "first-mib-zeroed",
            Self::LastMibZeroed => "last-mib-zeroed",
            Self::HeaderBit => "header-bit",
            Self::EntriesBit => "entries-bit",
            Self::BackupBit => "backup-bit",
            Self::ProtectiveLost => "protective-lost",
            Self::MarksWiped => "marks-wiped",
            Self::HeadersLost => "headers-lost",
            Self::MbrOver => "mbr-over",
            Self::OtherSectors => "other-sectors",
            Self::Hybrid => "hybrid",
            Self::Removed => "removed",
            Self::Unsigned => "unsigned",
            Self::StaleGpt => "stale-gpt",
            Self::StaleBackup => "stale-backup",
        }
    }

    /// Whether no table that anybody believes, and none that is merely damaged, leads to the occupant any more.
    pub fn hides_occupant(self) -> bool {
        matches!(self, Self::MarksWiped | Self::HeadersLost | Self::Unsigned | Self::MbrOver | Self::Removed)
    }

    /// Whether every system sees the same partitions, whatever else is on the disk.
    pub fn is_believed(self) -> bool {
        self.is_plain()
            || matches!(
                self,
                Self::LastMibZeroed | Self::BackupBit | Self::Removed | Self::StaleGpt | Self::StaleBackup
            )
    }

    /// Whether every copy of the table that is there is what its maker wrote, and none contradicts another.
    pub fn is_plain(self) -> bool {
        self == Self::Sound
    }
}

/// A volume of a disk.
#[derive(Debug, Clone)]
pub struct Volume {
    pub range: Range<u64>,
    /// What gives away who lives or lived there, at offsets of the disk.
    pub marks: Vec<Mark>,
}

/// A disk as a step finds it.
#[derive(Debug, Clone)]
pub struct Disk {
    pub content: Content,
    pub size: u64,
    pub sector: u32,
    pub occupant: Volume,
    /// Whoever else lives or lived there.
    pub others: Vec<Volume>,
}

impl Disk {
    /// Every range in which somebody lives or lived, and the disk itself.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let volumes = self.volumes().map(|volume| volume.range.clone());
        let mut ranges: Vec<_> = std::iter::once(0..self.size).chain(volumes).collect();
        ranges.dedup();
        ranges
    }

    /// The occupant and the others.
    pub fn volumes(&self) -> impl Iterator<Item = &Volume> {
        std::iter::once(&self.occupant).chain(&self.others)
    }

    /// A disk with `occupant` where it is to live, `neighbour` beside it, and `former` where a partition was.
    pub fn new(
        placement: Placement,
        state: State,
        sector: u32,
        [occupant, neighbour, former]: [&Template; 3],
    ) -> Self {
        let mut plan = Plan::new(placement, sector, occupant, neighbour, former);
        plan.write_tables(state);
        let Plan { mut content, size, places: [at, beside, once], .. } = plan;
        let mut others = Vec::new();
        if matches!(placement, Placement::Gpt | Placement::Mbr | Placement::Logical) {
            others.push(move_in(&mut content, neighbour, beside.start));
        }
        if plan.has_former {
            others.push(move_in(&mut content, former, once.start));
        }
        let stale = content.clone();
        let occupant = move_in(&mut content, occupant, at.start);
        // An occupant of the whole disk may have written over what was there before, or over what led there.
        let table = size - MIB..size;
        if placement == Placement::Whole && stale.difference(&content, &table).is_some() {
            others.clear();
        }
        for volume in &mut others {
            volume.marks.retain(|mark| content.get(mark.offset, mark.bytes.len()) == mark.bytes);
        }
        Self { content, size, sector, occupant, others }
    }
}

fn move_in(content: &mut Content, template: &Template, start: u64) -> Volume {
    content.overlay(&template.content, start);
    let marks = template.marks.iter();
    let marks = marks.map(|mark| Mark { offset: start + mark.offset, bytes: mark.bytes.clone() });
    Volume { range: start..start + template.size, marks: marks.collect() }
}

/// Where everything goes.
struct Plan {
    content: Content,
    placement: Placement,
    sector: u64,
    size: u64,
    /// Of the occupant, its neighbour, and the partition that is no more.
    places: [Range<u64>; 3],
    has_former: bool,
}

impl Plan {
    fn new(
        placement: Placement,
        sector: u32,
        occupant: &Template,
        neighbour: &Template,
        former: &Template,
    ) -> Self {
        let range = |start: u64, template: &Template| start..start + template.size;
        let length = occupant.size.next_multiple_of(MIB);
        let (size, places) = match placement {
            Placement::Whole => {
                (length, [range(0, occupant), 0..0, range((length / 2).next_multiple_of(MIB), former)])
            }
            Placement::Bare => (length + 2 * MIB, [range(MIB, occupant), 0..0, 0..0]),
            Placement::Ephemeral => {
                (length + (ESP + ROOT) * MIB + 2 * MIB, [range(MIB + ESP * MIB, occupant), 0..0, 0..0])
            }
            _ => (
                length + BEFORE + BEHIND,
                [
                    range(BEFORE, occupant),
                    range(8 * MIB, neighbour),
                    range(BEFORE + length + 15 * MIB, former),
                ],
            ),
        };
        let content = Content::default();
        Self { content, placement, sector: sector.into(), size, places, has_former: false }
    }

    fn write_tables(&mut self, state: State) {
        let [occupant, neighbour, former] = self.places.clone();
        let stale = self.gpt(self.sector, std::slice::from_ref(&former));
        match state {
            State::StaleGpt => stale.write(&mut self.content),
            State::StaleBackup => stale.write_copy(&mut self.content, Copy::Backup),
            _ => {}
        }
        self.has_former = matches!(state, State::StaleGpt | State::StaleBackup | State::MbrOver);
        match self.placement {
            Placement::Whole | Placement::Bare => {}
            Placement::Ephemeral => {
                let partitions =
                    [MIB..occupant.start, occupant.clone(), occupant.end..occupant.end + ROOT * MIB];
                self.gpt(self.sector, &partitions).write(&mut self.content);
            }
            Placement::Mbr => tables::write_mbr(&mut self.content, self.sector, &[neighbour, occupant]),
            Placement::Logical => {
                let extended = occupant.start - 2 * MIB..occupant.end.next_multiple_of(MIB) + 12 * MIB;
                let last = occupant.end.next_multiple_of(MIB) + 2 * MIB;
                let logical = [occupant, last..last + 8 * MIB];
                tables::write_logical(&mut self.content, self.sector, &[neighbour], &extended, &logical);
            }
            Placement::Gpt => self.write_gpt(state),
        }
        if state == State::Unsigned {
            self.content.clear(510..512);
        }
    }

    fn gpt(&self, sector: u64, partitions: &[Range<u64>]) -> Gpt {
        Gpt { sector, size: self.size, partitions: partitions.to_vec() }
    }

    fn write_gpt(&mut self, state: State) {
        let [occupant, neighbour, former] = self.places.clone();
        let other = if self.sector == 512 { 4096 } else { 512 };
        let sector = if state == State::OtherSectors { other } else { self.sector };
        let gpt = self.gpt(sector, &[neighbour.clone(), occupant.clone()]);
        let content = &mut self.content;
        gpt.write(content);
        match state {
            State::FirstMibZeroed => content.clear(0..MIB),
            State::LastMibZeroed => content.clear(self.size - MIB..self.size),
            State::HeaderBit => tables::flip(content, gpt.header_at(Copy::Primary) + 57),
            State::EntriesBit => tables::flip(content, gpt.entries_at(Copy::Primary) + 60),
            State::BackupBit => tables::flip(content, gpt.header_at(Copy::Backup) + 57),
            State::ProtectiveLost => content.clear(0..512),
            State::MarksWiped | State::HeadersLost => {
                let (first, length) = if state == State::MarksWiped { (510..512, 8) } else { (0..512, 92) };
                content.clear(first);
                for copy in [Copy::Primary, Copy::Backup] {
                    let header = gpt.header_at(copy);
                    content.clear(header..header + length);
                }
            }
            State::MbrOver => tables::write_mbr(content, self.sector, &[former]),
            State::Hybrid => tables::write_hybrid(content, self.sector, &[occupant]),
            State::Removed => {
                let newer = Gpt { partitions: vec![neighbour], ..gpt };
                newer.write_copy(content, Copy::Primary);
            }
            _ => {}
        }
    }
}
