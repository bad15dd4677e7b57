//! A client of TFTP (RFC 1350) as boot ROMs are one, with blocks and windows as they ask for them (RFC 2348, RFC 7440).

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::clients::Fetched;

/// Bytes of a block that are asked for.
const BLOCK: usize = 1468;
/// Blocks of a window that are asked for, as GRUB does.
const WINDOW: u16 = 8;
/// What both are where the server does not know the options.
const PLAIN: (usize, u16) = (512, 1);
/// How long the server may say nothing before it is told again where this client is.
const WAIT: Duration = Duration::from_secs(1);
/// How often it is told so, one time after the other, before the file is given up.
const TRIES: u32 = 10;

/// Numbers of blocks begin again at 0: what is so far ahead is behind.
const BEHIND: u16 = 1 << 15;

/// Opcodes.
const READ: u8 = 1;
const DATA: u8 = 3;
const ACKNOWLEDGEMENT: u8 = 4;
const ERROR: u8 = 5;
const OPTIONS: u8 = 6;

/// Fetches a file from a server as the client with the address `own`, and holds it against what it is.
///
/// # Errors
///
/// The server falls silent, refuses the file, or sends another.
pub fn fetch(own: Ipv4Addr, server: SocketAddr, name: &str, content: &[u8]) -> Result<Fetched> {
    Transfer::begin(own, server, name, WAIT)?.run(content)
}

/// A file on its way.
struct Transfer {
    socket: UdpSocket,
    /// Whom the last packet went to: the port of the server, and then that of the transfer.
    peer: SocketAddr,
    is_answered: bool,
    /// What is said again when nothing comes.
    said: Vec<u8>,
    block: usize,
    window: u16,
    /// Bytes that have come.
    bytes: usize,
    /// The number of the last block that came in its order.
    last: u16,
    /// How many of its window have come.
    of_window: u16,
    /// Whether the server was told of the gap before what comes now.
    is_gap_told: bool,
    repeats: u32,
}

impl Transfer {
    fn begin(own: Ipv4Addr, server: SocketAddr, name: &str, wait: Duration) -> Result<Self> {
        let socket = UdpSocket::bind((own, 0)).with_context(|| format!("no socket for {own}"))?;
        socket.set_read_timeout(Some(wait))?;
        let options = format!("{name}\0octet\0blksize\0{BLOCK}\0windowsize\0{WINDOW}\0tsize\x000\0");
        let (block, window) = PLAIN;
        let mut transfer = Self {
            socket,
            peer: server,
            is_answered: false,
            said: Vec::new(),
            block,
            window,
            bytes: 0,
            last: 0,
            of_window: 0,
            is_gap_told: false,
            repeats: 0,
        };
        transfer.say([&[0, READ], options.as_bytes()].concat())?;
        Ok(transfer)
    }

    fn run(mut self, content: &[u8]) -> Result<Fetched> {
        let mut packet = [0; 4 + BLOCK];
        let mut tries = 0;
        loop {
            let (length, from) = match self.socket.recv_from(&mut packet) {
                Ok(received) => received,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    tries += 1;
                    ensure!(tries < TRIES, "the server fell silent after {} bytes", self.bytes);
                    self.say_again()?;
                    continue;
                }
                Err(error) => return Err(error).context("the server cannot be heard"),
            };
            // The first answer comes from the port of the transfer; what others send then is not of it.
            if self.is_answered && from != self.peer {
                continue;
            }
            (self.peer, self.is_answered) = (from, true);
            let before = self.bytes;
            if self.take(&packet[..length], content)? {
                return Ok(Fetched { repeats: self.repeats });
            }
            if self.bytes > before {
                tries = 0;
            }
        }
    }

    /// Takes what the server sent; whether the file is whole with that.
    fn take(&mut self, packet: &[u8], content: &[u8]) -> Result<bool> {
        match packet {
            [0, OPTIONS, options @ ..] if self.last == 0 && self.bytes == 0 => {
                (self.block, self.window) = agreed(options);
                self.acknowledge().map(|()| false)
            }
            [0, DATA, high, low, data @ ..] => {
                self.take_block(u16::from_be_bytes([*high, *low]), data, content)
            }
            [0, ERROR, _, code, text @ ..] => {
                bail!("the server says {code}: {}", String::from_utf8_lossy(text).trim_end_matches('\0'))
            }
            _ => Ok(false),
        }
    }

    fn take_block(&mut self, number: u16, data: &[u8], content: &[u8]) -> Result<bool> {
        match number.wrapping_sub(self.last) {
            1 => {}
            // The last block once more: its acknowledgement was lost.
            0 => return self.say_again_where().map(|()| false),
            // One before it was lost, which is told once.
            2..BEHIND if !self.is_gap_told => {
                self.is_gap_told = true;
                return self.say_again_where().map(|()| false);
            }
            _ => return Ok(false),
        }
        let wanted = content.get(self.bytes..self.bytes + data.len());
        ensure!(wanted == Some(data), "block {number} is not that of the file");
        self.bytes += data.len();
        (self.last, self.is_gap_told) = (number, false);
        self.of_window += 1;
        let is_end = data.len() < self.block;
        if is_end || self.of_window == self.window {
            self.acknowledge()?;
        }
        ensure!(!is_end || self.bytes == content.len(), "the file ends after {} bytes", self.bytes);
        Ok(is_end)
    }

    fn acknowledge(&mut self) -> Result<()> {
        self.of_window = 0;
        let [high, low] = self.last.to_be_bytes();
        self.say(vec![0, ACKNOWLEDGEMENT, high, low])
    }

    fn say_again_where(&mut self) -> Result<()> {
        self.repeats += 1;
        self.acknowledge()
    }

    fn say_again(&mut self) -> Result<()> {
        if self.bytes > 0 {
            return self.say_again_where();
        }
        self.repeats += 1;
        self.say(self.said.clone())
    }

    fn say(&mut self, packet: Vec<u8>) -> Result<()> {
        self.said = packet;
        self.socket.send_to(&self.said, self.peer).map(drop).context("the server cannot be told anything")
    }
}

/// Block and window of an acknowledgement of options.
fn agreed(options: &[u8]) -> (usize, u16) {
    let text = String::from_utf8_lossy(options);
    let words: Vec<_> = text.split('\0').collect();
    let (pairs, _) = words.as_chunks::<2>();
    let value =
        |name: &str| pairs.iter().find(|[key, _]| key.eq_ignore_ascii_case(name)).map(|[_, value]| *value);
    let (block, window) = PLAIN;
    let number = |name| value(name).and_then(|value| value.parse().ok());
    (number("blksize").map_or(block, usize::from), number("windowsize").unwrap_or(window))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::thread;

    /// A server of one file in windows, whose packets with these numbers of all that it sends are lost, or come twice.
    struct Server {
        socket: UdpSocket,
        window: u16,
        lost: BTreeSet<usize>,
        twice: BTreeSet<usize>,
        sent: usize,
    }

    impl Server {
        fn send(&mut self, packet: &[u8], to: SocketAddr) {
            self.sent += 1;
            let times = if self.lost.contains(&self.sent) {
                0
            } else {
                1 + usize::from(self.twice.contains(&self.sent))
            };
            for _ in 0..times {
                self.socket.send_to(packet, to).unwrap();
            }
        }

        /// Answers until the whole file is acknowledged, or its client has gone.
        fn serve(mut self, content: &[u8]) {
            self.socket.set_read_timeout(Some(10 * WAIT)).unwrap();
            let mut packet = [0; 600];
            while let Ok((length, client)) = self.socket.recv_from(&mut packet) {
                let number = match packet[..length] {
                    [0, READ, ..] if self.window > 1 => {
                        let options = format!("blksize\x001468\0windowsize\0{}\0", self.window);
                        self.send(&[&[0, OPTIONS], options.as_bytes()].concat(), client);
                        continue;
                    }
                    [0, READ, ..] => 0,
                    [0, ACKNOWLEDGEMENT, high, low] => u16::from_be_bytes([high, low]),
                    _ => panic!("{:?}", &packet[..length]),
                };
                let block = if self.window > 1 { BLOCK } else { 512 };
                let blocks = (content.len() / block + 1) as u16;
                if number == blocks {
                    return;
                }
                for number in number + 1..=blocks.min(number + self.window) {
                    let begin = (usize::from(number) - 1) * block;
                    let data = &content[begin..content.len().min(begin + block)];
                    self.send(&[&[0, DATA][..], &number.to_be_bytes(), data].concat(), client);
                }
            }
        }
    }

    fn fetched(length: usize, window: u16, lost: &[usize], twice: &[usize]) -> Result<Fetched> {
        let content: Vec<u8> = (0..length).map(|n| (n % 251) as u8).collect();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let (lost, twice) = (lost.iter().copied().collect(), twice.iter().copied().collect());
        let server = Server { socket, window, lost, twice, sent: 0 };
        let served = content.clone();
        let server = thread::spawn(move || server.serve(&served));
        let fetched = Transfer::begin(Ipv4Addr::LOCALHOST, address, "loader", WAIT)?.run(&content);
        server.join().unwrap();
        fetched
    }

    #[test]
    fn a_file_comes_whole_whatever_is_lost_or_comes_twice() {
        let cases = [
            (20_000, 8, &[][..], &[][..], 0),
            (20_000, 1, &[], &[], 0),
            // As many bytes as blocks hold: an empty block ends them.
            (BLOCK * 8, 8, &[], &[], 0),
            (1024, 1, &[], &[], 0),
            // The acknowledgement of the options, the begin of a window, one in its middle, and its end.
            (20_000, 8, &[1], &[], 1),
            (20_000, 8, &[2], &[], 1),
            (20_000, 8, &[5], &[], 1),
            (20_000, 8, &[9], &[], 1),
            (5_000, 1, &[3], &[], 1),
            // The end of the file.
            (1000, 8, &[2, 3], &[], 2),
        ];
        // Each loss is waited for as long as a client waits: on a busy host a server answers late, and is not asked again.
        thread::scope(|scope| {
            for (length, window, lost, twice, repeats) in cases {
                scope.spawn(move || {
                    let fetched = fetched(length, window, lost, twice).unwrap();
                    assert_eq!(fetched.repeats, repeats, "{length} in windows of {window} without {lost:?}");
                });
            }
        });
        // What comes twice is answered, and nothing more follows from that than from a loss.
        assert!(fetched(20_000, 8, &[], &[1, 4, 9, 15]).unwrap().repeats > 0);
    }

    #[test]
    fn a_server_that_refuses_falls_silent_or_sends_something_else_is_an_error() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let silent =
            Transfer::begin(Ipv4Addr::LOCALHOST, address, "loader", Duration::from_millis(5)).unwrap();
        let error = silent.run(b"content").unwrap_err();
        assert_eq!(error.to_string(), "the server fell silent after 0 bytes");
        let answers: [(&[u8], &str); 3] = [
            (b"\0\x05\0\x01File not found\0", "the server says 1: File not found"),
            (b"\0\x03\0\x01another", "block 1 is not that of the file"),
            (b"\0\x03\0\x01cont", "the file ends after 4 bytes"),
        ];
        for (answer, expected) in answers {
            let transfer = Transfer::begin(Ipv4Addr::LOCALHOST, address, "loader", WAIT).unwrap();
            socket.send_to(answer, transfer.socket.local_addr().unwrap()).unwrap();
            assert_eq!(transfer.run(b"content").unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn options_are_what_the_server_says() {
        for (options, expected) in [
            (&b"blksize\x001468\0windowsize\x008\0"[..], (1468, 8)),
            (b"tsize\x00100\0BLKSIZE\x001024\0", (1024, 1)),
            (b"", PLAIN),
        ] {
            assert_eq!(agreed(options), expected);
        }
    }
}
