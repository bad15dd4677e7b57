//! How long each phase of a machine's life takes.

use super::span::Span;
use crate::seed::Seed;
use serde::Deserialize;
use std::time::Duration;

/// A phase that takes its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// From power-on until the agent starts.
    Boot,
    /// The agent takes its inventory.
    Inspect,
    /// The agent lists its steps, or answers another command that ends at once.
    Answer,
    /// The step `erase_devices`, or `erase_devices_express`.
    EraseDevices,
    /// The step `erase_devices_metadata`.
    EraseMetadata,
    /// The step `write_image`.
    WriteImage,
    /// The command `install_bootloader`.
    Bootloader,
    /// Any other step.
    OtherStep,
    /// From the order to shut down until the machine is off.
    Shutdown,
}

/// How long phases take, as in the real world.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Phases {
    boot: Span,
    inspect: Span,
    answer: Span,
    erase_devices: Span,
    erase_metadata: Span,
    write_image: Span,
    bootloader: Span,
    other_step: Span,
    shutdown: Span,
    /// By which share of its length a phase may be shorter or longer.
    pub spread: f64,
}

impl Default for Phases {
    fn default() -> Self {
        let seconds = |seconds| Span(Duration::from_secs(seconds));
        Self {
            boot: seconds(180),
            inspect: seconds(20),
            answer: seconds(1),
            erase_devices: seconds(20 * 60),
            erase_metadata: seconds(15),
            write_image: seconds(240),
            bootloader: seconds(10),
            other_step: seconds(30),
            shutdown: seconds(20),
            spread: 0.2,
        }
    }
}

impl Phases {
    /// How long a phase takes in the real world; `number` tells one that comes again from the time before.
    pub fn length(&self, phase: Phase, seed: Seed, number: u64) -> Duration {
        let (name, usual) = match phase {
            Phase::Boot => ("boot", self.boot),
            Phase::Inspect => ("inspect", self.inspect),
            Phase::Answer => ("answer", self.answer),
            Phase::EraseDevices => ("erase-devices", self.erase_devices),
            Phase::EraseMetadata => ("erase-metadata", self.erase_metadata),
            Phase::WriteImage => ("write-image", self.write_image),
            Phase::Bootloader => ("bootloader", self.bootloader),
            Phase::OtherStep => ("other-step", self.other_step),
            Phase::Shutdown => ("shutdown", self.shutdown),
        };
        seed.draw(name, number).around(usual.0, self.spread)
    }
}
