//! The far end of a bond: what a switch says by the Link Aggregation Control Protocol (IEEE 802.1AX).

/// EtherType of slow protocols, and the number of this one among them.
const PROTOCOL: [u8; 3] = [0x88, 0x09, 1];
/// Where the protocol stands in a frame.
const PROTOCOL_PLACE: usize = 12;
/// Where a machine speaks of itself, and of its partner: priority and address of its system, key, priority
/// and number of the port, state.
const ACTOR: std::ops::Range<usize> = 18..33;
const PARTNER_SYSTEM: std::ops::Range<usize> = 40..46;
const STATE: usize = 32;
/// Bytes of a frame.
const LENGTH: usize = 124;
/// To whoever is at the other end of the cable.
const DESTINATION: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 2];
/// Hardware address of the switch.
const SYSTEM: [u8; 6] = [0x52, 0x54, 0, 0, 0, 0xfe];

/// Speaks by itself, and wants to be spoken to often.
const ACTIVE: u8 = 0x03;
/// May be bundled, is in step with its partner, takes and gives frames.
const BUNDLED: u8 = 0x04 | 0x08 | 0x10 | 0x20;
/// Has heard nothing of its partner, or no longer.
const ALONE: u8 = 0x40 | 0x80;

/// Whether a frame is of this protocol.
pub fn is_lacp(frame: &[u8]) -> bool {
    frame.len() >= LENGTH && frame[PROTOCOL_PLACE..].starts_with(&PROTOCOL)
}

/// Whether a machine that sent a frame has bundled its port with this switch.
pub fn is_bundled(frame: &[u8]) -> bool {
    let state = frame[STATE];
    frame[PARTNER_SYSTEM] == SYSTEM && state & BUNDLED == BUNDLED && state & ALONE == 0
}

/// What the port of that number answers to a frame: that it is bundled with the machine.
pub fn answer(frame: &[u8], port: usize) -> Vec<u8> {
    let [high, low] = (port as u16 + 1).to_be_bytes();
    let mut answer = [&DESTINATION[..], &SYSTEM, &PROTOCOL, &[1]].concat();
    // Of the switch: priority, address, key, priority and number of the port.
    answer.extend([1, 20, 0x80, 0]);
    answer.extend(SYSTEM);
    answer.extend([0, 1, 0x80, 0, high, low, ACTIVE | BUNDLED, 0, 0, 0]);
    // Of its partner, as that says it.
    answer.extend([2, 20]);
    answer.extend(&frame[ACTOR]);
    answer.extend([0, 0, 0]);
    // It takes frames at once.
    answer.extend([3, 16]);
    answer.resize(LENGTH, 0);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_that_answer_each_other_are_bundled() {
        let mut alone = answer(&[0; LENGTH], 0);
        alone[6] = 0x02;
        alone[STATE] = ACTIVE | ALONE;
        assert!(is_lacp(&alone) && !is_bundled(&alone));
        let from_switch = answer(&alone, 1);
        assert_eq!(from_switch.len(), LENGTH);
        assert_eq!(from_switch[38..53], alone[ACTOR]);
        // The machine answers in the same form, and speaks of the switch as its partner.
        assert!(is_bundled(&answer(&from_switch, 0)));
        assert!(!is_lacp(&[0; LENGTH]) && !is_lacp(&alone[..LENGTH - 1]));
    }
}
