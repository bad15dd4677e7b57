//! Setting the clock before anything depends on it (section 3.6).
//!
//! One question over SNTP (RFC 4330) to each address of the server, the first answer counts; no daemon.

use crate::settings::options::Options;
use farrier_linux::clock;
use farrier_protocol::error::{CommandError, ErrorKind};
use rand::Rng;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::{ToSocketAddrs, UdpSocket, lookup_host};
use tokio::task::JoinSet;
use tokio::time::timeout;

const PORT: u16 = 123;
/// Bytes of a packet without extensions.
const PACKET: usize = 48;
/// First byte of a question: version 4, from a client.
const QUESTION: u8 = 0x23;
/// Mode of a packet from a server.
const SERVER: u8 = 4;
/// Strata of servers that have a time to tell.
const STRATA: std::ops::RangeInclusive<u8> = 1..=15;
/// Seconds from 1900, where the protocol counts from, to 1970.
const EPOCH: u64 = 2_208_988_800;
/// Times to ask, and how long to wait for each answer.
const ATTEMPTS: u32 = 3;
const PATIENCE: Duration = Duration::from_secs(3);
/// Longest name of a host.
const MAX_NAME: usize = 253;

/// The clock was not set.
#[derive(Debug, thiserror::Error)]
pub enum ClockError {
    /// The name could do harm or is a slip.
    #[error("ipa-ntp-server={0:?} is not the name or address of a host")]
    InvalidServer(String),
    /// No answer.
    #[error("the clock was not set: {server} did not answer over SNTP ({source})")]
    NoAnswer {
        /// Name of the server.
        server: String,
        /// What happened last.
        #[source]
        source: io::Error,
    },
    /// The kernel refused.
    #[error("the clock was not set: {0}")]
    Kernel(#[source] io::Error),
}

/// Sets the clock at the start, where there is a server for it: certificates, and what the logs say,
/// depend on it (S16).
///
/// # Errors
///
/// The clock was not set, and `fail_if_clock_not_set`.
pub async fn set(options: &Options) -> Result<(), ClockError> {
    let Some(server) = &options.ntp_server else { return Ok(()) };
    match synchronize(server).await {
        Err(error) if options.fail_if_clock_not_set => return Err(error),
        Err(error) => tracing::warn!("{error}; continuing with the current clock"),
        Ok(()) => {}
    }
    Ok(())
}

/// Sets the clock once more before the machine stops, and with it the clock that runs without power.
///
/// # Errors
///
/// As for [`set`]. A machine without a hardware clock is none.
pub async fn hand_over(options: &Options) -> Result<(), CommandError> {
    set(options).await.map_err(|error| CommandError::new(ErrorKind::ClockSyncError, error.to_string()))?;
    if let Err(error) = clock::store() {
        tracing::warn!("the hardware clock was not set ({error}); the next system starts with its time");
    }
    Ok(())
}

/// Asks the server for the time and sets the clock.
async fn synchronize(server: &str) -> Result<(), ClockError> {
    if !is_valid(server) {
        return Err(ClockError::InvalidServer(server.to_owned()));
    }
    let now = ask((server, PORT), ATTEMPTS)
        .await
        .map_err(|source| ClockError::NoAnswer { server: server.to_owned(), source })?;
    clock::set(now).map_err(ClockError::Kernel)?;
    tracing::info!(server, "clock set");
    Ok(())
}

/// An address, or a name of letters, digits and `.:_-` (S04).
fn is_valid(server: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".:_-".contains(c);
    let is_name = !server.is_empty() && server.len() <= MAX_NAME && !server.starts_with('-');
    server.parse::<IpAddr>().is_ok() || (is_name && server.chars().all(is_plain))
}

async fn ask(server: impl ToSocketAddrs, attempts: u32) -> io::Result<SystemTime> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    for _ in 0..attempts {
        match timeout(PATIENCE, ask_once(&server)).await {
            Ok(Ok(now)) => return Ok(now),
            Ok(Err(error)) => failure = error,
            Err(_) => failure = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(failure)
}

/// The first usable answer of all addresses that the server has: one of them may be dead, or of a family that
/// leads nowhere from here.
async fn ask_once(server: &impl ToSocketAddrs) -> io::Result<SystemTime> {
    let mut failure = io::Error::from(io::ErrorKind::NotFound);
    let mut asked: JoinSet<_> = lookup_host(server).await?.map(ask_address).collect();
    while let Some(outcome) = asked.join_next().await {
        match outcome.map_err(io::Error::other).flatten() {
            Ok(now) => return Ok(now),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

async fn ask_address(address: SocketAddr) -> io::Result<SystemTime> {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).await?;
    // A connected socket takes answers from nobody else.
    socket.connect(address).await?;
    // The answer repeats this number, which whoever did not see the question cannot know.
    let nonce: [u8; 8] = rand::rng().random();
    let mut question = [0; PACKET];
    question[0] = QUESTION;
    question[40..].copy_from_slice(&nonce);
    let asked = Instant::now();
    socket.send(&question).await?;
    let mut answer = [0; PACKET];
    let length = socket.recv(&mut answer).await?;
    read(&answer[..length], nonce)
        .map(|time| time + asked.elapsed() / 2)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a usable answer"))
}

/// The time in an answer to the question with this number.
fn read(answer: &[u8], nonce: [u8; 8]) -> Option<SystemTime> {
    let answer: &[u8; PACKET] = answer.try_into().ok()?;
    let is_unsynchronized = answer[0] >> 6 == 3;
    if answer[0] & 7 != SERVER || is_unsynchronized || !STRATA.contains(&answer[1]) || answer[24..32] != nonce
    {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([answer[at], answer[at + 1], answer[at + 2], answer[at + 3]]);
    // The counter of seconds starts again in 2036: small numbers are later times.
    let seconds = u64::from(word(40));
    let seconds = if seconds < EPOCH { seconds + (1 << 32) } else { seconds };
    let fraction = (u64::from(word(44)) * 1_000_000_000) >> 32;
    Some(UNIX_EPOCH + Duration::from_secs(seconds - EPOCH) + Duration::from_nanos(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s04_only_names_and_addresses_are_accepted() {
        for (server, expected) in [
            ("192.0.2.1", true),
            ("2001:db8::1", true),
            ("ntp.example.org", true),
            ("ntp_1-a", true),
            ("", false),
            ("-q", false),
            ("a;reboot", false),
            ("$(reboot)", false),
            ("a b", false),
            ("a\nb", false),
        ] {
            assert_eq!(is_valid(server), expected, "{server:?}");
        }
        assert!(!is_valid(&"a".repeat(254)));
    }

    fn answer(first: u8, stratum: u8, nonce: [u8; 8], seconds: u32) -> [u8; PACKET] {
        let mut packet = [0; PACKET];
        packet[0] = first;
        packet[1] = stratum;
        packet[24..32].copy_from_slice(&nonce);
        packet[40..44].copy_from_slice(&seconds.to_be_bytes());
        packet[44] = 0x80;
        packet
    }

    #[test]
    fn answers_are_read_and_odd_ones_refused() {
        let nonce = [7; 8];
        let at = |seconds| Some(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(500));
        for (packet, expected) in [
            (answer(0x24, 2, nonce, 4_000_000_000), at(4_000_000_000 - EPOCH)),
            (answer(0x24, 2, nonce, 0), at((1 << 32) - EPOCH)),
            (answer(0x24, 0, nonce, 4_000_000_000), None),
            (answer(0x24, 16, nonce, 4_000_000_000), None),
            (answer(0xe4, 2, nonce, 4_000_000_000), None),
            (answer(0x23, 2, nonce, 4_000_000_000), None),
            (answer(0x24, 2, [8; 8], 4_000_000_000), None),
        ] {
            assert_eq!(read(&packet, nonce), expected, "{packet:?}");
        }
        assert_eq!(read(&[0x24; 47], nonce), None);
    }

    /// A server that answers one question.
    async fn server(bind: &str) -> SocketAddr {
        let server = UdpSocket::bind(bind).await.unwrap();
        let address = server.local_addr().unwrap();
        tokio::spawn(async move {
            let mut question = [0; PACKET];
            let (_, client) = server.recv_from(&mut question).await.unwrap();
            let nonce = question[40..].try_into().unwrap();
            server.send_to(&answer(0x24, 2, nonce, 4_000_000_000), client).await.unwrap();
        });
        address
    }

    fn is_theirs(now: io::Result<SystemTime>) -> bool {
        now.unwrap() >= UNIX_EPOCH + Duration::from_secs(4_000_000_000 - EPOCH)
    }

    #[tokio::test]
    async fn a_server_is_asked_and_believed() {
        assert!(is_theirs(ask(server("127.0.0.1:0").await, 1).await));
    }

    #[tokio::test]
    async fn x26_every_address_of_a_server_is_asked() {
        let silent = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        for good in ["127.0.0.1:0", "[::1]:0"] {
            let addresses = [silent.local_addr().unwrap(), closed, server(good).await];
            assert!(is_theirs(ask(&addresses[..], 1).await), "{good}");
        }
    }

    #[tokio::test]
    async fn nobody_there_is_an_error_in_bounded_time() {
        let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        assert!(ask(closed, 1).await.is_err());
    }
}
