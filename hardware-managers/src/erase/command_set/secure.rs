//! Secure erase: disks that can erase themselves (ATA security erase, SCSI and NVMe sanitize and format).

use super::reach::Reach;
use crate::erase::error::EraseError;
use crate::erase::method::Method;
use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a disk may take when it does not say.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// What becomes of an erasure that a disk does by itself when the agent ends.
const GOES_ON: &str = "the disk still erases itself; run the step again, which waits for that";
/// What becomes of an erasure by one command when the agent ends.
const IN_COMMAND: &str = "the disk is at its command still, and may stay locked; power-cycle the machine if it does not \
                          answer, and run the step again";
/// How often it is asked whether it is done.
const POLL: Duration = Duration::from_secs(1);

/// A disk that may be able to erase itself.
pub trait SecureErase {
    /// What it says it can do. Nothing is changed.
    ///
    /// # Errors
    ///
    /// [`EraseError`] when it cannot be asked, or cannot do now what it could do otherwise.
    fn survey(&self) -> Result<Survey, EraseError>;

    /// Waits for the end of an erasure that started before the boot of the machine. A disk that does
    /// not tell of one has none.
    ///
    /// # Errors
    ///
    /// [`EraseError::TimedOut`] or [`EraseError::Ending`].
    fn wait_until_idle(&self, patience: &Patience<'_>) -> Result<(), EraseError>;

    /// Makes the disk accessible, so that it can be written before it erases itself.
    ///
    /// # Errors
    ///
    /// [`EraseError`].
    fn prepare(&self) -> Result<(), EraseError>;

    /// Erases the disk and waits until it says that it is done.
    ///
    /// # Errors
    ///
    /// [`EraseError`].
    fn erase(&self, method: Method, patience: &Patience<'_>) -> Result<(), EraseError>;

    /// How much of it its sectors reach. Nothing is changed. What it does not tell is said.
    fn reach(&self) -> Reach;

    /// Has it show what its sectors do not reach, as far as that does no harm. Returns whether it shows more.
    fn show_hidden(&self) -> bool {
        false
    }

    /// Whether overwriting is no substitute where there is no method: on flash, it leaves old data
    /// in blocks that cannot be reached.
    fn is_indispensable(&self) -> bool;
}

/// What a disk says it can do.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Methods, the strongest first.
    pub methods: Vec<Method>,
    /// The words and bits that say so, by their names in the standard.
    pub capabilities: BTreeMap<&'static str, u64>,
}

/// How long to wait, how often to ask, and what ends the wait.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// Time between two questions.
    pub poll: Duration,
    /// Time after which a disk that does not say how long it takes is given up.
    pub limit: Duration,
    /// Whether the agent is about to end.
    pub is_ending: &'a (dyn Fn() -> bool + Sync),
}

/// Where an erasure stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is running; this part of 65536 is done, if the disk reports it.
    Running(Option<u16>),
    /// It is done, says the disk.
    Done,
}

impl<'a> Patience<'a> {
    /// As long as a disk may take that does not say how long, unless the agent is about to end.
    pub fn until(is_ending: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { poll: POLL, limit: LONGEST, is_ending }
    }

    /// Runs a command that blocks until the disk is done on a thread of its own, which stays behind when the agent ends.
    ///
    /// # Errors
    ///
    /// [`EraseError::Ending`], or [`EraseError::Defect`] when there is no thread.
    pub fn attend<R: Send + 'static>(
        &self,
        command: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, EraseError> {
        let (sender, receiver) = sync_channel(1);
        let run = move || drop(sender.send(command()));
        thread::Builder::new().name("erase".to_owned()).spawn(run).map_err(|_| EraseError::Defect)?;
        loop {
            match receiver.recv_timeout(self.poll) {
                Ok(outcome) => return Ok(outcome),
                Err(RecvTimeoutError::Timeout) if (self.is_ending)() => {
                    return Err(EraseError::Ending(IN_COMMAND));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(EraseError::Defect),
            }
        }
    }

    /// Asks until the disk is done.
    ///
    /// # Errors
    ///
    /// [`EraseError::TimedOut`], [`EraseError::Ending`], or what asking reports.
    pub fn wait(
        &self,
        action: &'static str,
        mut ask: impl FnMut() -> Result<Stage, EraseError>,
    ) -> Result<(), EraseError> {
        let started = Instant::now();
        let mut reported = 0;
        loop {
            match ask()? {
                Stage::Done => return Ok(()),
                Stage::Running(progress) => {
                    let tenths = progress.map_or(0, |part| u32::from(part) * 10 / 65536);
                    if tenths > reported {
                        reported = tenths;
                        tracing::info!(action, percent = tenths * 10, "erasing");
                    }
                }
            }
            if (self.is_ending)() {
                return Err(EraseError::Ending(GOES_ON));
            }
            if started.elapsed() >= self.limit {
                return Err(EraseError::TimedOut { action, limit: self.limit });
            }
            thread::sleep(self.poll);
        }
    }
}
