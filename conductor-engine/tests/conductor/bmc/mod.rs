//! What is ordered of a machine's BMC: power, boot mode, virtual drives, and its console.

mod console;
mod firmware;
mod power;
mod power_sync;
