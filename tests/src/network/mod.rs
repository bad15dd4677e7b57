//! What connects emulated machines, and what they load before their kernel.

pub mod bridge;
pub mod cut_line;
pub mod lacp;
pub mod netboot_loaders;
pub mod router;
pub mod switch;
