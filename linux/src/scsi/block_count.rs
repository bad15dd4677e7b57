//! How many blocks a target has, and how many of them it shows (SBC-4, section 6.4.2; SPC-5, section 6.13): MODE
//! SELECT can take the last ones away.

use super::{ScsiError, ScsiTarget, ask, capacity};

const MODE_SENSE_10: u8 = 0x5a;
/// Long block descriptors are accepted.
const LONG_DESCRIPTORS: u8 = 1 << 4;
/// Page control: values of now, and those the target was made with.
const CURRENT: u8 = 0;
const DEFAULT: u8 = 2;
/// The page that comes with the descriptor: Read-Write Error Recovery, which every disk has.
const ERROR_RECOVERY: u8 = 0x01;
/// Bytes of the head of the answer.
const HEAD: usize = 8;

/// The blocks of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockCounts {
    /// Those that it shows.
    pub shown: u64,
    /// Those that it was made with; nothing where it does not tell.
    pub made: Option<u64>,
    /// Bytes of a block.
    pub block_bytes: u64,
}

/// A block descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Descriptor {
    blocks: u64,
    block_bytes: u64,
}

impl BlockCounts {
    /// Asks a target. Nothing is changed.
    ///
    /// # Errors
    ///
    /// [`ScsiError`], when the target does not tell its capacity.
    pub fn ask(target: &impl ScsiTarget) -> Result<Self, ScsiError> {
        let capacity = capacity(target)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
        let shown = number(&capacity[..8]).saturating_add(1);
        let block_bytes = number(&capacity[8..12]);
        // A target whose descriptor does not even tell what it shows now tells nothing by the other one.
        let is_trusted =
            descriptor(target, CURRENT).is_some_and(|now| now == Descriptor { blocks: shown, block_bytes });
        let made = is_trusted.then(|| descriptor(target, DEFAULT)).flatten();
        let made = made.filter(|made| made.block_bytes == block_bytes).map(|made| made.blocks);
        Ok(Self { shown, made, block_bytes })
    }

    /// Blocks that the target has and does not show, as far as it reports them.
    pub fn hidden(&self) -> Option<u64> {
        self.made?.checked_sub(self.shown).filter(|hidden| *hidden > 0)
    }
}

/// The block descriptor with this page control; nothing where the target has none, or the number is not said.
fn descriptor(target: &impl ScsiTarget, control: u8) -> Option<Descriptor> {
    let mut data = [0; 252];
    let page = control << 6 | ERROR_RECOVERY;
    let cdb = [MODE_SENSE_10, LONG_DESCRIPTORS, page, 0, 0, 0, 0, 0, data.len() as u8, 0];
    ask(target, &cdb, &mut data).ok()?;
    let is_long = data[4] & 1 != 0;
    let length = u16::from_be_bytes([data[6], data[7]]);
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let body = &data[HEAD..];
    let (blocks, block_bytes, all_ones) = match (is_long, length) {
        (true, 16..) => (number(&body[..8]), number(&body[12..16]), u64::MAX),
        (false, 8..) => (number(&body[..4]), number(&body[5..8]), u64::from(u32::MAX)),
        _ => return None,
    };
    (blocks != 0 && blocks != all_ones).then_some(Descriptor { blocks, block_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scsi::tests::Recorded;

    const REFUSED: &[u8] = &[0x72, 0x05, 0x20, 0x00, 0, 0, 0, 0];

    fn capacity(blocks: u64) -> Vec<u8> {
        let mut data = (blocks - 1).to_be_bytes().to_vec();
        data.extend(512_u32.to_be_bytes());
        data
    }

    fn long(blocks: u64, bytes: u32) -> Vec<u8> {
        let mut data = vec![0, 0, 0, 0, 1, 0, 0, 16];
        data.extend(blocks.to_be_bytes());
        data.extend([0; 4]);
        data.extend(bytes.to_be_bytes());
        data
    }

    fn short(blocks: u32, bytes: u32) -> Vec<u8> {
        let mut data = vec![0, 0, 0, 0, 0, 0, 0, 8];
        data.extend(blocks.to_be_bytes());
        data.extend(bytes.to_be_bytes());
        data
    }

    #[test]
    fn a16_a_target_with_fewer_blocks_than_it_was_made_with_is_seen() {
        const LARGE: u64 = 0x1_2345_0000;
        for (shown, now, made, expected) in [
            (LARGE, Some(long(LARGE, 512)), Some(long(LARGE, 512)), None),
            (LARGE, Some(long(LARGE, 512)), Some(long(LARGE + 7, 512)), Some(7)),
            (1000, Some(short(1000, 512)), Some(short(4000, 512)), Some(3000)),
            // Shown more than made: no block is hidden.
            (4000, Some(short(4000, 512)), Some(short(1000, 512)), None),
            // What it says of now is not so, so what it says of then counts for nothing.
            (1000, Some(short(999, 512)), Some(short(4000, 512)), None),
            (1000, Some(short(1000, 512)), Some(short(500, 4096)), None),
            (1000, Some(short(1000, 512)), Some(short(0, 512)), None),
            (1000, Some(short(1000, 512)), Some(short(u32::MAX, 512)), None),
            (1000, Some(vec![0; 8]), None, None),
            (1000, None, None, None),
        ] {
            let capacity = capacity(shown);
            let mut answers = vec![(0, &[][..], &capacity[..])];
            for one in [&now, &made] {
                match one {
                    Some(data) => answers.push((0, &[], data)),
                    None => answers.push((2, REFUSED, &[])),
                }
            }
            let target = Recorded::new(&answers);
            let counts = BlockCounts::ask(&target).unwrap();
            assert_eq!((counts.shown, counts.hidden()), (shown, expected), "{now:x?} {made:x?}");
            assert_eq!(target.asked.borrow()[1].0[..3], [0x5a, 0x10, 0x01]);
        }
    }
}
