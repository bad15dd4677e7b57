//! The vendor's programs.

use super::fault::Fault;
use farrier_linux::process::{MSTCONFIG, MSTFLINT, MSTFWRESET, Program};
use std::time::Duration;

/// Time for looking at a card, or changing its settings.
const LOOK: Duration = Duration::from_secs(120);
/// Time for writing firmware or resetting a card.
const WORK: Duration = Duration::from_secs(1800);

/// The programs, which come in one package.
#[derive(Debug, Clone, Copy)]
pub struct Tools {
    pub flint: Program,
    pub config: Program,
    pub reset: Program,
}

impl Tools {
    /// Those of this machine.
    pub const SYSTEM: Self = Self { flint: MSTFLINT, config: MSTCONFIG, reset: MSTFWRESET };

    /// Makes sure that all of them work before anything is changed.
    ///
    /// # Errors
    ///
    /// [`Fault::Tool`] naming the program and its package.
    pub fn require(&self) -> Result<(), Fault> {
        [self.flint, self.config, self.reset]
            .iter()
            .try_for_each(|tool| tool.run(&["-v"], LOOK).map(drop))?;
        Ok(())
    }

    /// What the firmware of a card or, given as a file, an image says about itself.
    pub fn query(&self, option: &str, target: &str) -> Result<String, Fault> {
        Ok(self.flint.run(&[option, target, "-qq", "query"], LOOK)?)
    }

    /// Writes firmware to a card.
    pub fn burn(&self, card: &str, image: &str) -> Result<(), Fault> {
        self.flint.run(&["-d", card, "-i", image, "-y", "burn"], WORK)?;
        Ok(())
    }

    /// Resets a card to start its new firmware.
    pub fn reset(&self, card: &str) -> Result<(), Fault> {
        self.reset.run(&["-d", card, "-y", "--sync", "1", "reset"], WORK)?;
        Ok(())
    }

    /// The parameters of a card that the program knows, with their descriptions.
    pub fn known_parameters(&self, card: &str) -> Result<String, Fault> {
        Ok(self.config.run(&["-d", card, "i"], LOOK)?)
    }

    /// The parameters of a card with the values of its next start.
    pub fn parameters(&self, card: &str) -> Result<String, Fault> {
        Ok(self.config.run(&["-d", card, "q"], LOOK)?)
    }

    /// Sets parameters of a card, each as `NAME=value`.
    pub fn set(&self, card: &str, assignments: &[String]) -> Result<(), Fault> {
        let words = ["-d", card, "-y", "set"].map(str::to_owned);
        let arguments: Vec<_> = words.iter().chain(assignments).collect();
        self.config.run(&arguments, LOOK)?;
        Ok(())
    }
}
