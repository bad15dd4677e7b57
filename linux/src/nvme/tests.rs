//! Commands and answers in the layouts of the NVM Express Base Specification 2.0.

use super::*;
use std::cell::RefCell;

/// A controller that gives prepared answers and keeps what it was asked.
struct Recorded {
    answers: RefCell<Vec<Result<Vec<u8>, u16>>>,
    asked: RefCell<Vec<Command>>,
}

impl Recorded {
    fn new(answers: impl IntoIterator<Item = Result<Vec<u8>, u16>>) -> Self {
        let mut answers: Vec<_> = answers.into_iter().collect();
        answers.reverse();
        Self { answers: RefCell::new(answers), asked: RefCell::default() }
    }
}

impl NvmeTarget for Recorded {
    fn submit(&self, command: &Command, data: &mut [u8]) -> Result<(), NvmeError> {
        self.asked.borrow_mut().push(*command);
        let answer = self.answers.borrow_mut().pop().unwrap().map_err(NvmeError::Status)?;
        data[..answer.len()].copy_from_slice(&answer);
        Ok(())
    }
}

/// A structure of zeros with bytes at some offsets.
fn structure(fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut bytes = vec![0; IDENTIFY_BYTES];
    for (offset, field) in fields {
        bytes[*offset..offset + field.len()].copy_from_slice(field);
    }
    bytes
}

#[test]
fn the_pass_through_structure_has_the_kernels_layout() {
    assert_eq!(size_of::<PassThrough>(), 72);
    assert_eq!(std::mem::offset_of!(PassThrough, address), 24);
    assert_eq!(std::mem::offset_of!(PassThrough, cdw10), 40);
    assert_eq!(std::mem::offset_of!(PassThrough, result), 68);
}

#[test]
fn p08_capabilities_are_read_from_oacs_fna_and_sanicap() {
    // OACS, FNA, SANICAP; format, crypto format, every namespace, sanitize crypto, block, overwrite.
    for (oacs, fna, sanicap, expected) in [
        ([0x00, 0x00], 0x00, [0x00, 0x00, 0x00, 0x00], [false, false, false, false, false, false]),
        ([0x02, 0x00], 0x00, [0x00, 0x00, 0x00, 0x00], [true, false, false, false, false, false]),
        ([0x0a, 0x01], 0x04, [0x01, 0x00, 0x00, 0xa0], [true, true, false, true, false, false]),
        ([0x02, 0x00], 0x03, [0x02, 0x00, 0x00, 0x00], [true, false, true, false, true, false]),
        ([0x02, 0x00], 0x07, [0x07, 0x00, 0x00, 0x60], [true, true, true, true, true, true]),
        // A crypto bit without the command means nothing.
        ([0x04, 0x00], 0x04, [0x04, 0x00, 0x00, 0x00], [false, false, false, false, false, true]),
    ] {
        let data = structure(&[(256, &oacs), (524, &[fna]), (328, &sanicap)]);
        let queue = Recorded::new([Ok(data)]);
        let found = Capabilities::identify(&queue).unwrap();
        let actual = [
            found.has_format(),
            found.has_crypto_format(),
            found.formats_every_namespace(),
            found.has(SanitizeAction::Crypto),
            found.has(SanitizeAction::Block),
            found.has(SanitizeAction::Overwrite),
        ];
        assert_eq!(actual, expected, "{oacs:x?} {fna:x} {sanicap:x?}");
        let asked = queue.asked.borrow()[0];
        assert_eq!((asked.opcode, asked.namespace, asked.dwords), (0x06, 0, [0x01, 0]));
    }
}

#[test]
fn namespaces_are_the_allocated_ones_where_these_can_be_listed() {
    for (oacs, list) in [(0x02, 0x02), (0x0a, 0x10)] {
        let capabilities = Capabilities { oacs, fna: 0, sanicap: 0, total_bytes: 0, unallocated_bytes: 0 };
        let queue = Recorded::new([Ok(structure(&[(0, &[1, 0, 0, 0, 7, 1, 0, 0])]))]);
        assert_eq!(namespaces(&queue, &capabilities).unwrap(), [1, 0x107]);
        assert_eq!(queue.asked.borrow()[0].dwords, [list, 0]);
    }
}

#[test]
fn p07_format_always_asks_for_an_erasure_and_keeps_the_layout() {
    // FLBAS and DPS of the namespace, and dword 10: LBAF 3:0, MSET 4, PI 7:5, PIL 8, SES 11:9, LBAFU 13:12.
    for (flbas, dps, erase, dword) in [
        (0x00, 0x00, FormatErase::UserData, 0x0200),
        (0x00, 0x00, FormatErase::Crypto, 0x0400),
        (0x01, 0x00, FormatErase::Crypto, 0x0401),
        (0x13, 0x09, FormatErase::UserData, 0x0333),
        (0x62, 0x03, FormatErase::Crypto, 0x3462),
    ] {
        let queue = Recorded::new([Ok(structure(&[(26, &[flbas]), (29, &[dps])])), Ok(Vec::new())]);
        format(&queue, 3, erase, Duration::from_secs(60)).unwrap();
        let asked = queue.asked.borrow();
        assert_eq!((asked[0].opcode, asked[0].namespace, asked[0].dwords), (0x06, 3, [0, 0]));
        assert_eq!((asked[1].opcode, asked[1].namespace, asked[1].dwords), (0x80, 3, [dword, 0]));
    }
}

#[test]
fn a_refused_command_says_why() {
    for (status, text) in
        [(0x4001, "invalid opcode"), (0x4002, "invalid field"), (0x371, "given up"), (0x7, "0x0007")]
    {
        let queue = Recorded::new([Err(status)]);
        let error = start_sanitize(&queue, SanitizeAction::Block).unwrap_err();
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn sanitize_commands_have_the_standards_bits() {
    // SANACT 2:0, AUSE 3, OWPASS 7:4.
    for (action, dword) in
        [(SanitizeAction::Block, 0x0a), (SanitizeAction::Overwrite, 0x1b), (SanitizeAction::Crypto, 0x0c)]
    {
        let queue = Recorded::new([Ok(Vec::new())]);
        start_sanitize(&queue, action).unwrap();
        let asked = queue.asked.borrow()[0];
        assert_eq!((asked.opcode, asked.namespace, asked.dwords), (0x84, 0, [dword, 0]));
    }
    let queue = Recorded::new([Ok(Vec::new())]);
    exit_failed_sanitize(&queue).unwrap();
    assert_eq!(queue.asked.borrow()[0].dwords, [1, 0]);
}

#[test]
fn the_sanitize_log_tells_our_operation_from_an_older_one() {
    // SPROG 1:0, SSTAT 3:2, SCDW10 7:4.
    for (log, expected) in [
        ([0xff, 0xff, 0x00, 0x00, 0x00, 0, 0, 0], SanitizeState::Never),
        ([0x00, 0x80, 0x02, 0x00, 0x0c, 0, 0, 0], SanitizeState::Running(0x8000)),
        ([0xff, 0xff, 0x01, 0x01, 0x0c, 0, 0, 0], SanitizeState::Succeeded),
        ([0xff, 0xff, 0x04, 0x00, 0x0c, 0, 0, 0], SanitizeState::Succeeded),
        ([0xff, 0xff, 0x01, 0x01, 0x0a, 0, 0, 0], SanitizeState::OtherSucceeded),
        ([0x10, 0x00, 0x03, 0x00, 0x0c, 0, 0, 0], SanitizeState::Failed),
        // Passes done in bits 7:3 do not disturb the state.
        ([0xff, 0xff, 0x09, 0x00, 0x0c, 0, 0, 0], SanitizeState::Succeeded),
    ] {
        let queue = Recorded::new([Ok(log.to_vec())]);
        assert_eq!(sanitize_state(&queue, SanitizeAction::Crypto).unwrap(), expected, "{log:x?}");
        let asked = queue.asked.borrow()[0];
        assert_eq!((asked.opcode, asked.namespace, asked.dwords), (0x02, u32::MAX, [0x0007_0081, 0]));
    }
}

#[test]
fn d03_a_foreign_reservation_of_a_namespace_is_seen() {
    let can_reserve = || Ok(structure(&[(520, &[0x20])]));
    // Generation, kind, registered hosts, and the first of them.
    let held = |kind: u8| Ok([&[7, 0, 0, 0, kind, 1, 0, 0, 0, 0][..], &[0; 54]].concat());
    for (answers, expected) in [
        (vec![Ok(structure(&[(520, &[0xdf])]))], Some(false)),
        (vec![can_reserve(), held(0)], Some(false)),
        (vec![can_reserve(), held(1)], Some(true)),
        (vec![can_reserve(), held(5)], Some(true)),
        (vec![can_reserve(), Err(0x4018), held(2)], Some(true)),
        (vec![can_reserve(), Err(0x4018), held(0)], Some(false)),
        (vec![can_reserve(), Err(0x4002)], None),
        (vec![Err(0x4006)], None),
    ] {
        let target = Recorded::new(answers.clone());
        assert_eq!(is_reserved(&target, 3).ok(), expected, "{answers:?}");
        for command in target.asked.borrow().iter().skip(1) {
            assert_eq!((command.queue, command.opcode, command.namespace), (Queue::Io, 0x0e, 3));
            assert_eq!(command.dwords[0], 15);
        }
        let last = target.asked.borrow().last().unwrap().dwords[1];
        assert_eq!(last == 1, answers.iter().any(|answer| answer == &Err(0x4018)), "{answers:?}");
    }
}

#[test]
fn x05_f08_deallocated_blocks_are_zeros_where_the_namespace_says_so() {
    for (byte, expected) in [(0x01, true), (0x19, true), (0x00, false), (0x02, false), (0x08, false)] {
        let queue = Recorded::new([Ok(structure(&[(33, &[byte])]))]);
        assert_eq!(reads_zero_after_deallocate(&queue, 1).unwrap(), expected, "{byte:x}");
    }
}

#[test]
fn g03_lists_of_namespaces_go_on_where_one_ends() {
    let page = |numbers: std::ops::Range<u32>| {
        let bytes: Vec<u8> = numbers.flat_map(u32::to_le_bytes).collect();
        Ok(bytes)
    };
    let managed =
        Capabilities { oacs: OACS_NAMESPACES, fna: 0, sanicap: 0, total_bytes: 0, unallocated_bytes: 0 };
    for (pages, expected) in [
        (vec![page(1..3)], 2),
        (vec![page(1..1025), page(1025..1030)], 1029),
        (vec![page(1..1025), page(0..0)], 1024),
        // A controller that begins with the first ones again.
        (vec![page(1..1025), page(1..1025)], 1024),
    ] {
        let asked_for = pages.len();
        let queue = Recorded::new(pages);
        assert_eq!(namespaces(&queue, &managed).unwrap().len(), expected);
        let asked = queue.asked.borrow();
        assert_eq!(
            (asked.len(), asked.last().unwrap().namespace),
            (asked_for, if asked_for > 1 { 1024 } else { 0 })
        );
    }
}

#[test]
fn a16_what_no_namespace_has_is_read_of_the_controller() {
    for (total, unallocated, expected) in [
        (&[0; 16], &[0; 16], (0, 0)),
        (
            &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            (1 << 32, 261),
        ),
        (&[0xff; 16], &[0; 16], (u64::MAX, 0)),
    ] {
        let data = structure(&[(280, total), (296, unallocated)]);
        let found = Capabilities::identify(&Recorded::new([Ok(data)])).unwrap();
        assert_eq!((found.total_bytes, found.unallocated_bytes), expected);
    }
}
