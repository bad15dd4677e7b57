//! TFTP as boot ROMs speak it (RFC 1350, with the options of RFC 2347, 2348, 2349 and 7440): what is read and what is
//! sent, without a socket.
//!
//! No crate does: the one that there is brings a second asynchronous runtime, starts a task and a socket for every
//! request however many come, never ends a transfer in blocks of 0 bytes, and panics over a window of 0.

use std::time::Duration;

/// Longest request, as RFC 2347 has it.
pub const LONGEST_REQUEST: usize = 512;
/// Bytes of a block where none were asked for.
const BLOCK: u16 = 512;
/// The fewest that may be asked for (RFC 2348).
const SMALLEST_BLOCK: u16 = 8;
/// The most that are sent, which fit into a frame of Ethernet, under IPv4 at least.
const LARGEST_BLOCK: u16 = 1468;
/// Most blocks of a window.
const LARGEST_WINDOW: u16 = 64;
/// How long an answer is waited for before blocks are sent again.
const WAIT: Duration = Duration::from_secs(1);
/// The longest of these that may be asked for, in seconds.
const LONGEST_WAIT: u8 = 10;

/// A request to read a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Its name.
    pub file: String,
    block: Option<u16>,
    window: Option<u16>,
    wait: Option<u8>,
    wants_size: bool,
}

/// Why a packet is no such request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRequest {
    /// It is nothing that begins a transfer, and gets no answer.
    Stray,
    /// It gets this answer.
    Refused(Refusal),
}

/// The error for a machine that gets no file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such file.
    NotFound,
    /// Nothing is written here.
    ReadOnly,
    /// The request is malformed, or wants text.
    Illegal,
    /// The file cannot be read any more.
    Broken,
}

impl Refusal {
    /// The packet.
    pub fn packet(self) -> Vec<u8> {
        let (code, text) = match self {
            Self::NotFound => (1, "File not found"),
            Self::ReadOnly => (2, "Nothing can be written here"),
            Self::Illegal => (4, "Only reading in mode octet is served"),
            Self::Broken => (0, "The file cannot be read"),
        };
        [&[0, 5, 0, code], text.as_bytes(), &[0]].concat()
    }
}

impl Request {
    /// Reads a packet that came to the port of the server.
    ///
    /// # Errors
    ///
    /// It is no request to read a file.
    pub fn parse(packet: &[u8]) -> Result<Self, NoRequest> {
        let illegal = NoRequest::Refused(Refusal::Illegal);
        match packet {
            [0, 1, ..] => {}
            [0, 2, ..] => return Err(NoRequest::Refused(Refusal::ReadOnly)),
            _ => return Err(NoRequest::Stray),
        }
        let Some((0, body)) = packet[2..].split_last().filter(|_| packet.len() <= LONGEST_REQUEST) else {
            return Err(illegal);
        };
        let words: Option<Vec<&str>> =
            body.split(|byte| *byte == 0).map(|word| std::str::from_utf8(word).ok()).collect();
        let Some([file, mode, options @ ..]) = words.as_deref() else { return Err(illegal) };
        if file.is_empty() || !mode.eq_ignore_ascii_case("octet") {
            return Err(illegal);
        }
        let option = |name: &str| {
            let (pairs, _) = options.as_chunks::<2>();
            pairs.iter().find(|[key, _]| key.eq_ignore_ascii_case(name)).map(|[_, value]| *value)
        };
        let number = |name: &str| option(name).and_then(|value| value.parse::<u16>().ok());
        Ok(Self {
            file: (*file).to_owned(),
            block: number("blksize").filter(|block| *block >= SMALLEST_BLOCK),
            window: number("windowsize").filter(|window| *window > 0),
            wait: number("timeout")
                .and_then(|wait| u8::try_from(wait).ok())
                .filter(|wait| (1..=LONGEST_WAIT).contains(wait)),
            wants_size: option("tsize").is_some(),
        })
    }

    /// What the request and this server agree on, for a file of so many bytes. An option whose value cannot be is as
    /// good as none.
    pub fn terms(&self, size: u64) -> Terms {
        let block = self.block.map(|block| block.min(LARGEST_BLOCK));
        let window = self.window.map(|window| window.min(LARGEST_WINDOW));
        let agreed = [
            ("blksize", block.map(u64::from)),
            ("windowsize", window.map(u64::from)),
            ("timeout", self.wait.map(u64::from)),
            ("tsize", self.wants_size.then_some(size)),
        ];
        let words = agreed.iter().filter_map(|(name, value)| value.map(|value| format!("{name}\0{value}\0")));
        let words: String = words.collect();
        Terms {
            block: block.unwrap_or(BLOCK).into(),
            window: window.unwrap_or(1).into(),
            wait: self.wait.map_or(WAIT, |wait| Duration::from_secs(wait.into())),
            acknowledgement: (!words.is_empty()).then(|| [&[0, 6], words.as_bytes()].concat()),
        }
    }
}

/// How a file is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Bytes of a block.
    pub block: usize,
    /// Blocks that are sent before an answer is waited for.
    pub window: u64,
    /// How long it is waited for.
    pub wait: Duration,
    /// The error packet, if there was a request.
    pub acknowledgement: Option<Vec<u8>>,
}

/// What a machine says while it gets a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It has all blocks up to the one with this number.
    Acknowledged(u16),
    /// It wants no more.
    Ended,
}

impl Answer {
    /// Reads a packet that came to the port of a transfer; nothing when it says neither.
    pub fn parse(packet: &[u8]) -> Option<Self> {
        match packet {
            [0, 4, high, low, ..] => Some(Self::Acknowledged(u16::from_be_bytes([*high, *low]))),
            [0, 5, ..] => Some(Self::Ended),
            _ => None,
        }
    }
}

/// How far a transfer is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Number of the first block that is not acknowledged; 0 is the acknowledgement of the options.
    next: u64,
    /// Number of the last block, which is shorter than the others.
    last: u64,
    window: u64,
}

/// What follows from an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Send the next window.
    Send,
    /// The machine says again where it is: the begin of a window did not arrive, or arrived twice.
    Repeated,
    /// It is about something else.
    Stray,
    /// The machine has the file.
    Done,
}

impl Progress {
    /// Of a file of so many bytes.
    pub fn new(terms: &Terms, size: u64) -> Self {
        let next = if terms.acknowledgement.is_some() { 0 } else { 1 };
        Self { next, last: size / terms.block as u64 + 1, window: terms.window }
    }

    /// Numbers of the blocks to send now; 0 alone to acknowledge the options: more is sent
    /// only to a machine that has answered, so no host is flooded with a forged address.
    pub fn window(&self) -> std::ops::RangeInclusive<u64> {
        match self.next {
            0 => 0..=0,
            next => next..=self.last.min(next + self.window - 1),
        }
    }

    /// Takes note of an acknowledgement of a window that was sent. Numbers begin again after 65535.
    pub fn acknowledge(&mut self, number: u16) -> Next {
        let window = self.window();
        let passed = u64::from(number.wrapping_sub(*window.start() as u16));
        if passed <= window.end() - window.start() {
            self.next = window.start() + passed + 1;
            return if self.next > self.last { Next::Done } else { Next::Send };
        }
        match passed == u64::from(u16::MAX) && *window.start() > 0 {
            true => Next::Repeated,
            false => Next::Stray,
        }
    }

    /// Blocks that the machine has.
    pub fn blocks(&self) -> u64 {
        self.next.saturating_sub(1)
    }
}

/// The packet of a block.
pub fn data(number: u64, bytes: &[u8]) -> Vec<u8> {
    [&[0, 3], &(number as u16).to_be_bytes()[..], bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &[&str]) -> Vec<u8> {
        [&[0, 1], words.join("\0").as_bytes(), &[0]].concat()
    }

    fn terms(options: &[&str]) -> Terms {
        let all = [&["pxelinux.0", "octet"], options].concat();
        Request::parse(&request(&all)).unwrap().terms(1_000_000)
    }

    #[test]
    fn options_are_agreed_on_as_they_are_asked_for_or_fewer() {
        for (options, block, window, seconds, acknowledgement) in [
            (&[][..], 512, 1, 1, None),
            (&["tsize", "0"], 512, 1, 1, Some("tsize\x001000000\0")),
            (&["tsize", "0", "blksize", "1408"], 1408, 1, 1, Some("blksize\x001408\0tsize\x001000000\0")),
            (
                &["BLKSIZE", "65464", "windowsize", "1000"],
                1468,
                64,
                1,
                Some("blksize\x001468\0windowsize\x0064\0"),
            ),
            (&["timeout", "5"], 512, 1, 5, Some("timeout\x005\0")),
            (&["blksize", "0", "windowsize", "0", "timeout", "0"], 512, 1, 1, None),
            (&["blksize", "7"], 512, 1, 1, None),
            (&["blksize", "-8", "timeout", "255", "windowsize", "65536"], 512, 1, 1, None),
            (&["multicast", "", "blksize"], 512, 1, 1, None),
        ] {
            let agreed = terms(options);
            assert_eq!(
                (agreed.block, agreed.window, agreed.wait.as_secs()),
                (block, window, seconds),
                "{options:?}"
            );
            let text = agreed.acknowledgement.map(|packet| String::from_utf8(packet[2..].to_vec()).unwrap());
            assert_eq!(text.as_deref(), acknowledgement, "{options:?}");
        }
    }

    #[test]
    fn what_is_no_request_is_refused_or_not_answered() {
        use NoRequest::{Refused, Stray};
        for (packet, expected) in [
            (vec![], Stray),
            (vec![0], Stray),
            (vec![0, 3, 0, 1], Stray),
            (vec![0, 4, 0, 1], Stray),
            (vec![0, 5, 0, 1, 0], Stray),
            (vec![0, 9], Stray),
            (vec![0, 2, b'a', 0], Refused(Refusal::ReadOnly)),
            (vec![0, 1], Refused(Refusal::Illegal)),
            (vec![0, 1, 0], Refused(Refusal::Illegal)),
            (request(&["a"]), Refused(Refusal::Illegal)),
            (request(&["", "octet"]), Refused(Refusal::Illegal)),
            (request(&["a", "netascii"]), Refused(Refusal::Illegal)),
            (request(&["a", "octet"])[..8].to_vec(), Refused(Refusal::Illegal)),
            (request(&[&"a".repeat(4096), "octet"]), Refused(Refusal::Illegal)),
            (vec![0, 1, 0xff, 0, b'o', b'c', b't', b'e', b't', 0], Refused(Refusal::Illegal)),
        ] {
            assert_eq!(Request::parse(&packet), Err(expected), "{packet:?}");
        }
        assert_eq!(Refusal::NotFound.packet(), b"\0\x05\0\x01File not found\0");
    }

    #[test]
    fn loss_and_duplicates_neither_stop_a_transfer_nor_double_it() {
        let agreed = terms(&["blksize", "1000", "windowsize", "4"]);
        let mut progress = Progress::new(&agreed, 9_500);
        assert_eq!(progress.window(), 0..=0);
        assert_eq!(progress.acknowledge(0), Next::Send);
        assert_eq!((progress.window(), progress.acknowledge(0)), (1..=4, Next::Repeated));
        // Block 4 was lost; what comes twice is told twice.
        assert_eq!((progress.acknowledge(3), progress.window()), (Next::Send, 4..=7));
        assert_eq!(progress.acknowledge(3), Next::Repeated);
        assert_eq!((progress.acknowledge(2), progress.acknowledge(8)), (Next::Stray, Next::Stray));
        assert_eq!((progress.acknowledge(7), progress.window()), (Next::Send, 8..=10));
        assert_eq!((progress.acknowledge(10), progress.blocks()), (Next::Done, 10));
    }

    #[test]
    fn numbers_begin_again_and_the_last_block_may_be_empty() {
        let agreed = terms(&["windowsize", "3"]);
        let size = 512 * 70_000;
        let mut progress = Progress::new(&agreed, size);
        let mut sent = 0;
        loop {
            let window = progress.window();
            sent += window.clone().filter(|number| *number > 0).count();
            match progress.acknowledge(*window.end() as u16) {
                Next::Send => {}
                Next::Done => break,
                other => panic!("{other:?} in {progress:?}"),
            }
        }
        assert_eq!(sent, 70_001);
        let mut empty = Progress::new(&terms(&[]), 0);
        assert_eq!((empty.window(), empty.acknowledge(1)), (1..=1, Next::Done));
        assert_eq!(data(65_537, b"x"), [0, 3, 0, 1, b'x']);
    }

    proptest::proptest! {
        #[test]
        fn any_packet_is_read_and_any_terms_can_be_kept(
            packet in proptest::collection::vec(proptest::num::u8::ANY, 0..600),
            answers in proptest::collection::vec(proptest::num::u16::ANY, 0..50),
            size in 0u64..10_000_000,
        ) {
            let packet = [&[0, 1][..], &packet, b"\0octet\0"].concat();
            if let Ok(request) = Request::parse(&packet) {
                let agreed = request.terms(size);
                proptest::prop_assert!(agreed.block >= 8 && (1..=64).contains(&agreed.window));
                let mut progress = Progress::new(&agreed, size);
                for answer in answers {
                    let window = progress.window();
                    proptest::prop_assert!(window.end() - window.start() < 64);
                    proptest::prop_assert!(*window.end() <= size / agreed.block as u64 + 1);
                    if progress.acknowledge(answer) == Next::Done {
                        break;
                    }
                }
            }
        }
    }
}
