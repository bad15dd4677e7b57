//! Drives in every state of the security feature set.

use super::*;
use farrier_linux::scsi::{Completion, Transfer};
use std::cell::{Cell, RefCell};
use std::io;

const PATIENCE: Patience = Patience { poll: Duration::from_millis(1), limit: Duration::from_millis(50) };

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
    /// Whether it refuses to erase.
    refuses: bool,
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
            0xf4 if self.refuses || is_locked => {
                self.set(LOCKED_BIT, true);
                return false;
            }
            0xf4 | 0xf6 => self.set(ENABLED, false),
            _ => {}
        }
        true
    }

    fn identify(&self, data: &mut [u8]) {
        data[2 * 59..2 * 60].copy_from_slice(&self.word_59.to_le_bytes());
        data[2 * 82] = 2;
        data[2 * 128..2 * 129].copy_from_slice(&self.word_128.get().to_le_bytes());
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
            Transfer::In(data) => {
                self.identify(data);
                return Ok(Completion { status: 0, sense: Vec::new() });
            }
            Transfer::Out(data) => data[0] & 1,
            Transfer::None => 0,
        };
        let status = if self.run(command, control) { 0x50 } else { 0x51 };
        let is_question = command == 0xb4 && cdb[4] == 0;
        let count = if is_question { self.next_state().to_be_bytes() } else { [0; 2] };
        let mut sense = vec![0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 14, 0x09, 0x0c, 0x01, 0x04];
        sense.extend([count[0], count[1], 0, 0, 0, 0, 0, 0, 0x40, status]);
        Ok(Completion { status: 2, sense })
    }
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
