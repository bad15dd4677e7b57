//! Commands and answers in the layouts of ACS-4 and SAT-4.

use super::*;
use crate::scsi::tests::Recorded;

/// Sense data with the drive's registers: error, count, LBA, status.
pub(super) fn returned(error: u8, count: u16, lba: u64, status: u8) -> Vec<u8> {
    let (count, lba) = (count.to_be_bytes(), lba.to_le_bytes());
    let mut sense = vec![0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 14];
    sense.extend([0x09, 0x0c, 0x01, error, count[0], count[1]]);
    sense.extend([lba[3], lba[0], lba[4], lba[1], lba[5], lba[2], 0x40, status]);
    sense
}

fn good() -> Vec<u8> {
    returned(0, 0, 0, 0x50)
}

/// Identify data with some words, and a right checksum.
pub(super) fn identify_data(words: &[(usize, u16)]) -> Vec<u8> {
    let mut data = vec![0; BLOCK_BYTES];
    for (number, word) in words {
        data[2 * number..2 * number + 2].copy_from_slice(&word.to_le_bytes());
    }
    data[510] = 0xa5;
    data[511] = data.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg();
    data
}

fn identify(words: &[(usize, u16)]) -> Capabilities {
    Capabilities::identify(&Recorded::new(&[(0, &[], &identify_data(words))])).unwrap()
}

#[test]
fn identify_is_a_read_of_one_block() {
    let target = Recorded::new(&[(0, &[], &identify_data(&[]))]);
    Capabilities::identify(&target).unwrap();
    let cdb = &target.asked.borrow()[0].0;
    assert_eq!(cdb[..], [0x85, 0x08, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0]);
    let mut damaged = identify_data(&[(82, 2)]);
    damaged[3] ^= 1;
    let error = Capabilities::identify(&Recorded::new(&[(0, &[], &damaged)])).unwrap_err();
    assert!(error.to_string().contains("checksum"), "{error}");
}

#[test]
fn p08_sanitize_is_read_from_word_59() {
    for (word, crypto, block, overwrite) in [
        (0x0000, false, false, false),
        (0x3000, true, false, false),
        (0x9000, false, true, false),
        (0x5000, false, false, true),
        (0xf000, true, true, true),
        // Actions without the feature set mean nothing.
        (0xe000, false, false, false),
    ] {
        let found = identify(&[(59, word)]);
        let actual = [SanitizeAction::Crypto, SanitizeAction::Block, SanitizeAction::Overwrite];
        assert_eq!(actual.map(|action| found.has(action)), [crypto, block, overwrite], "{word:x}");
    }
}

#[test]
fn d22_security_is_read_from_words_82_89_90_and_128() {
    // Word 128; enabled, locked, frozen, exhausted, enhanced, maximum.
    for (word, expected) in [
        (0x0001, [false; 6]),
        (0x0021, [false, false, false, false, true, false]),
        (0x0029, [false, false, true, false, true, false]),
        (0x0007, [true, true, false, false, false, false]),
        (0x0117, [true, true, false, true, false, true]),
    ] {
        let found = identify(&[(82, 2), (128, word)]).security().unwrap();
        let actual = [
            found.is_enabled,
            found.is_locked,
            found.is_frozen,
            found.is_exhausted,
            found.has_enhanced,
            found.is_maximum,
        ];
        assert_eq!(actual, expected, "{word:x}");
    }
    for words in [&[(82, 0), (128, 0x21)][..], &[(82, 2), (128, 0)]] {
        assert_eq!(identify(words).security(), None, "{words:x?}");
    }
    for (word, minutes) in
        [(0, None), (1, Some(2)), (0x64, Some(200)), (0xff, None), (0x8100, Some(512)), (0xffff, None)]
    {
        let found = identify(&[(82, 2), (90, word), (128, 0x21)]).security().unwrap();
        assert_eq!(found.enhanced_erase_time.map(|time| time.as_secs() / 60), minutes, "{word:x}");
    }
}

#[test]
fn security_commands_carry_the_empty_password() {
    let good = good();
    let target = Recorded::new(&[(2, &good, &[]), (2, &good, &[]), (2, &good, &[]), (2, &good, &[])]);
    set_user_password(&target).unwrap();
    unlock(&target, Password::Master).unwrap();
    security_erase(&target, Password::User, true, Duration::from_secs(9)).unwrap();
    let asked = target.asked.borrow();
    let commands: Vec<_> =
        asked.iter().map(|(cdb, data)| (cdb[1], cdb[2], cdb[6], cdb[14], data.len())).collect();
    assert_eq!(
        commands,
        [
            (0x0a, 0x26, 1, 0xf1, 512),
            (0x0a, 0x26, 1, 0xf2, 512),
            (0x06, 0x20, 0, 0xf3, 0),
            (0x0a, 0x26, 1, 0xf4, 512)
        ]
    );
    let controls: Vec<_> =
        asked.iter().filter(|(_, data)| !data.is_empty()).map(|(_, data)| data[0]).collect();
    assert_eq!(controls, [0, 1, 2]);
    assert!(asked.iter().all(|(_, data)| data.iter().skip(1).all(|byte| *byte == 0)));
}

#[test]
fn sanitize_commands_have_the_standards_key_words() {
    for (action, feature, count, lba) in [
        (SanitizeAction::Crypto, 0x11, 0x10, [0x43, 0x70, 0x00, 0x79, 0x00, 0x72]),
        (SanitizeAction::Block, 0x12, 0x10, [0x42, 0x72, 0x00, 0x45, 0x00, 0x6b]),
        (SanitizeAction::Overwrite, 0x14, 0x11, [0x00, 0x00, 0x57, 0x00, 0x4f, 0x00]),
    ] {
        let target = Recorded::new(&[(2, &good(), &[])]);
        start_sanitize(&target, action).unwrap();
        let cdb = &target.asked.borrow()[0].0;
        assert_eq!(cdb[..7], [0x85, 0x07, 0x20, 0, feature, 0, count], "{action:?}");
        assert_eq!(cdb[7..13], lba, "{action:?}");
        assert_eq!(cdb[13..15], [0x40, 0xb4]);
    }
}

#[test]
fn the_sanitize_status_is_read_from_count_and_address() {
    for (count, lba, expected) in [
        (0x4000, 0x8000, SanitizeState::Running(0x8000)),
        (0x8000, 0xffff, SanitizeState::Succeeded),
        (0x2000, 0, SanitizeState::Frozen),
        (0x0000, 0, SanitizeState::Idle),
    ] {
        let target = Recorded::new(&[(2, &returned(0, count, lba, 0x50), &[])]);
        assert_eq!(sanitize_state(&target).unwrap(), expected, "{count:x}");
    }
}

#[test]
fn d22_a_refusal_and_a_controller_that_hides_the_answer_are_errors() {
    let aborted = returned(0x04, 0, 0, 0x51);
    let fixed = [0x70, 0, 0x01, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x00, 0x1d, 0, 0, 0, 0];
    for (status, sense, text) in
        [(2, aborted.as_slice(), "status 0x51, error 0x04"), (2, &fixed, "another"), (0, &[], "another")]
    {
        let error = unlock(&Recorded::new(&[(status, sense, &[])]), Password::User).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn x05_f08_only_a_promise_of_both_kinds_makes_trimmed_blocks_zeros() {
    for (word_69, word_169, expected) in [
        (1 << 14 | 1 << 5, 1, true),
        (1 << 14, 1, false),
        (1 << 5, 1, false),
        (0, 1, false),
        // A promise about a command that does not exist.
        (1 << 14 | 1 << 5, 0, false),
    ] {
        let data = identify_data(&[(69, word_69), (169, word_169)]);
        let found = IdentifyData::read(&Recorded::new(&[(0, &[], &data)])).unwrap();
        assert_eq!(found.reads_zero_after_trim(), expected, "{word_69:x}");
    }
}

/// Words of a text at `first`, padded to `words`.
fn text(first: usize, words: usize, text: &str) -> Vec<(usize, u16)> {
    let padded = format!("{text:<width$}", width = 2 * words);
    let pairs = padded.as_bytes().chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    (first..).zip(pairs).collect()
}

#[test]
fn x04_the_page_that_the_kernel_keeps_has_model_and_serial_in_full() {
    let model = "SAMSUNG MZ7LH960HAJR-00005 of 40 letters";
    let words = [text(27, 20, model), text(10, 10, "  S45NNC0R100001")].concat();
    let mut page = vec![0, 0x89, 0x02, 0x38];
    page.resize(60, 0);
    page.extend(identify_data(&words));
    let found = IdentifyData::of_page(&page).unwrap();
    assert_eq!((found.model().as_deref(), found.serial().as_deref()), (Some(model), Some("S45NNC0R100001")));
    let nameless = [page[..60].to_vec(), identify_data(&[])].concat();
    assert_eq!(IdentifyData::of_page(&nameless).unwrap().model(), None);
    page[100] ^= 1;
    assert_eq!(IdentifyData::of_page(&page), None, "its checksum is wrong");
    assert_eq!(IdentifyData::of_page(&nameless[..571]), None);
    assert_eq!(IdentifyData::of_page(&[]), None);
    assert_eq!(IdentifyData::of_page(&[vec![0, 0x80], nameless[2..].to_vec()].concat()), None);
}
