//! Drives in every state of the security feature set.

use super::*;
use farrier_linux::scsi::{Completion, Transfer};
use std::cell::{Cell, RefCell};
use std::io;

const PATIENCE: Patience<'static> =
    Patience { poll: Duration::from_millis(1), limit: Duration::from_millis(50), is_ending: &|| false };

const SUPPORTED: u16 = 1 << 0;
const ENABLED: u16 = 1 << 1;
const LOCKED_BIT: u16 = 1 << 2;
const FROZEN_BIT: u16 = 1 << 3;
const EXHAUSTED_BIT: u16 = 1 << 4;
const ENHANCED: u16 = 1 << 5;
const MAXIMUM: u16 = 1 << 8;

/// A drive with the security feature set in some state.
#[derive(Default)]
struct Drive {
    word_59: u16,
    word_128: Cell<u16>,
    /// Whose empty password unlocks it: the user's is 0, the master's 1.
    key: Option<u8>,
    /// Whether it refuses to erase, in the enhanced way at least.
    refuses: bool,
    has_normal: bool,
    /// What Sanitize is refused for.
    sanitize_refusal: Option<u8>,
    /// Words of its identify data about addresses.
    words: Vec<(usize, u16)>,
    /// Sectors shown, and those there are without the host protected area, the accessible maximum and the overlay.
    /// 0 refuses the question.
    shown: Cell<u64>,
    native: u64,
    accessible: u64,
    overlay: u64,
    /// Whether its limits can be changed.
    is_fixed: bool,
    /// Counts that its sanitize status shows one after the other; the last one stays.
    states: RefCell<Vec<u16>>,
    commands: RefCell<Vec<u8>>,
}

impl Drive {
    fn with(word_128: u16) -> Self {
        Self { word_128: Cell::new(word_128), ..Self::default() }
    }

    fn set(&self, bits: u16, value: bool) {
        let word = self.word_128.get();
        self.word_128.set(if value { word | bits } else { word & !bits });
    }

    /// Does a command; false aborts it.
    fn run(&self, command: u8, control: u8) -> bool {
        let is_locked = self.word_128.get() & LOCKED_BIT != 0;
        match command {
            0xf1 => self.set(ENABLED, true),
            0xf2 if self.key == Some(control) => self.set(LOCKED_BIT, false),
            0xf2 => return false,
            0xf4 if self.refuses && self.has_normal && control & 2 == 0 => self.set(ENABLED, false),
            0xf4 if self.refuses && self.has_normal => return false,
            0xf4 if self.refuses || is_locked => {
                self.set(LOCKED_BIT, true);
                return false;
            }
            0xf6 if self.key.is_some_and(|key| key != control) => return false,
            0xf4 | 0xf6 => self.set(ENABLED, false),
            _ => {}
        }
        true
    }

    fn identify(&self, data: &mut [u8]) {
        data[2 * 59..2 * 60].copy_from_slice(&self.word_59.to_le_bytes());
        data[2 * 82] = 2;
        let sectors = u32::try_from(self.shown.get()).unwrap();
        let shown = [(100, sectors as u16), (101, (sectors >> 16) as u16), (83, 0x4400)];
        for (number, word) in shown.iter().chain(&self.words) {
            data[2 * number..2 * number + 2].copy_from_slice(&word.to_le_bytes());
        }
        data[2 * 128..2 * 129].copy_from_slice(&self.word_128.get().to_le_bytes());
    }

    /// The address in an answer to a question about sectors; nothing when it is refused.
    fn last_sector(&self, command: u8, feature: u8, lba: u64) -> Option<u64> {
        let sectors = match (command, feature) {
            (0x27, _) => self.native,
            (0x78, 0) => self.accessible,
            (0x37, _) | (0x78, 1) if self.is_fixed => return None,
            (0x37, _) | (0x78, 1) => {
                self.shown.set(lba + 1);
                return Some(lba);
            }
            _ => return Some(0),
        };
        sectors.checked_sub(1)
    }

    fn next_state(&self) -> u16 {
        let mut states = self.states.borrow_mut();
        if states.len() > 1 { states.remove(0) } else { states.first().copied().unwrap_or_default() }
    }
}

impl ScsiTarget for Drive {
    fn execute(&self, cdb: &[u8], transfer: Transfer<'_>, _: Duration) -> io::Result<Completion> {
        let command = cdb[14];
        if command != 0xec {
            self.commands.borrow_mut().push(command);
        }
        let control = match transfer {
            Transfer::In(data) if command == 0xb1 => {
                let Some(last) = self.overlay.checked_sub(1) else { return Ok(refused(0)) };
                data[6..14].copy_from_slice(&last.to_le_bytes());
                return Ok(Completion { status: 0, sense: Vec::new() });
            }
            Transfer::In(data) => {
                self.identify(data);
                return Ok(Completion { status: 0, sense: Vec::new() });
            }
            Transfer::Out(data) => data[0] & 3,
            Transfer::None => 0,
        };
        let address = [cdb[8], cdb[10], cdb[12], cdb[7], cdb[9], cdb[11]];
        let lba = address.iter().rev().fold(0, |lba, byte| lba << 8 | u64::from(*byte));
        let Some(last) = self.last_sector(command, cdb[4], lba) else { return Ok(refused(0)) };
        if let Some(reason) = self.sanitize_refusal.filter(|_| command == 0xb4 && cdb[4] != 0) {
            return Ok(refused(reason));
        }
        let status = if self.run(command, control) { 0x50 } else { 0x51 };
        let is_question = command == 0xb4 && cdb[4] == 0;
        let count = if is_question { self.next_state().to_be_bytes() } else { [0; 2] };
        let mut sense = vec![0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 14, 0x09, 0x0c, 0x01, 0x04];
        let last = last.to_le_bytes();
        sense
            .extend([count[0], count[1], last[3], last[0], last[4], last[1], last[5], last[2], 0x40, status]);
        sense[11] = if status == 0x51 { 0x04 } else { 0 };
        Ok(Completion { status: 2, sense })
    }
}

/// The drive refuses a command, for this reason.
fn refused(reason: u8) -> Completion {
    let mut sense = vec![0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 14, 0x09, 0x0c, 0x01, 0x04];
    sense.extend([0, 0, 0, reason, 0, 0, 0, 0, 0x40, 0x51]);
    Completion { status: 2, sense }
}

#[test]
fn d22_methods_follow_the_state_of_the_drive() {
    use Method::*;
    for (word_59, word_128, states, expected) in [
        (0, 0, 0, Ok(&[][..])),
        (0, SUPPORTED, 0, Ok(&[AtaSecurity])),
        (0, SUPPORTED | ENHANCED, 0, Ok(&[AtaSecurityEnhanced, AtaSecurity])),
        (0, SUPPORTED | FROZEN_BIT, 0, Err("frozen")),
        (0xf000, SUPPORTED | FROZEN_BIT, 0, Ok(&[AtaSanitizeCrypto, AtaSanitizeBlock, AtaSanitizeOverwrite])),
        (0x9000, SUPPORTED, 0, Ok(&[AtaSanitizeBlock, AtaSecurity])),
        // Sanitize is frozen too.
        (0x9000, SUPPORTED | FROZEN_BIT, 0x2000, Err("frozen")),
        (0x9000, 0, 0x2000, Ok(&[])),
    ] {
        let drive = Drive { word_59, states: vec![states].into(), ..Drive::with(word_128) };
        let survey = AtaDrive { target: drive }.survey();
        match expected {
            Ok(expected) => assert_eq!(survey.unwrap().methods, expected, "{word_59:x} {word_128:x}"),
            Err(text) => assert!(survey.unwrap_err().to_string().contains(text)),
        }
    }
}

#[test]
fn d22_locked_drives_are_unlocked_with_the_empty_password_or_named() {
    let locked = SUPPORTED | ENABLED | LOCKED_BIT;
    for (word_128, key, commands, expected) in [
        (SUPPORTED, None, &[][..], None),
        (locked, Some(0), &[0xf2], None),
        (locked, Some(1), &[0xf2, 0xf2], None),
        (locked, None, &[0xf2, 0xf2], Some("locked with a password")),
        // The master password cannot unlock a drive of maximum security.
        (locked | MAXIMUM, Some(1), &[0xf2], Some("locked with a password")),
        (locked | EXHAUSTED_BIT, Some(0), &[], Some("too many wrong passwords")),
    ] {
        let drive = AtaDrive { target: Drive { key, ..Drive::with(word_128) } };
        let outcome = drive.prepare().map_err(|error| error.to_string());
        assert_eq!(*drive.target.commands.borrow(), commands, "{word_128:x}");
        match expected {
            None => outcome.unwrap(),
            Some(text) => assert!(outcome.unwrap_err().contains(text), "{word_128:x}"),
        }
    }
}

#[test]
fn d22_a_failed_security_erase_leaves_no_password_behind() {
    for (refuses, commands) in [
        // Set password, prepare, erase.
        (false, &[0xf1, 0xf3, 0xf4][..]),
        // And unlock, disable the password.
        (true, &[0xf1, 0xf3, 0xf4, 0xf2, 0xf6]),
    ] {
        let drive = Drive { refuses, key: Some(0), ..Drive::with(SUPPORTED | ENHANCED) };
        let drive = AtaDrive { target: drive };
        let outcome = drive.erase(Method::AtaSecurityEnhanced, &PATIENCE);
        assert_eq!(outcome.is_err(), refuses, "{outcome:?}");
        assert_eq!(*drive.target.commands.borrow(), commands);
        assert_eq!(drive.target.word_128.get() & (ENABLED | LOCKED_BIT), 0);
    }
}

#[test]
fn sanitize_is_done_when_the_status_says_completed() {
    for (states, expected) in [
        (&[0x0000, 0x4000, 0x8000][..], None),
        (&[0x4000, 0x0000, 0x4000, 0x8000], None),
        (&[0x0000, 0x4000, 0x0000], Some("does not say that it completed")),
        (&[0x0000, 0x4000], Some("did not finish")),
    ] {
        let drive = Drive { word_59: 0x9000, states: states.to_vec().into(), ..Drive::default() };
        let drive = AtaDrive { target: drive };
        let outcome = drive.erase(Method::AtaSanitizeBlock, &PATIENCE).map_err(|error| error.to_string());
        match expected {
            None => outcome.unwrap(),
            Some(text) => assert!(outcome.unwrap_err().contains(text), "{states:x?}"),
        }
    }
}

const AREA: (usize, u16) = (82, 1 << 10 | 1 << 6);
const ACCESSIBLE: (usize, u16) = (119, 0x4100);
const OVERLAY: (usize, u16) = (83, 0x4c00);

#[test]
fn a16_g04_what_a_drive_hides_and_what_it_does_not_tell_is_known() {
    use Cause::*;
    for (words, native, accessible, overlay, hidden, unanswered, counts) in [
        // No feature set that could hide sectors: nothing is asked.
        (vec![], 9000, 9000, 9000, vec![], 0, 1),
        (vec![AREA], 1000, 0, 0, vec![], 0, 2),
        (vec![AREA], 9000, 0, 0, vec![(HostProtectedArea, 8000)], 0, 2),
        (vec![ACCESSIBLE], 0, 5000, 0, vec![(AccessibleMaximum, 4000)], 0, 2),
        (vec![OVERLAY], 0, 0, 1001, vec![(Overlay, 1)], 0, 2),
        // What the overlay has is what the area hides.
        (vec![AREA, OVERLAY], 9000, 0, 9000, vec![(HostProtectedArea, 8000)], 0, 3),
        (vec![AREA, OVERLAY], 5000, 0, 9000, vec![(HostProtectedArea, 4000), (Overlay, 8000)], 0, 3),
        // The feature set is there, and the question is refused: said, and not taken for none.
        (vec![AREA], 0, 0, 0, vec![], 1, 1),
        (vec![AREA, ACCESSIBLE, OVERLAY], 0, 0, 0, vec![], 3, 1),
    ] {
        let shown = Cell::new(1000);
        let drive = Drive { words: words.clone(), native, accessible, overlay, shown, ..Drive::default() };
        let reach = AtaDrive { target: drive }.reach();
        let found: Vec<_> = reach.hidden.iter().map(|one| (one.cause, one.bytes / 512)).collect();
        assert_eq!(found, hidden, "{words:x?}");
        assert_eq!((reach.unanswered.len(), reach.counts.len()), (unanswered, counts), "{reach:?}");
        assert_eq!(reach.counts["sectors"], 1000);
    }
}

#[test]
fn a16_g04_a_drive_is_made_to_show_what_it_hides_where_it_lets_itself() {
    for (words, is_fixed, commands, shown) in [
        (AREA, false, &[0x27, 0x27, 0x37, 0xef][..], 9000),
        (ACCESSIBLE, false, &[0x78, 0x78, 0x78, 0xef], 9000),
        // Frozen by the firmware.
        (AREA, true, &[0x27, 0x27, 0x37], 1000),
        (ACCESSIBLE, true, &[0x78, 0x78, 0x78], 1000),
        // Nothing takes an overlay away but a restore of all its settings.
        (OVERLAY, false, &[0xb1], 1000),
    ] {
        let words = vec![(82, 1 << 6), words];
        let (native, accessible, overlay) = (9000, 9000, 9000);
        let shown_now = Cell::new(1000);
        let drive =
            Drive { words, native, accessible, overlay, is_fixed, shown: shown_now, ..Drive::default() };
        let drive = AtaDrive { target: drive };
        assert_eq!(drive.show_hidden(), shown > 1000);
        assert_eq!(*drive.target.commands.borrow(), commands);
        assert_eq!(drive.target.shown.get(), shown);
        assert_eq!(drive.reach().hidden.is_empty(), shown > 1000);
    }
}

#[test]
fn a16_a_drive_that_cannot_be_asked_says_so() {
    struct Silent;
    impl ScsiTarget for Silent {
        fn execute(&self, _: &[u8], _: Transfer<'_>, _: Duration) -> io::Result<Completion> {
            Err(io::Error::from_raw_os_error(5))
        }
    }
    let reach = AtaDrive { target: Silent }.reach();
    assert!(reach.hidden.is_empty() && reach.unanswered[0].contains("host protected area"), "{reach:?}");
    AtaDrive { target: Silent }.release().unwrap();
}

#[test]
fn g07_a_drive_that_an_erasure_left_locked_is_unlocked_and_loses_its_password() {
    let enabled = SUPPORTED | ENABLED;
    let locked = enabled | LOCKED_BIT;
    for (word_128, key, commands, left, expected) in [
        (SUPPORTED, None, &[][..], SUPPORTED, None),
        (locked, Some(0), &[0xf2, 0xf6], SUPPORTED, None),
        (locked, Some(1), &[0xf2, 0xf2, 0xf6, 0xf6], SUPPORTED, None),
        // Cut off before the power went: it would be locked after the next power cycle.
        (enabled, Some(0), &[0xf6], SUPPORTED, None),
        // Somebody's password stays, and the drive answers reads.
        (enabled, Some(9), &[0xf6, 0xf6], enabled, None),
        (locked, Some(9), &[0xf2, 0xf2], locked, Some("locked with a password; unlock")),
        (locked | FROZEN_BIT, Some(0), &[], locked | FROZEN_BIT, Some("and frozen")),
        (locked | EXHAUSTED_BIT, Some(0), &[], locked | EXHAUSTED_BIT, Some("too many wrong")),
    ] {
        let drive = AtaDrive { target: Drive { key, ..Drive::with(word_128) } };
        let outcome = drive.release().map_err(|error| error.to_string());
        assert_eq!(*drive.target.commands.borrow(), commands, "{word_128:x}");
        assert_eq!(drive.target.word_128.get(), left, "{word_128:x}");
        match expected {
            None => outcome.unwrap(),
            Some(text) => assert!(outcome.unwrap_err().contains(text), "{word_128:x}"),
        }
    }
}

#[test]
fn g07_a_sanitize_of_before_is_waited_for_where_there_can_be_one() {
    for (word_59, states, asked, expected) in [
        (0x9000, &[0x4000, 0x4000, 0x8000][..], 3, None),
        (0x9000, &[0], 1, None),
        (0, &[0x4000], 0, None),
        (0x9000, &[0x4000], 2, Some("did not finish")),
    ] {
        let drive =
            AtaDrive { target: Drive { word_59, states: states.to_vec().into(), ..Drive::default() } };
        let outcome = drive.wait_until_idle(&PATIENCE).map_err(|error| error.to_string());
        let commands = drive.target.commands.borrow();
        assert!(commands.len() >= asked && commands.iter().all(|command| *command == 0xb4), "{states:x?}");
        match expected {
            None => outcome.unwrap(),
            Some(text) => assert!(outcome.unwrap_err().contains(text), "{states:x?}"),
        }
    }
}

#[test]
fn g08_an_erasure_that_is_refused_at_once_is_not_there() {
    let enhanced = SUPPORTED | ENHANCED;
    for (drive, method, is_there) in [
        (Drive { sanitize_refusal: Some(2), ..Drive::default() }, Method::AtaSanitizeCrypto, false),
        // Frozen, or after a failure.
        (Drive { sanitize_refusal: Some(3), ..Drive::default() }, Method::AtaSanitizeCrypto, true),
        (Drive { sanitize_refusal: Some(1), ..Drive::default() }, Method::AtaSanitizeBlock, true),
        (
            Drive { refuses: true, has_normal: true, ..Drive::with(enhanced) },
            Method::AtaSecurityEnhanced,
            false,
        ),
        // It is locked afterwards, so it has begun.
        (Drive { refuses: true, key: Some(0), ..Drive::with(enhanced) }, Method::AtaSecurityEnhanced, true),
    ] {
        let drive = AtaDrive { target: drive };
        let error = drive.erase(method, &PATIENCE).unwrap_err();
        assert_eq!(!matches!(error, EraseError::Unsupported { .. }), is_there, "{method}: {error}");
        assert_eq!(drive.target.word_128.get() & (ENABLED | LOCKED_BIT), 0, "{method}");
    }
    let drive = Drive { refuses: true, has_normal: true, ..Drive::with(enhanced) };
    AtaDrive { target: drive }.erase(Method::AtaSecurity, &PATIENCE).unwrap();
}

#[test]
fn g14_an_agent_that_ends_leaves_a_drive_that_sanitizes_itself_alone() {
    let drive = Drive { states: vec![0, 0x4000].into(), ..Drive::default() };
    let drive = AtaDrive { target: drive };
    let patience = Patience { is_ending: &|| true, ..PATIENCE };
    let error = drive.erase(Method::AtaSanitizeBlock, &patience).unwrap_err();
    assert!(matches!(error, EraseError::Ending(_)), "{error}");
    assert!(error.to_string().contains("still erases itself"), "{error}");
    // It is started, and asked twice; a failure of it is not left, since there is none.
    assert_eq!(*drive.target.commands.borrow(), [0xb4, 0xb4, 0xb4]);
}

/// A drive whose Security Erase takes until the test is over.
struct Slow(Drive);

impl ScsiTarget for Slow {
    fn execute(&self, cdb: &[u8], transfer: Transfer<'_>, timeout: Duration) -> io::Result<Completion> {
        if cdb[14] == 0xf4 {
            std::thread::sleep(Duration::from_secs(3600));
        }
        self.0.execute(cdb, transfer, timeout)
    }

    fn for_thread(&self) -> io::Result<Box<dyn ScsiTarget + Send>> {
        Ok(Box::new(Slow(Drive::with(self.0.word_128.get()))))
    }
}

#[test]
fn g14_an_agent_that_ends_does_not_wait_for_a_security_erase() {
    let drive = AtaDrive { target: Slow(Drive::with(SUPPORTED)) };
    let patience = Patience { is_ending: &|| true, ..PATIENCE };
    let error = drive.erase(Method::AtaSecurity, &patience).unwrap_err();
    assert!(matches!(error, EraseError::Ending(_)), "{error}");
    // The drive is busy: nothing more is asked of it. The next step takes its password away.
    assert_eq!(*drive.target.0.commands.borrow(), [0xf1]);
}
