//! How many sectors a drive has, and how many of them it shows: the host protected area (ACS-2), the accessible
//! maximum address (ACS-3) and the device configuration overlay (ACS-2). Sectors that are not shown are read and
//! written by nothing, and keep their data.

use super::{
    Answer, AtaError, BLOCK_BYTES, DEVICE_LBA, ERROR_ABORTED, IdentifyData, Registers, SHORT_TIMEOUT,
    STATUS_ERROR, pass,
};
use crate::scsi::{ScsiTarget, Transfer};

pub(super) const READ_NATIVE_MAX_ADDRESS_EXT: u8 = 0x27;
pub(super) const SET_MAX_ADDRESS_EXT: u8 = 0x37;
pub(super) const ACCESSIBLE_MAX_ADDRESS: u8 = 0x78;
const READ_NATIVE_MAX_ADDRESS: u8 = 0xf8;
const SET_MAX_ADDRESS: u8 = 0xf9;
const DEVICE_CONFIGURATION: u8 = 0xb1;
const SET_FEATURES: u8 = 0xef;

/// Features of the command Accessible Max Address Configuration.
const GET_NATIVE_MAX: u16 = 0;
const SET_ACCESSIBLE_MAX: u16 = 1;
/// Feature of the command Device Configuration: identify.
const OVERLAY_IDENTIFY: u16 = 0xc2;

/// By what a drive shows fewer sectors than it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The host protected area, set by SET MAX ADDRESS.
    HostProtectedArea,
    /// The accessible maximum address.
    AccessibleMaximum,
    /// The device configuration overlay, which only a restore of all its settings removes.
    Overlay,
}

/// What a drive answers about one limit.
#[derive(Debug)]
pub enum Told {
    /// It has no such feature set, says its identify data.
    Absent,
    /// So many sectors are there without the limit.
    Sectors(u64),
    /// It has the feature set and does not answer.
    Unanswered(AtaError),
}

/// The sectors of a drive.
#[derive(Debug)]
pub struct SectorCounts {
    /// Those that it shows.
    pub shown: u64,
    /// What there is without each limit.
    pub limits: [(Limit, Told); 3],
}

impl SectorCounts {
    /// Asks the drive whose identify data these are. Nothing is changed.
    pub fn ask(target: &impl ScsiTarget, identify: &IdentifyData) -> Self {
        let ask = |is_there: bool, question: &dyn Fn() -> Result<u64, AtaError>| match is_there {
            false => Told::Absent,
            true => question().map_or_else(Told::Unanswered, Told::Sectors),
        };
        let area = ask(identify.has_protected_area(), &|| native_sectors(target, identify));
        let accessible = ask(identify.has_accessible_maximum(), &|| accessible_sectors(target));
        let overlay = ask(identify.has_overlay(), &|| overlay_sectors(target));
        Self {
            shown: identify.sectors(),
            limits: [
                (Limit::HostProtectedArea, area),
                (Limit::AccessibleMaximum, accessible),
                (Limit::Overlay, overlay),
            ],
        }
    }

    /// Sectors that a limit hides; nothing where it hides none, or where the drive does not tell.
    pub fn hidden_by(&self, limit: Limit) -> Option<u64> {
        self.limits.iter().find(|(one, _)| *one == limit).and_then(|(_, told)| match told {
            Told::Sectors(sectors) => sectors.checked_sub(self.shown).filter(|hidden| *hidden > 0),
            Told::Absent | Told::Unanswered(_) => None,
        })
    }
}

/// Has the drive show what a host protected area hides, until the next power cycle.
///
/// # Errors
///
/// [`AtaError`]: the area is frozen or locked by the firmware, or the drive is locked.
pub fn show_protected_area(target: &impl ScsiTarget, identify: &IdentifyData) -> Result<(), AtaError> {
    // The command counts only directly behind the question.
    let last = native_sectors(target, identify)?.checked_sub(1).ok_or(AtaError::Hidden)?;
    let registers = if identify.has_48_bits() {
        Registers { command: SET_MAX_ADDRESS_EXT, lba: last, device: DEVICE_LBA, ..Registers::default() }
    } else {
        let device = DEVICE_LBA | (last >> 24 & 0xf) as u8;
        Registers { command: SET_MAX_ADDRESS, lba: last & 0xff_ffff, device, ..Registers::default() }
    };
    pass(target, registers, Transfer::None, SHORT_TIMEOUT).map(drop)
}

/// Has the drive show what an accessible maximum address hides. It stays so, and a drive does this once between
/// two power cycles.
///
/// # Errors
///
/// [`AtaError`]: it was set or frozen since the last power cycle.
pub fn show_beyond_accessible_maximum(target: &impl ScsiTarget) -> Result<(), AtaError> {
    let last = accessible_sectors(target)?.checked_sub(1).ok_or(AtaError::Hidden)?;
    let registers = Registers {
        command: ACCESSIBLE_MAX_ADDRESS,
        feature: SET_ACCESSIBLE_MAX,
        lba: last,
        device: DEVICE_LBA,
        ..Registers::default()
    };
    pass(target, registers, Transfer::None, SHORT_TIMEOUT).map(drop)
}

/// Has the kernel ask the drive for its size again: libata does so after some settings of features. The setting
/// is given as it is already.
///
/// # Errors
///
/// [`AtaError`]; also where the drive has no such feature.
pub fn set_features_again(target: &impl ScsiTarget, identify: &IdentifyData) -> Result<(), AtaError> {
    let (look_ahead, write_cache) = (6, 5);
    let is_on = |bit: u16| identify.word(85) & 1 << bit != 0;
    let has = |bit: u16| identify.word(82) & 1 << bit != 0;
    let feature = match () {
        () if has(look_ahead) => {
            if is_on(look_ahead) {
                0xaa
            } else {
                0x55
            }
        }
        () if has(write_cache) => {
            if is_on(write_cache) {
                0x02
            } else {
                0x82
            }
        }
        () => return Err(AtaError::Drive { status: STATUS_ERROR, error: ERROR_ABORTED, reason: 0 }),
    };
    let registers = Registers { command: SET_FEATURES, feature, ..Registers::default() };
    pass(target, registers, Transfer::None, SHORT_TIMEOUT).map(drop)
}

fn native_sectors(target: &impl ScsiTarget, identify: &IdentifyData) -> Result<u64, AtaError> {
    let command = if identify.has_48_bits() { READ_NATIVE_MAX_ADDRESS_EXT } else { READ_NATIVE_MAX_ADDRESS };
    let answer = ask(target, Registers { command, device: DEVICE_LBA, ..Registers::default() })?;
    let last = if identify.has_48_bits() {
        answer.lba
    } else {
        // The highest four of 28 bits come in the device register.
        answer.lba & 0xff_ffff | u64::from(answer.device & 0xf) << 24
    };
    Ok(last + 1)
}

fn accessible_sectors(target: &impl ScsiTarget) -> Result<u64, AtaError> {
    let registers = Registers {
        command: ACCESSIBLE_MAX_ADDRESS,
        feature: GET_NATIVE_MAX,
        device: DEVICE_LBA,
        ..Registers::default()
    };
    Ok(ask(target, registers)?.lba + 1)
}

fn ask(target: &impl ScsiTarget, registers: Registers) -> Result<Answer, AtaError> {
    pass(target, registers, Transfer::None, SHORT_TIMEOUT)?.ok_or(AtaError::Hidden)
}

/// Words 3 to 6 of the overlay's data hold the largest address that it can be set to.
fn overlay_sectors(target: &impl ScsiTarget) -> Result<u64, AtaError> {
    let mut data = [0; BLOCK_BYTES];
    let registers = Registers {
        command: DEVICE_CONFIGURATION,
        feature: OVERLAY_IDENTIFY,
        count: 1,
        ..Registers::default()
    };
    pass(target, registers, Transfer::In(&mut data), SHORT_TIMEOUT)?;
    let data = IdentifyData::checked(data).ok_or(AtaError::Hidden)?;
    let last = (3..7).rev().fold(0, |address, word| address << 16 | u64::from(data.word(word)));
    Ok(last.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ata::tests::{identify_data, returned};
    use crate::scsi::tests::Recorded;

    /// 48-bit addresses, look-ahead on, and the given words.
    fn identify(words: &[(usize, u16)]) -> IdentifyData {
        let mut all =
            vec![(60, 0xffff), (61, 0x0fff), (82, 1 << 6), (83, 0x4400), (85, 1 << 6), (100, 0x1000)];
        all.extend_from_slice(words);
        IdentifyData::read(&Recorded::new(&[(0, &[], &identify_data(&all))])).unwrap()
    }

    #[test]
    fn a16_what_a_limit_hides_is_native_less_shown() {
        let area = (82, 1 << 10 | 1 << 6);
        for (words, answers, expected) in [
            // No feature set: nothing is asked.
            (vec![], vec![], [None, None, None]),
            (vec![area], vec![returned(0, 0, 0x0fff, 0x50)], [None, None, None]),
            (vec![area], vec![returned(0, 0, 0x1fff, 0x50)], [Some(0x1000), None, None]),
            (
                vec![(119, 0x4100)],
                vec![returned(0, 0, 0x1_0000_0fff, 0x50)],
                [None, Some(0x1_0000_0000), None],
            ),
            // Words that are not valid promise nothing.
            (vec![(119, 0x0100)], vec![], [None, None, None]),
            (vec![area], vec![returned(ERROR_ABORTED, 0, 0, 0x51)], [None, None, None]),
        ] {
            let answers: Vec<_> = answers.iter().map(|sense| (2, &sense[..], &[][..])).collect();
            let counts = SectorCounts::ask(&Recorded::new(&answers), &identify(&words));
            assert_eq!(counts.shown, 0x1000);
            let limits = [Limit::HostProtectedArea, Limit::AccessibleMaximum, Limit::Overlay];
            assert_eq!(limits.map(|limit| counts.hidden_by(limit)), expected, "{words:x?}");
        }
    }

    #[test]
    fn a16_an_overlay_tells_its_sectors_and_a_frozen_one_does_not_count_as_none() {
        let overlay = identify(&[(83, 0x4c00)]);
        let data = identify_data(&[(3, 0x2fff)]);
        let counts = SectorCounts::ask(&Recorded::new(&[(0, &[], &data)]), &overlay);
        assert_eq!(counts.hidden_by(Limit::Overlay), Some(0x2000));
        let frozen = returned(ERROR_ABORTED, 0, 0, 0x51);
        let counts = SectorCounts::ask(&Recorded::new(&[(2, &frozen, &[])]), &overlay);
        assert!(matches!(counts.limits[2].1, Told::Unanswered(AtaError::Drive { .. })), "{counts:?}");
    }

    #[test]
    fn a16_a_drive_of_28_bits_is_asked_by_its_own_command() {
        let old = identify(&[(60, 0x1000), (61, 0), (82, 1 << 10), (83, 0x4000)]);
        // The highest address has its upper four bits in the device register.
        let mut sense = returned(0, 0, 0x23_4567, 0x50);
        sense[20] = 0x41;
        let target = Recorded::new(&[(2, &sense, &[])]);
        let counts = SectorCounts::ask(&target, &old);
        assert_eq!(counts.hidden_by(Limit::HostProtectedArea), Some(0x0123_4567 + 1 - 0x1000));
        assert_eq!(target.asked.borrow()[0].0[13..15], [0x40, 0xf8]);
        let target = Recorded::new(&[(2, &sense, &[]), (2, &sense, &[])]);
        show_protected_area(&target, &old).unwrap();
        let set = &target.asked.borrow()[1].0;
        assert_eq!((set[14], set[13], set[12], set[10], set[8]), (0xf9, 0x41, 0x23, 0x45, 0x67));
    }

    #[test]
    fn a16_an_area_is_shown_until_the_next_power_cycle_directly_behind_the_question() {
        let answer = returned(0, 0, 0x0123_4567_89ab, 0x50);
        let target = Recorded::new(&[(2, &answer, &[]), (2, &answer, &[])]);
        show_protected_area(&target, &identify(&[(82, 1 << 10)])).unwrap();
        let asked = target.asked.borrow();
        assert_eq!(asked.iter().map(|(cdb, _)| cdb[14]).collect::<Vec<_>>(), [0x27, 0x37]);
        // Registers of 48 bits; bit 0 of the count would make it last.
        let set = &asked[1].0;
        assert_eq!((set[1] & 1, set[5], set[6], set[13]), (1, 0, 0, 0x40));
        assert_eq!([set[11], set[9], set[7], set[12], set[10], set[8]], [0x01, 0x23, 0x45, 0x67, 0x89, 0xab]);
    }

    #[test]
    fn a16_an_accessible_maximum_is_raised_to_the_native_one() {
        let answer = returned(0, 0, 0xffff, 0x50);
        let target = Recorded::new(&[(2, &answer, &[]), (2, &answer, &[])]);
        show_beyond_accessible_maximum(&target).unwrap();
        let asked = target.asked.borrow();
        assert_eq!(
            asked.iter().map(|(cdb, _)| (cdb[14], cdb[4])).collect::<Vec<_>>(),
            [(0x78, 0), (0x78, 1)]
        );
        assert_eq!((asked[1].0[8], asked[1].0[10]), (0xff, 0xff));
    }

    #[test]
    fn a16_the_kernel_asks_again_after_a_setting_that_changes_nothing() {
        for (words, expected) in [
            (vec![], Some(0xaa)),
            (vec![(85, 0)], Some(0x55)),
            (vec![(82, 1 << 5), (85, 1 << 5)], Some(0x02)),
            (vec![(82, 1 << 5), (85, 0)], Some(0x82)),
            (vec![(82, 0)], None),
        ] {
            let target = Recorded::new(&[(2, &returned(0, 0, 0, 0x50), &[])]);
            let outcome = set_features_again(&target, &identify(&words));
            let sent = target.asked.borrow().first().map(|(cdb, _)| (cdb[14], cdb[4]));
            assert_eq!(
                (outcome.is_ok(), sent),
                (expected.is_some(), expected.map(|feature| (0xef, feature)))
            );
        }
    }
}
