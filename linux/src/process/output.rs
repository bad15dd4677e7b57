//! What a program writes, read while it runs: whoever waits for a program must not let it block.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::Read;
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Last bytes that are kept of what a program writes: one that complains for hours must not fill the memory.
const KEPT: usize = 8 << 20;
/// How long what a program has left behind may hold its output open.
const GRACE: Duration = Duration::from_secs(3);
/// How often to look whether the program has ended, in milliseconds.
const LOOK: u16 = 100;

/// One output of a program, being read beside the caller.
pub(super) struct Output {
    reader: JoinHandle<Tail>,
    /// When the program ended.
    ended: Arc<OnceLock<Instant>>,
}

/// The end of an output.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
    /// How many came before.
    dropped: usize,
    /// Whether somebody held it open for longer than the program lived.
    is_held: bool,
}

impl Output {
    /// Begins to read.
    pub(super) fn of(pipe: impl Read + AsFd + Send + 'static) -> Self {
        let ended = Arc::<OnceLock<Instant>>::default();
        let seen = Arc::clone(&ended);
        Self { reader: thread::spawn(move || Tail::read(pipe, &seen)), ended }
    }

    /// The end of what `program` wrote, now that it has ended. A daemon that it left behind is not waited for.
    pub(super) fn finish(self, program: &str) -> String {
        self.ended.get_or_init(Instant::now);
        let tail = self.reader.join().unwrap_or_default();
        if tail.is_held {
            tracing::warn!(program, "it left something behind that still writes, which is not read any more");
        }
        tail.text()
    }
}

impl Tail {
    fn read(mut pipe: impl Read + AsFd, ended: &OnceLock<Instant>) -> Self {
        let (mut tail, mut part) = (Self::default(), [0; 16 << 10]);
        while !tail.is_held {
            tail.is_held = ended.get().is_some_and(|ended| ended.elapsed() >= GRACE);
            let mut waiting = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
            match poll(&mut waiting, PollTimeout::from(LOOK)) {
                Ok(0) | Err(Errno::EINTR) => continue,
                Ok(_) => {}
                Err(_) => break,
            }
            // What came before an error is worth showing.
            let Ok(length @ 1..) = pipe.read(&mut part) else {
                tail.is_held = false;
                break;
            };
            tail.push(&part[..length]);
        }
        tail
    }

    fn push(&mut self, part: &[u8]) {
        self.bytes.extend_from_slice(part);
        if self.bytes.len() > 2 * KEPT {
            let dropped = self.bytes.len() - KEPT;
            self.bytes.drain(..dropped);
            self.dropped += dropped;
        }
    }

    fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        match self.dropped {
            0 => text.into_owned(),
            dropped => format!("[{dropped} bytes before this are left out]\n{text}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Write, pipe};

    #[test]
    fn of_a_flood_the_end_is_kept_and_the_rest_is_counted() {
        let (reader, mut writer) = pipe().unwrap();
        let output = Output::of(reader);
        let sent = 5 * KEPT;
        for _ in 0..5 {
            writer.write_all(&vec![b'x'; KEPT]).unwrap();
        }
        writer.write_all(b"end").unwrap();
        drop(writer);
        let text = output.finish("test");
        assert!(text.len() <= 2 * KEPT + 60 && text.ends_with("xend"), "{}", text.len());
        let (told, rest) = text.split_once('\n').unwrap();
        assert_eq!(told, format!("[{} bytes before this are left out]", sent + 3 - rest.len()));
    }

    #[test]
    fn an_output_that_stays_open_is_given_up() {
        for is_flooded in [false, true] {
            let (reader, mut writer) = pipe().unwrap();
            let output = Output::of(reader);
            writer.write_all(b"last words").unwrap();
            let started = Instant::now();
            // It ends when nobody reads any more.
            let mut flood = writer.try_clone().unwrap();
            let flooding = thread::spawn(move || while is_flooded && flood.write_all(b"more").is_ok() {});
            assert!(output.finish("test").starts_with("last words") || is_flooded);
            assert!(started.elapsed() < 10 * GRACE);
            flooding.join().unwrap();
            drop(writer);
        }
    }
}
