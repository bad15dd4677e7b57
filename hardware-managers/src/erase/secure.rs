//! Secure erase: disks that can erase themselves (ATA security erase, SCSI and NVMe sanitize and format).

use super::error::EraseError;
use super::method::Method;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// How long a disk may take when it does not say.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
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
    fn erase(&self, method: Method, patience: &Patience) -> Result<(), EraseError>;

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

/// How long to wait, and how often to ask.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Time between two questions.
    pub poll: Duration,
    /// Time after which a disk that does not say how long it takes is given up.
    pub limit: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { poll: POLL, limit: LONGEST }
    }
}

/// Where an erasure stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It is running; this part of 65536 is done, where the disk tells.
    Running(Option<u16>),
    /// It is done, says the disk.
    Done,
}

impl Patience {
    /// Asks until the disk is done.
    ///
    /// # Errors
    ///
    /// [`EraseError::TimedOut`], or what asking reports.
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
            if started.elapsed() >= self.limit {
                return Err(EraseError::TimedOut { action, limit: self.limit });
            }
            thread::sleep(self.poll);
        }
    }
}
