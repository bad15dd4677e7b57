//! Boot interfaces of machines whose firmware asks the conductor what to boot (section 6).
//!
//! Nothing is written to disk for a machine. What it boots is in the record of its node, in
//! `driver_internal_info.ramdisk_parameters`, and its scripts are rendered from that when its firmware asks, by whichever
//! conductor is asked. So a conductor that was killed leaves no file behind that somebody could boot by mistake.
//!
//! - [`ipxe`]: the boot interface `ipxe`.
//! - [`images`]: kernel and ramdisk, as the record names them.
//! - [`root_script`]: the script that every machine is sent to first, which finds its own.
//! - [`templates`]: what scripts look like, and how an operator replaces one.

pub mod images;
pub mod ipxe;
pub mod root_script;
pub mod templates;

use farrier_conductor::Builder;
use ipxe::Ipxe;

/// Adds the boot interface `ipxe`, for hardware types that name it.
pub fn with_netboot(builder: Builder, ipxe: Ipxe) -> Builder {
    builder.boot("ipxe", ipxe)
}
