//! Who reserved a namespace (NVM Express Base Specification 2.0, sections 7.8 and 8.19).

use super::{CNS_CONTROLLER, Command, NvmeError, NvmeTarget, QUERY_TIMEOUT, Queue, identify};

const RESERVATION_REPORT: u8 = 0x0e;
/// Optional commands that the controller has (ONCS): reservations.
const ONCS_RESERVATIONS: u16 = 1 << 5;
/// The report is about hosts with identifiers of 128 bits.
const EXTENDED: u32 = 1 << 0;
/// The host's identifier is of the other length.
const INCONSISTENT_HOST_IDENTIFIER: u16 = 0x018;
/// Status code and its type.
const STATUS: u16 = 0x7ff;
/// Bytes read: the head of the report, which says what kind of reservation there is.
const HEAD: usize = 64;
/// Where the kind is; 0 is none.
const KIND: usize = 4;

/// Whether a host holds a reservation of the namespace; without reservations none does.
///
/// # Errors
///
/// [`NvmeError`].
pub fn is_reserved(target: &impl NvmeTarget, namespace: u32) -> Result<bool, NvmeError> {
    let controller = identify(target, 0, CNS_CONTROLLER)?;
    if u16::from_le_bytes([controller[520], controller[521]]) & ONCS_RESERVATIONS == 0 {
        return Ok(false);
    }
    let report = report(target, namespace, 0).or_else(|error| match error {
        NvmeError::Status(status) if status & STATUS == INCONSISTENT_HOST_IDENTIFIER => {
            report(target, namespace, EXTENDED)
        }
        other => Err(other),
    })?;
    Ok(report[KIND] != 0)
}

fn report(target: &impl NvmeTarget, namespace: u32, form: u32) -> Result<[u8; HEAD], NvmeError> {
    let mut data = [0; HEAD];
    let dwords = (HEAD / 4 - 1) as u32;
    let command = Command {
        queue: Queue::Io,
        opcode: RESERVATION_REPORT,
        namespace,
        dwords: [dwords, form],
        timeout: QUERY_TIMEOUT,
    };
    target.submit(&command, &mut data)?;
    Ok(data)
}
