use super::Connection;
use super::server::{Server, Wrong};
use crate::io::MemoryDisk;
use proptest::prelude::*;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SIZE: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

fn open(wrong: Wrong, patience: Duration) -> std::io::Result<Connection> {
    let server = Server { wrong, ..Server::of(&Arc::new(MemoryDisk::ones(SIZE, 512))) };
    Connection::open(server.connect()?, patience).map(|(connection, _)| connection)
}

#[test]
fn what_is_written_is_read_and_what_is_zeroed_is_zero() {
    let disk = Arc::new(MemoryDisk::ones(SIZE, 4096));
    let (mut connection, offer) = Connection::open(Server::of(&disk).connect().unwrap(), PATIENCE).unwrap();
    assert_eq!((offer.size, offer.block, offer.most), (SIZE, Some(4096), 32 << 20));
    connection.write(&[7; 8192], 4096).unwrap();
    connection.write_zeroes(4096, 4096).unwrap();
    connection.trim(0, 4096).unwrap();
    connection.flush().unwrap();
    let mut found = [9; 12288];
    connection.read(&mut found, 0).unwrap();
    assert_eq!((found[0], found[4096], found[8192]), (0xff, 0, 7));
    connection.disconnect().unwrap();
    assert_eq!(disk.content(8192, 1), [7]);
}

#[test]
fn a_server_that_agrees_to_nothing_that_can_be_used_is_refused() {
    for (wrong, told) in [
        (Wrong::Greeting, "no server of network block devices"),
        (Wrong::OldHandshake, "old handshake"),
        (Wrong::OtherOption, "without a request"),
        (Wrong::LongReply, "a reply of 4294967295 bytes"),
        (Wrong::EndlessReplies, "without an end"),
        (Wrong::NoExport, "how large"),
        (Wrong::OddBlocks, "blocks of 513"),
        (Wrong::Refuses, "refuses its export (0x80000006): noexport"),
    ] {
        let error = open(wrong, PATIENCE).unwrap_err().to_string();
        assert!(error.contains(told), "{wrong:?}: {error}");
    }
}

#[test]
fn nothing_is_asked_on_a_connection_once_a_reply_was_none() {
    for wrong in [Wrong::ReplyMagic, Wrong::ReplyNumber, Wrong::ShortRead] {
        let mut connection = open(wrong, PATIENCE).unwrap();
        assert!(connection.read(&mut [0; 512], 0).is_err(), "{wrong:?}");
        assert!(connection.is_broken());
        assert_eq!(connection.flush().unwrap_err().kind(), ErrorKind::NotConnected);
    }
}

#[test]
fn an_error_of_the_disk_breaks_nothing() {
    for (code, told) in [(28, "No space left"), (5, "Input/output"), (7777, "error 7777")] {
        let mut connection = open(Wrong::Error(code), PATIENCE).unwrap();
        let error = connection.write(&[1; 512], 0).unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
        assert!(!connection.is_broken());
        connection.flush().unwrap();
    }
}

#[test]
fn silence_ends_at_its_deadline() {
    let started = Instant::now();
    let mut connection = open(Wrong::Silence, Duration::from_millis(300)).unwrap();
    let error = connection.flush().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut, "{error}");
    assert!(connection.is_broken() && started.elapsed() < PATIENCE);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a server says, its client ends, and at once when the connection does.
    #[test]
    fn no_words_of_a_server_harm(mut words in prop::collection::vec(any::<u8>(), 0..256), is_greeted: bool) {
        if is_greeted {
            let greeting = [&b"NBDMAGICIHAVEOPT\0\x01"[..], &0x0003_e889_0455_65a9_u64.to_be_bytes(), &[0, 0, 0, 7]];
            words.splice(..0, greeting.concat());
        }
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(&words).unwrap();
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        if let Ok((mut connection, _)) = Connection::open(ours, PATIENCE) {
            prop_assert!(connection.flush().is_err());
        }
    }
}
