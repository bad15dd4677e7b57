//! Commands and answers in the layouts of SPC-5 and SBC-4.

use super::*;
use std::cell::RefCell;

/// Status, sense data and data.
type Answer = (u8, Vec<u8>, Vec<u8>);

/// A target that gives prepared answers and keeps what it was asked.
pub(crate) struct Recorded {
    answers: RefCell<Vec<Answer>>,
    /// Command and data of each request.
    pub(crate) asked: RefCell<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl Recorded {
    /// Each answer is a status, sense data and data.
    pub(crate) fn new(answers: &[(u8, &[u8], &[u8])]) -> Self {
        let answers =
            answers.iter().rev().map(|(status, sense, data)| (*status, sense.to_vec(), data.to_vec()));
        Self { answers: RefCell::new(answers.collect()), asked: RefCell::default() }
    }
}

impl ScsiTarget for Recorded {
    fn execute(&self, command: &[u8], transfer: Transfer<'_>, _: Duration) -> io::Result<Completion> {
        let (status, sense, answer) = self.answers.borrow_mut().pop().unwrap();
        let sent = match transfer {
            Transfer::None => Vec::new(),
            Transfer::Out(data) => data.to_vec(),
            Transfer::In(data) => {
                data[..answer.len()].copy_from_slice(&answer);
                Vec::new()
            }
        };
        self.asked.borrow_mut().push((command.to_vec(), sent));
        Ok(Completion { status, sense })
    }
}

const INVALID_CODE: &[u8] = &[0x70, 0, 0x05, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0x00, 0, 0, 0, 0];
const SANITIZING: &[u8] = &[0x70, 0, 0x02, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x04, 0x1b, 0, 0x80, 0x40, 0x00];
const FORMATTING: &[u8] = &[0x72, 0x02, 0x04, 0x04, 0, 0, 0, 8, 0x02, 0x06, 0, 0, 0x80, 0x20, 0x00, 0];
const SANITIZE_FAILED: &[u8] = &[0x72, 0x03, 0x31, 0x03, 0, 0, 0, 0];
const RESET: &[u8] = &[0x70, 0, 0x06, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0x00, 0, 0, 0, 0];

#[test]
fn the_header_has_the_kernels_layout() {
    #[cfg(target_pointer_width = "64")]
    assert_eq!((size_of::<Header>(), std::mem::offset_of!(Header, status)), (88, 64));
}

#[test]
fn sense_data_of_both_formats_is_read() {
    for (bytes, expected) in [
        (INVALID_CODE, Some((SenseKey::IllegalRequest, (0x20, 0x00), None))),
        (SANITIZING, Some((SenseKey::NotReady, (0x04, 0x1b), Some(0x4000)))),
        (FORMATTING, Some((SenseKey::NotReady, (0x04, 0x04), Some(0x2000)))),
        (SANITIZE_FAILED, Some((SenseKey::Medium, (0x31, 0x03), None))),
        // A descriptor that claims to be longer than the data.
        (&[0x72, 0x02, 0x04, 0x04, 0, 0, 0, 8, 0x02, 0xff][..], Some((SenseKey::NotReady, (4, 4), None))),
        (&[0x70, 0, 0x0b], Some((SenseKey::Aborted, (0, 0), None))),
        (&[0x72], None),
        (&[0x00; 18], None),
        (&[], None),
    ] {
        let sense = Sense::decode(bytes);
        assert_eq!(sense.map(|sense| (sense.key, sense.code, sense.progress)), expected, "{bytes:x?}");
    }
}

#[test]
fn p08_only_what_the_target_reports_counts_as_supported() {
    for (status, sense, data, expected) in [
        (0, &[][..], &[0, 0x03, 0, 10][..], true),
        (0, &[], &[0, 0x01, 0, 0], false),
        // Supported in a vendor's way is not what the standard promises.
        (0, &[], &[0, 0x05, 0, 10], false),
        (2, INVALID_CODE, &[], false),
    ] {
        let target = Recorded::new(&[(status, sense, data)]);
        assert_eq!(has_sanitize(&target, SanitizeAction::Crypto).unwrap(), expected);
        let asked = &target.asked.borrow()[0].0;
        assert_eq!(asked[..], [0xa3, 0x0c, 3, 0x48, 0, 3, 0, 0, 0, 64, 0, 0]);
    }
    let target = Recorded::new(&[(0, &[], &[0, 0x03])]);
    assert!(has_format(&target).unwrap());
    assert_eq!(target.asked.borrow()[0].0[..6], [0xa3, 0x0c, 1, 0x04, 0, 0]);
}

#[test]
fn sanitize_commands_have_the_standards_bytes() {
    for (action, cdb, data) in [
        (SanitizeAction::Overwrite, [0x48, 0xa1, 0, 0, 0, 0, 0, 0, 8, 0], &[1, 0, 0, 4, 0, 0, 0, 0][..]),
        (SanitizeAction::Block, [0x48, 0xa2, 0, 0, 0, 0, 0, 0, 0, 0], &[]),
        (SanitizeAction::Crypto, [0x48, 0xa3, 0, 0, 0, 0, 0, 0, 0, 0], &[]),
    ] {
        let target = Recorded::new(&[(0, &[], &[])]);
        start_sanitize(&target, action).unwrap();
        assert_eq!(target.asked.borrow()[0], (cdb.to_vec(), data.to_vec()));
    }
    let target = Recorded::new(&[(0, &[], &[])]);
    exit_failed_sanitize(&target).unwrap();
    assert_eq!(target.asked.borrow()[0].0[..2], [0x48, 0x1f]);
}

#[test]
fn format_writes_zeros_everywhere_and_protection_is_seen_before() {
    let target = Recorded::new(&[(0, &[], &[])]);
    start_format(&target).unwrap();
    let (cdb, data) = target.asked.borrow()[0].clone();
    assert_eq!((cdb, data), (vec![0x04, 0x10, 0, 0, 0, 0], vec![0, 0x8a, 0, 0, 0x20, 0x01, 0, 1, 0]));
    for (byte, expected) in [(0x00, false), (0x01, true), (0x0f, true), (0x0e, false)] {
        let mut data = [0; 32];
        data[12] = byte;
        assert_eq!(has_protection(&Recorded::new(&[(0, &[], &data)])).unwrap(), expected, "{byte:x}");
    }
}

#[test]
fn the_state_of_an_erasure_is_read_from_the_sense_data() {
    for (status, sense, expected) in [
        (0, &[][..], Ok(EraseState::Ready)),
        (2, SANITIZING, Ok(EraseState::Running(Some(0x4000)))),
        (2, FORMATTING, Ok(EraseState::Running(Some(0x2000)))),
        (2, RESET, Ok(EraseState::Running(None))),
        (2, SANITIZE_FAILED, Err("sanitize failed")),
        (2, INVALID_CODE, Err("invalid operation code")),
        (0x18, &[], Err("reserved")),
        (0x08, &[], Err("0x08")),
    ] {
        let state = erase_state(&Recorded::new(&[(status, sense, &[])]));
        match (state, expected) {
            (Ok(state), Ok(expected)) => assert_eq!(state, expected, "{sense:x?}"),
            (Err(error), Err(text)) => assert!(error.to_string().contains(text), "{error}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn d03_a_foreign_reservation_is_seen() {
    for (status, sense, data, expected) in [
        (0, &[][..], &[0, 0, 0, 7, 0, 0, 0, 0][..], false),
        (0, &[], &[0, 0, 0, 7, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1], true),
        (0x18, &[], &[], true),
        (2, INVALID_CODE, &[], false),
    ] {
        assert_eq!(is_reserved(&Recorded::new(&[(status, sense, data)])).unwrap(), expected, "{data:x?}");
    }
}

#[test]
fn x27_a_target_with_news_is_asked_again_who_reserved_it() {
    let held = (0, &[][..], &[0, 0, 0, 7, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 1][..]);
    for news in 1..QUESTIONS {
        let mut answers = vec![(2, RESET, &[][..]); news];
        answers.push(held);
        let target = Recorded::new(&answers);
        assert!(is_reserved(&target).unwrap(), "{news}");
        assert_eq!(target.asked.borrow().len(), news + 1);
    }
    // One that has nothing else to say is no answer.
    let target = Recorded::new(&[(2, RESET, &[][..]); QUESTIONS]);
    assert!(is_reserved(&target).unwrap_err().to_string().contains("unit attention"));
}

#[test]
fn x05_f08_unmapped_blocks_are_zeros_where_the_target_says_so() {
    for (byte, expected) in [(0xc0, true), (0x80, false), (0x40, false), (0x00, false), (0xff, true)] {
        let mut data = [0; 32];
        data[14] = byte;
        let target = Recorded::new(&[(0, &[], &data)]);
        assert_eq!(reads_zero_after_unmap(&target).unwrap(), expected, "{byte:x}");
    }
}
