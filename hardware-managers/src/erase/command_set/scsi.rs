//! SCSI: Sanitize, then Format Unit.

use super::reach::{Cause, Hidden, Reach};
use super::secure::{Patience, SecureErase, Stage, Survey};
use crate::erase::error::EraseError;
use crate::erase::method::Method;
use farrier_disk::WritableDisk;
use farrier_linux::scsi::{self, BlockCounts, EraseState, SanitizeAction, ScsiDevice, ScsiError, ScsiTarget};
use std::os::fd::AsFd;

const SANITIZE: &str = "SCSI Sanitize";
const FORMAT: &str = "SCSI Format Unit";
const SURVEY: &str = "asking for the supported commands";

/// Sanitize actions, the strongest first, with their names in a certificate.
const ACTIONS: [(SanitizeAction, Method, &str); 3] = [
    (SanitizeAction::Crypto, Method::ScsiSanitizeCrypto, "sanitize_crypto"),
    (SanitizeAction::Block, Method::ScsiSanitizeBlock, "sanitize_block"),
    (SanitizeAction::Overwrite, Method::ScsiSanitizeOverwrite, "sanitize_overwrite"),
];

/// A SCSI target.
pub struct ScsiDisk<T> {
    target: T,
}

impl<'a> ScsiDisk<ScsiDevice<'a>> {
    /// The target that a disk is.
    pub fn of(disk: &'a WritableDisk) -> Self {
        Self::behind(disk)
    }

    /// The target behind an open disk.
    pub fn behind(disk: &'a impl AsFd) -> Self {
        Self { target: ScsiDevice::new(disk) }
    }
}

impl<T: ScsiTarget> ScsiDisk<T> {
    fn wait(&self, action: &'static str, patience: &Patience<'_>) -> Result<(), EraseError> {
        patience.wait(action, || match scsi::erase_state(&self.target).map_err(EraseError::scsi(action))? {
            EraseState::Running(progress) => Ok(Stage::Running(progress)),
            EraseState::Ready => Ok(Stage::Done),
        })
    }

    fn sanitize(&self, action: SanitizeAction, patience: &Patience<'_>) -> Result<(), EraseError> {
        scsi::start_sanitize(&self.target, action).map_err(refused(SANITIZE))?;
        let outcome = self.wait(SANITIZE, patience);
        if outcome.as_ref().is_err_and(EraseError::is_failure_of_disk) {
            scsi::exit_failed_sanitize(&self.target).ok();
        }
        outcome
    }
}

/// What a target refuses at once it has not begun.
fn refused(action: &'static str) -> impl FnOnce(ScsiError) -> EraseError {
    move |error| match error.is_unknown_command() {
        true => EraseError::unsupported(action, &error),
        false => EraseError::scsi(action)(error),
    }
}

impl<T: ScsiTarget> SecureErase for ScsiDisk<T> {
    fn survey(&self) -> Result<Survey, EraseError> {
        let mut survey = Survey::default();
        for (action, method, name) in ACTIONS {
            let is_there = scsi::has_sanitize(&self.target, action).map_err(EraseError::scsi(SURVEY))?;
            survey.capabilities.insert(name, u64::from(is_there));
            survey.methods.extend(is_there.then_some(method));
        }
        let has_format = scsi::has_format(&self.target).map_err(EraseError::scsi(SURVEY))?;
        // A format without the right parameters would take protection information away.
        let may_format = has_format
            && !scsi::has_protection(&self.target).map_err(EraseError::scsi("reading the capacity"))?;
        survey.capabilities.insert("format", u64::from(has_format));
        survey.methods.extend(may_format.then_some(Method::ScsiFormat));
        Ok(survey)
    }

    fn wait_until_idle(&self, patience: &Patience<'_>) -> Result<(), EraseError> {
        patience.wait("an earlier erasure", || match scsi::erase_state(&self.target) {
            Ok(EraseState::Running(progress)) => Ok(Stage::Running(progress)),
            // One that cannot be used tells so when it is read.
            Ok(EraseState::Ready) | Err(_) => Ok(Stage::Done),
        })
    }

    fn prepare(&self) -> Result<(), EraseError> {
        Ok(())
    }

    fn erase(&self, method: Method, patience: &Patience<'_>) -> Result<(), EraseError> {
        if let Some((action, ..)) = ACTIONS.into_iter().find(|(_, known, _)| *known == method) {
            return self.sanitize(action, patience);
        }
        if method != Method::ScsiFormat {
            return Err(EraseError::Defect);
        }
        scsi::start_format(&self.target).map_err(refused(FORMAT))?;
        self.wait(FORMAT, patience)
    }

    fn reach(&self) -> Reach {
        let counts = match BlockCounts::ask(&self.target) {
            Ok(counts) => counts,
            Err(error) => return Reach::unanswered(format!("whether it hides blocks: {error}")),
        };
        let mut reach = Reach { counts: [("blocks", counts.shown)].into(), ..Reach::default() };
        match counts.made {
            Some(made) => drop(reach.counts.insert("blocks_made", made)),
            None => reach.unanswered.push("how many blocks it was made with".to_owned()),
        }
        let bytes = counts.hidden().map(|blocks| blocks.saturating_mul(counts.block_bytes));
        reach.hidden.extend(bytes.map(|bytes| Hidden { cause: Cause::BlockCount, bytes }));
        reach
    }

    fn is_indispensable(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::scsi::{Completion, Transfer};
    use std::cell::RefCell;
    use std::io;
    use std::time::Duration;

    const PATIENCE: Patience<'static> =
        Patience { poll: Duration::from_millis(1), limit: Duration::from_millis(50), is_ending: &|| false };
    const GOOD: &[u8] = &[];
    const UNKNOWN: &[u8] = &[0x72, 0x05, 0x20, 0x00, 0, 0, 0, 0];
    const SANITIZING: &[u8] = &[0x72, 0x02, 0x04, 0x1b, 0, 0, 0, 8, 0x02, 0x06, 0, 0, 0x80, 0x20, 0x00, 0];
    const FAILED: &[u8] = &[0x72, 0x03, 0x31, 0x03, 0, 0, 0, 0];

    /// A target that knows some commands and has a script for the question whether it is ready.
    struct Target {
        /// Sanitize actions 1 to 3, and 0 for Format Unit.
        known: &'static [u8],
        is_protected: bool,
        ready: RefCell<Vec<&'static [u8]>>,
        started: RefCell<Vec<u8>>,
        /// With what it answers commands that change something.
        refusal: &'static [u8],
        /// Blocks that it was made with; it shows 1000. 0 is not told.
        made: u32,
    }

    impl Target {
        fn new(known: &'static [u8], ready: &[&'static [u8]]) -> Self {
            let (is_protected, started) = Default::default();
            Self { known, is_protected, ready: ready.to_vec().into(), started, refusal: GOOD, made: 0 }
        }
    }

    impl ScsiTarget for Target {
        fn execute(&self, cdb: &[u8], transfer: Transfer<'_>, _: Duration) -> io::Result<Completion> {
            let sense = match (cdb[0], transfer) {
                (0x00, _) => {
                    let mut ready = self.ready.borrow_mut();
                    if ready.len() > 1 { ready.remove(0) } else { ready[0] }
                }
                (0xa3, _) if self.known.is_empty() => UNKNOWN,
                (0xa3, Transfer::In(data)) => {
                    data[1] = if self.known.contains(&cdb[5]) { 3 } else { 1 };
                    GOOD
                }
                (0x5a, Transfer::In(data)) => {
                    let blocks = if cdb[2] >> 6 == 0 { 1000 } else { self.made };
                    data[7] = 8;
                    data[8..12].copy_from_slice(&blocks.to_be_bytes());
                    data[14] = 2;
                    GOOD
                }
                (0x9e, Transfer::In(data)) => {
                    data[..12].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0x03, 0xe7, 0, 0, 2, 0]);
                    data[12] = u8::from(self.is_protected);
                    GOOD
                }
                _ => {
                    self.started.borrow_mut().push(cdb[0]);
                    self.refusal
                }
            };
            Ok(Completion { status: if sense.is_empty() { 0 } else { 2 }, sense: sense.to_vec() })
        }
    }

    #[test]
    fn p08_methods_are_those_the_target_reports() {
        use Method::*;
        for (known, is_protected, expected) in [
            (&[][..], false, &[][..]),
            (&[0], false, &[ScsiFormat]),
            (&[0], true, &[]),
            (
                &[0, 1, 2, 3],
                false,
                &[ScsiSanitizeCrypto, ScsiSanitizeBlock, ScsiSanitizeOverwrite, ScsiFormat],
            ),
            (&[1], false, &[ScsiSanitizeOverwrite]),
        ] {
            let target = Target { is_protected, ..Target::new(known, &[GOOD]) };
            assert_eq!(ScsiDisk { target }.survey().unwrap().methods, expected, "{known:?}");
        }
    }

    #[test]
    fn d22_the_target_is_asked_until_it_is_ready() {
        for (method, ready, started, expected) in [
            (Method::ScsiSanitizeBlock, &[SANITIZING, SANITIZING, GOOD][..], &[0x48][..], None),
            (Method::ScsiFormat, &[SANITIZING, GOOD], &[0x04], None),
            (Method::ScsiSanitizeCrypto, &[SANITIZING, FAILED], &[0x48, 0x48], Some("sanitize failed")),
            (Method::ScsiSanitizeOverwrite, &[SANITIZING], &[0x48, 0x48], Some("did not finish")),
        ] {
            let disk = ScsiDisk { target: Target::new(&[0, 1, 2, 3], ready) };
            let outcome = disk.erase(method, &PATIENCE).map_err(|error| error.to_string());
            assert_eq!(*disk.target.started.borrow(), started, "{method}");
            match expected {
                None => outcome.unwrap(),
                Some(text) => assert!(outcome.unwrap_err().contains(text), "{method}"),
            }
        }
    }
    #[test]
    fn g07_an_erasure_of_before_is_waited_for() {
        for (ready, expected) in [
            (&[GOOD][..], None),
            (&[SANITIZING, SANITIZING, GOOD], None),
            (&[FAILED], None),
            (&[SANITIZING], Some("an earlier erasure did not finish")),
        ] {
            let disk = ScsiDisk { target: Target::new(&[], ready) };
            let outcome = disk.wait_until_idle(&PATIENCE).map_err(|error| error.to_string());
            match expected {
                None => outcome.unwrap(),
                Some(text) => assert!(outcome.unwrap_err().contains(text)),
            }
        }
    }

    #[test]
    fn g08_what_is_refused_at_once_is_a_method_that_is_not_there() {
        for (refusal, is_there) in [
            // Operation code, field in the command, in the parameter list, and its length.
            (UNKNOWN, false),
            (&[0x72, 0x05, 0x24, 0x00, 0, 0, 0, 0], false),
            (&[0x72, 0x05, 0x26, 0x00, 0, 0, 0, 0], false),
            (&[0x72, 0x05, 0x1a, 0x00, 0, 0, 0, 0], false),
            // Not now, write protected, broken.
            (&[0x72, 0x05, 0x2c, 0x00, 0, 0, 0, 0], true),
            (&[0x72, 0x07, 0x27, 0x00, 0, 0, 0, 0], true),
            (&[0x72, 0x03, 0x31, 0x01, 0, 0, 0, 0], true),
        ] {
            for method in [Method::ScsiFormat, Method::ScsiSanitizeCrypto, Method::ScsiSanitizeOverwrite] {
                let target = Target { refusal, ..Target::new(&[0, 1, 2, 3], &[GOOD]) };
                let error = ScsiDisk { target }.erase(method, &PATIENCE).unwrap_err();
                assert_eq!(!matches!(error, EraseError::Unsupported { .. }), is_there, "{method}: {error}");
            }
        }
    }

    #[test]
    fn a16_blocks_that_mode_select_took_away_are_out_of_reach() {
        for (made, hidden, unanswered) in [
            (0, vec![], 1),
            (1000, vec![], 0),
            (3000, vec![Hidden { cause: Cause::BlockCount, bytes: 2000 * 512 }], 0),
        ] {
            let target = Target { made, ..Target::new(&[], &[GOOD]) };
            let reach = ScsiDisk { target }.reach();
            assert_eq!((reach.hidden, reach.unanswered.len()), (hidden, unanswered), "{made}");
            assert_eq!(reach.counts["blocks"], 1000);
        }
    }
}
