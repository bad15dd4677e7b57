//! A BMC for an emulated machine (`ipmi-bmc-extern` of QEMU): it tells its addresses on a LAN channel, which
//! the one inside QEMU cannot.
//!
//! Each request is sequence, network function, command, data and checksum; what may be mistaken for an
//! end is escaped. Commands are those of the IPMI specification 2.0.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::thread;

const END_OF_MESSAGE: u8 = 0xa0;
const END_OF_COMMAND: u8 = 0xa1;
const ESCAPE: u8 = 0xaa;
const ESCAPED: u8 = 0x10;

const APPLICATION: u8 = 0x06;
const TRANSPORT: u8 = 0x0c;
const GET_DEVICE_ID: u8 = 0x01;
const GET_LAN_PARAMETERS: u8 = 0x02;
const INVALID_COMMAND: u8 = 0xc1;
const INVALID_PARAMETER: u8 = 0x80;
const INVALID_CHANNEL: u8 = 0xcc;

/// Addresses of a BMC.
#[derive(Debug, Clone, Copy)]
pub struct Bmc {
    /// The channel that leads to its network.
    pub channel: u8,
    /// IPv4 address.
    pub ipv4: Ipv4Addr,
    /// IPv6 address, got from a router.
    pub ipv6: Ipv6Addr,
    /// Hardware address.
    pub mac: [u8; 6],
}

impl Bmc {
    /// Answers on a socket until the process ends.
    ///
    /// # Errors
    ///
    /// The socket cannot be made.
    pub fn start(self, socket: &Path) -> io::Result<()> {
        let listener = UnixListener::bind(socket)?;
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                // The machine was switched off.
                self.serve(connection).ok();
            }
        });
        Ok(())
    }

    fn serve(self, mut connection: UnixStream) -> io::Result<()> {
        let mut message = Vec::new();
        let mut is_escaped = false;
        for byte in BufReader::new(connection.try_clone()?).bytes() {
            match byte? {
                END_OF_MESSAGE => {
                    if let Some(answer) = self.answer(&message) {
                        connection.write_all(&framed(&answer))?;
                    }
                    message.clear();
                }
                // The machine's version and resets are of no interest.
                END_OF_COMMAND => message.clear(),
                ESCAPE => is_escaped = true,
                byte => message.push(if std::mem::take(&mut is_escaped) { byte & !ESCAPED } else { byte }),
            }
        }
        Ok(())
    }

    /// Sequence, network function, command, completion code and data.
    fn answer(self, message: &[u8]) -> Option<Vec<u8>> {
        let [sequence, function, command, data @ .., _checksum] = message else { return None };
        let outcome = match (function >> 2, *command) {
            // Device, revisions, IPMI 2.0, no further support, maker and product.
            (APPLICATION, GET_DEVICE_ID) => Ok(vec![0x20, 1, 1, 0, 2, 0, 0, 0, 0, 0, 0]),
            (TRANSPORT, GET_LAN_PARAMETERS) => self.parameter(data),
            _ => Err(INVALID_COMMAND),
        };
        let head = [*sequence, function | 4, *command];
        Some(match outcome {
            Ok(data) => [&head[..], &[0], &data].concat(),
            Err(code) => [&head[..], &[code]].concat(),
        })
    }

    /// A LAN parameter (table 23-4), after its revision.
    fn parameter(self, data: &[u8]) -> Result<Vec<u8>, u8> {
        let [channel, parameter, ..] = data else { return Err(INVALID_PARAMETER) };
        if channel & 0x0f != self.channel {
            return Err(INVALID_CHANNEL);
        }
        let value = match parameter {
            3 => self.ipv4.octets().to_vec(),
            5 => self.mac.to_vec(),
            // IPv4 and IPv6 at the same time.
            51 => vec![2],
            // No static address, one from the network, which may come in both ways.
            55 => vec![0, 1, 3],
            // Set, got by SLAAC, address, prefix length, active.
            59 => [&[0, 1], &self.ipv6.octets()[..], &[64, 0]].concat(),
            _ => return Err(INVALID_PARAMETER),
        };
        Ok([&[0x11], &value[..]].concat())
    }
}

fn framed(answer: &[u8]) -> Vec<u8> {
    let sum = answer.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    let mut framed = Vec::new();
    for byte in answer.iter().chain([&sum.wrapping_neg()]) {
        match *byte {
            END_OF_MESSAGE | END_OF_COMMAND | ESCAPE => framed.extend([ESCAPE, byte | ESCAPED]),
            byte => framed.push(byte),
        }
    }
    framed.push(END_OF_MESSAGE);
    framed
}

#[cfg(test)]
mod tests {
    use super::*;

    const BMC: Bmc =
        Bmc { channel: 3, ipv4: Ipv4Addr::new(198, 51, 100, 10), ipv6: Ipv6Addr::LOCALHOST, mac: [1; 6] };

    #[test]
    fn addresses_are_told_on_their_channel_only() {
        let ask = |channel, parameter| {
            BMC.answer(&[7, TRANSPORT << 2, GET_LAN_PARAMETERS, channel, parameter, 0, 0, 99])
        };
        assert_eq!(ask(3, 3).unwrap(), [7, 0x34, 2, 0, 0x11, 198, 51, 100, 10]);
        assert_eq!(ask(1, 3).unwrap(), [7, 0x34, 2, INVALID_CHANNEL]);
        assert_eq!(BMC.answer(&[7, 0x28, 0x40, 99]).unwrap(), [7, 0x2c, 0x40, INVALID_COMMAND]);
    }

    #[test]
    fn ends_inside_a_message_are_escaped() {
        assert_eq!(framed(&[0xa0, 0x01]), [0xaa, 0xb0, 0x01, 0x5f, 0xa0]);
        assert_eq!(framed(&[0x60]), [0x60, 0xaa, 0xb0, 0xa0]);
    }
}
