//! The fixed newstyle handshake: what the server offers, and what of it is taken.

use super::line::{Line, nonsense};
use std::io;

/// The server's first words.
pub(super) const GREETING: u64 = u64::from_be_bytes(*b"NBDMAGIC");
/// What each option begins with, and the server's greeting goes on with.
pub(super) const OPTION: u64 = u64::from_be_bytes(*b"IHAVEOPT");
/// What each reply to an option begins with.
pub(super) const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// Of the server's flags: the handshake is the fixed newstyle one.
pub(super) const FIXED_NEWSTYLE: u16 = 1;
/// The option that chooses the export and begins transmission.
pub(super) const GO: u32 = 7;
/// Replies: the end of them, and one that tells something.
pub(super) const ACK: u32 = 1;
pub(super) const INFO: u32 = 3;
/// A bit of every reply that is a refusal.
const REFUSAL: u32 = 1 << 31;
/// What a reply tells: size and flags of the export, and the sizes of its blocks.
pub(super) const INFO_EXPORT: u16 = 0;
pub(super) const INFO_BLOCK_SIZE: u16 = 3;

/// Most replies to one option, and most bytes of one: those that tell what was not asked for are passed over.
const MOST_REPLIES: usize = 16;
const MOST_REPLY: u32 = 4096;

/// What a server can do with its export, as its flags say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Feature {
    /// It is not written to.
    ReadOnly = 1 << 1,
    /// It flushes.
    Flush = 1 << 2,
    /// It takes note of what nobody needs any more.
    Trim = 1 << 5,
    /// It makes ranges zero.
    WriteZeroes = 1 << 6,
    /// What one connection has flushed, all have.
    MultipleConnections = 1 << 8,
}

/// Of the flags: there are flags.
const HAS_FLAGS: u16 = 1;

/// What a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Bytes of the export.
    pub(crate) size: u64,
    /// Bytes of its smallest block; nothing where the server does not tell.
    pub(crate) block: Option<u32>,
    /// Most bytes of a request.
    pub(crate) most: u32,
    flags: u16,
}

impl Offer {
    /// Whether the server can do something.
    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.flags & HAS_FLAGS != 0 && self.flags & feature as u16 != 0
    }
}

/// Most bytes of a request to a server that does not tell.
const MOST: u32 = 32 << 20;

/// Agrees on the export without a name.
///
/// # Errors
///
/// The server speaks something else, refuses, or is silent.
pub(super) fn agree(line: &mut Line<'_>) -> io::Result<Offer> {
    if line.u64()? != GREETING || line.u64()? != OPTION {
        return Err(nonsense("it is no server of network block devices"));
    }
    if line.u16()? & FIXED_NEWSTYLE == 0 {
        return Err(nonsense("the server knows only the old handshake"));
    }
    line.send(&u32::from(FIXED_NEWSTYLE).to_be_bytes())?;
    let mut data = 0_u32.to_be_bytes().to_vec();
    data.extend(1_u16.to_be_bytes());
    data.extend(INFO_BLOCK_SIZE.to_be_bytes());
    let mut option = OPTION.to_be_bytes().to_vec();
    option.extend(GO.to_be_bytes());
    option.extend((data.len() as u32).to_be_bytes());
    option.extend(data);
    line.send(&option)?;
    replies(line)
}

fn replies(line: &mut Line<'_>) -> io::Result<Offer> {
    let (mut export, mut blocks) = (None, None);
    for _ in 0..MOST_REPLIES {
        if line.u64()? != OPTION_REPLY || line.u32()? != GO {
            return Err(nonsense("the server sent a reply without a request"));
        }
        let (kind, length) = (line.u32()?, line.u32()?);
        if length > MOST_REPLY {
            return Err(nonsense(format!("a reply of {length} bytes")));
        }
        let mut data = vec![0; length as usize];
        line.receive(&mut data)?;
        match kind {
            ACK => return offer(export, blocks),
            INFO => match data.split_first_chunk().map(|(kind, rest)| (u16::from_be_bytes(*kind), rest)) {
                Some((INFO_EXPORT, rest)) => export = Some(read_export(rest)?),
                Some((INFO_BLOCK_SIZE, rest)) => blocks = Some(read_blocks(rest)?),
                _ => {}
            },
            refusal if refusal & REFUSAL != 0 => {
                let said = String::from_utf8_lossy(&data);
                let said: String = said.chars().filter(|c| !c.is_control()).take(200).collect();
                return Err(io::Error::other(format!("the server refuses its export ({kind:#x}): {said}")));
            }
            other => return Err(nonsense(format!("a reply of the unknown kind {other:#x}"))),
        }
    }
    Err(nonsense("replies without an end"))
}

fn read_export(data: &[u8]) -> io::Result<(u64, u16)> {
    let (size, flags) = data.split_at_checked(8).ok_or_else(|| nonsense("a short description"))?;
    match (size.try_into(), flags.try_into()) {
        (Ok(size), Ok(flags)) => Ok((u64::from_be_bytes(size), u16::from_be_bytes(flags))),
        _ => Err(nonsense("a description of another length")),
    }
}

/// The smallest and the largest block.
fn read_blocks(data: &[u8]) -> io::Result<(u32, u32)> {
    let [a, b, c, d, _, _, _, _, e, f, g, h] = *data else {
        return Err(nonsense("block sizes of another length"));
    };
    Ok((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
}

fn offer(export: Option<(u64, u16)>, blocks: Option<(u32, u32)>) -> io::Result<Offer> {
    let (size, flags) = export.ok_or_else(|| nonsense("the server does not tell how large its export is"))?;
    let Some((block, most)) = blocks else { return Ok(Offer { size, block: None, most: MOST, flags }) };
    if !block.is_power_of_two() || most < block {
        return Err(nonsense(format!("blocks of {block} to {most} bytes")));
    }
    let most = most.min(MOST);
    Ok(Offer { size, block: Some(block), most: most - most % block, flags })
}
