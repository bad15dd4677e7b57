//! A disk with a volatile cache whose power can be cut: an NBD server that QEMU attaches as a drive.
//!
//! What was not flushed when the power goes is on the medium in part: each sector of it is there or not.
//! From then on the disk answers nothing but errors, so that nothing a machine does any more reaches the
//! medium, as if the machine had lost its power too.

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

// Of the protocol (the NBD project's proto.md).
const HELLO: &[u8; 16] = b"NBDMAGICIHAVEOPT";
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const REQUEST: u32 = 0x2560_9513;
const REPLY: u32 = 0x6744_6698;
/// Fixed newstyle, and no zeros after the old style's answer.
const HANDSHAKE_FLAGS: u16 = 3;
const OPTION_GO: u32 = 7;
const ANSWER_DONE: u32 = 1;
const ANSWER_INFO: u32 = 3;
const ANSWER_UNSUPPORTED: u32 = 0x8000_0001;
/// Flags are there; flush, trim and write zeroes are understood.
const EXPORT_FLAGS: u16 = 1 | 1 << 2 | 1 << 5 | 1 << 6;
const FAILED: u32 = 5;

/// The disk. It serves one machine at a time, until the process ends.
#[derive(Debug)]
pub struct VolatileDisk {
    socket: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// What the machine sees.
    current: File,
    /// What outlasts a cut.
    medium: File,
    size: u64,
    /// What was written since the last flush.
    pending: Vec<Arc<Change>>,
    /// All that was asked for since the recording began, if one is made.
    recording: Option<Vec<Event>>,
    /// Changes and flushes so far.
    requests: u64,
    /// After so many the power goes.
    cut_after: Option<u64>,
    is_off: bool,
}

/// Bytes, or as many zeros, in a place.
#[derive(Debug)]
pub struct Change {
    /// Where, in bytes.
    pub offset: u64,
    /// Bytes.
    pub length: usize,
    /// What is put there; nothing for zeros.
    pub data: Option<Vec<u8>>,
}

/// What a disk is asked for and counts.
#[derive(Debug, Clone)]
pub enum Event {
    /// To have this in a place.
    Change(Arc<Change>),
    /// To have everything so far on the medium.
    Flush,
}

/// A request of the machine's.
struct Request {
    command: u16,
    cookie: [u8; 8],
    offset: u64,
    length: usize,
}

impl VolatileDisk {
    /// A disk of zeros on sparse files in `folder`, served at a socket there.
    ///
    /// # Errors
    ///
    /// The folder cannot be written to.
    pub fn start(folder: &Path, size: u64) -> Result<Self> {
        let file = |name: &str| -> Result<File> {
            let path = folder.join(name);
            let options = File::options().read(true).write(true).create(true).truncate(true).open(&path);
            let file = options.with_context(|| format!("cannot make {}", path.display()))?;
            file.set_len(size)?;
            Ok(file)
        };
        let state = State {
            current: file("current.img")?,
            medium: file("medium.img")?,
            size,
            pending: Vec::new(),
            recording: None,
            requests: 0,
            cut_after: None,
            is_off: false,
        };
        let socket = folder.join("disk.socket");
        let listener = UnixListener::bind(&socket)?;
        let state = Arc::new(Mutex::new(state));
        let served = Arc::clone(&state);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let state = Arc::clone(&served);
                // An error is the end of the machine.
                thread::spawn(move || serve(connection, &state).ok());
            }
        });
        Ok(Self { socket, state })
    }

    /// The drive as QEMU's `-blockdev` wants it.
    pub fn blockdev(&self, name: &str) -> String {
        let server = serde_json::json!({"type": "unix", "path": self.socket});
        serde_json::json!({"driver": "nbd", "node-name": name, "server": server}).to_string()
    }

    /// Has the power go after so many more changes and flushes, or never.
    pub fn cut_after(&self, requests: Option<u64>) {
        let mut state = lock(&self.state);
        state.cut_after = requests.map(|count| state.requests + count);
    }

    /// Changes and flushes so far.
    pub fn requests(&self) -> u64 {
        lock(&self.state).requests
    }

    /// Has everything recorded that is asked for from now on.
    pub fn record(&self) {
        lock(&self.state).recording = Some(Vec::new());
    }

    /// What was recorded; the recording has ended.
    pub fn recording(&self) -> Vec<Event> {
        lock(&self.state).recording.take().unwrap_or_default()
    }

    /// Whether the power went.
    pub fn is_off(&self) -> bool {
        lock(&self.state).is_off
    }

    /// What the cut left, by chance: call it when the machine is off. The file has it. The disk changes a sector of
    /// `sector_size` bytes as a whole or not at all.
    ///
    /// # Errors
    ///
    /// The medium's file cannot be written.
    pub fn settle(&self, seed: u64, sector_size: usize) -> Result<()> {
        let mut chance = StdRng::seed_from_u64(seed);
        let mut state = lock(&self.state);
        // Sometimes nearly everything is lost, sometimes nearly nothing.
        let kept = chance.random_range(0.0..=1.0);
        let pending = std::mem::take(&mut state.pending);
        for change in &pending {
            for start in (0..change.length).step_by(sector_size) {
                if chance.random_bool(kept) {
                    change.apply(&state.medium, start, sector_size.min(change.length - start))?;
                }
            }
        }
        Ok(())
    }

    /// The file with what is on the medium.
    pub fn medium(folder: &Path) -> PathBuf {
        folder.join("medium.img")
    }

    /// The file with what the machine sees.
    pub fn current(folder: &Path) -> PathBuf {
        folder.join("current.img")
    }

    /// Puts content on the disk that no cut takes away, in the place of everything.
    ///
    /// # Errors
    ///
    /// The files cannot be written.
    pub fn fill(&self, places: &[(u64, &[u8])]) -> Result<()> {
        let mut state = lock(&self.state);
        state.pending.clear();
        (state.is_off, state.cut_after) = (false, None);
        for file in [&state.current, &state.medium] {
            file.set_len(0)?;
            file.set_len(state.size)?;
        }
        state.overwrite(places)
    }

    /// Puts everything so far on the medium, and more content that no cut takes away.
    ///
    /// # Errors
    ///
    /// The files cannot be written.
    pub fn settle_all_and_add(&self, places: &[(u64, &[u8])]) -> Result<()> {
        let mut state = lock(&self.state);
        for change in std::mem::take(&mut state.pending) {
            change.apply(&state.medium, 0, change.length)?;
        }
        state.overwrite(places)
    }
}

impl Change {
    fn apply(&self, file: &File, start: usize, length: usize) -> io::Result<()> {
        match &self.data {
            Some(data) => file.write_all_at(&data[start..start + length], self.offset + start as u64),
            None => file.write_all_at(&vec![0; length], self.offset + start as u64),
        }
    }
}

impl State {
    fn overwrite(&self, places: &[(u64, &[u8])]) -> Result<()> {
        for file in [&self.current, &self.medium] {
            for (offset, content) in places {
                file.write_all_at(content, *offset)?;
            }
        }
        Ok(())
    }

    fn log(&mut self, event: Event) {
        if let Some(recording) = &mut self.recording {
            recording.push(event);
        }
    }

    /// Counts a change or a flush; the one at which the power goes is not carried out.
    fn count(&mut self) -> io::Result<()> {
        self.requests += 1;
        self.is_off |= self.cut_after.is_some_and(|limit| self.requests > limit);
        self.require_power()
    }

    fn require_power(&self) -> io::Result<()> {
        if self.is_off { Err(ErrorKind::ConnectionAborted.into()) } else { Ok(()) }
    }

    fn read(&self, content: &mut [u8], offset: u64) -> io::Result<()> {
        self.require_power()?;
        self.current.read_exact_at(content, offset)
    }

    fn change(&mut self, change: Change) -> io::Result<()> {
        self.count()?;
        change.apply(&self.current, 0, change.length)?;
        let change = Arc::new(change);
        self.log(Event::Change(Arc::clone(&change)));
        self.pending.push(change);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.count()?;
        self.log(Event::Flush);
        for change in std::mem::take(&mut self.pending) {
            change.apply(&self.medium, 0, change.length)?;
        }
        Ok(())
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn serve(mut client: UnixStream, state: &Mutex<State>) -> Result<()> {
    negotiate(&mut client, lock(state).size)?;
    loop {
        let request = read_request(&mut client)?;
        let mut state = lock(state);
        let mut content = Vec::new();
        let outcome = match request.command {
            0 => {
                content.resize(request.length, 0);
                state.read(&mut content, request.offset)
            }
            1 => {
                let mut data = vec![0; request.length];
                client.read_exact(&mut data)?;
                state.change(Change { offset: request.offset, length: data.len(), data: Some(data) })
            }
            2 => return Ok(()),
            3 => state.flush(),
            // A disk need not do anything about what it is told to forget.
            4 => state.require_power(),
            6 => state.change(Change { offset: request.offset, length: request.length, data: None }),
            command => bail!("command {command} was not offered"),
        };
        let code = if outcome.is_ok() { 0 } else { FAILED };
        client.write_all(&[&REPLY.to_be_bytes()[..], &code.to_be_bytes(), &request.cookie].concat())?;
        if code == 0 {
            client.write_all(&content)?;
        }
    }
}

/// Agrees on the only export there is; everything that need not be understood is not.
fn negotiate(client: &mut UnixStream, size: u64) -> Result<()> {
    client.write_all(HELLO)?;
    client.write_all(&HANDSHAKE_FLAGS.to_be_bytes())?;
    client.read_exact(&mut [0; 4])?;
    loop {
        let mut head = [0; 16];
        client.read_exact(&mut head)?;
        let option = u32::from_be_bytes(head[8..12].try_into()?);
        let mut data = vec![0; u32::from_be_bytes(head[12..].try_into()?) as usize];
        client.read_exact(&mut data)?;
        if option != OPTION_GO {
            answer(client, option, ANSWER_UNSUPPORTED, &[])?;
            continue;
        }
        let export = [&0_u16.to_be_bytes()[..], &size.to_be_bytes(), &EXPORT_FLAGS.to_be_bytes()].concat();
        answer(client, option, ANSWER_INFO, &export)?;
        return Ok(answer(client, option, ANSWER_DONE, &[])?);
    }
}

fn answer(client: &mut UnixStream, option: u32, kind: u32, data: &[u8]) -> io::Result<()> {
    let length = data.len() as u32;
    let head = [&OPTION_REPLY.to_be_bytes()[..], &option.to_be_bytes(), &kind.to_be_bytes()];
    client.write_all(&[&head.concat(), &length.to_be_bytes()[..], data].concat())
}

fn read_request(client: &mut UnixStream) -> Result<Request> {
    let mut head = [0; 28];
    client.read_exact(&mut head)?;
    if head[..4] != REQUEST.to_be_bytes() {
        bail!("this is no request of the NBD protocol");
    }
    Ok(Request {
        command: u16::from_be_bytes(head[6..8].try_into()?),
        cookie: head[8..16].try_into()?,
        offset: u64::from_be_bytes(head[16..24].try_into()?),
        length: u32::from_be_bytes(head[24..].try_into()?) as usize,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(client: &mut UnixStream, command: u16, offset: u64, length: u32, data: &[u8]) {
        let head = [&REQUEST.to_be_bytes()[..], &[0; 2], &command.to_be_bytes(), &[7; 8]].concat();
        let place = [&offset.to_be_bytes()[..], &length.to_be_bytes()].concat();
        client.write_all(&[&head, &place, data].concat()).unwrap();
    }

    const SECTOR: usize = 512;

    fn answered(client: &mut UnixStream, content: usize) -> Vec<u8> {
        let mut answer = vec![0; 16 + content];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..4], REPLY.to_be_bytes());
        assert_eq!(answer[4..16], [0, 0, 0, 0, 7, 7, 7, 7, 7, 7, 7, 7]);
        answer.split_off(16)
    }

    #[test]
    fn what_was_flushed_outlasts_a_cut_and_the_rest_does_in_part() {
        let folder = tempfile::tempdir().unwrap();
        let disk = VolatileDisk::start(folder.path(), 1 << 20).unwrap();
        let mut client = UnixStream::connect(&disk.socket).unwrap();
        client.read_exact(&mut [0; 18]).unwrap();
        client.write_all(&[0; 4]).unwrap();
        for option in [8, OPTION_GO] {
            client.write_all(&[b"IHAVEOPT", &u32::to_be_bytes(option)[..], &[0; 4]].concat()).unwrap();
        }
        // Unsupported, then the export and the end of the answer.
        client.read_exact(&mut [0; 20 + 32 + 20]).unwrap();

        let data = vec![9; 64 * SECTOR];
        send(&mut client, 1, 0, data.len() as u32, &data);
        answered(&mut client, 0);
        send(&mut client, 3, 0, 0, &[]);
        answered(&mut client, 0);
        disk.cut_after(Some(1));
        send(&mut client, 6, 0, data.len() as u32, &[]);
        answered(&mut client, 0);
        send(&mut client, 0, 0, 512, &[]);
        assert_eq!(answered(&mut client, 512), [0; 512]);
        for command in [3, 0] {
            send(&mut client, command, 0, 512, &[]);
            let mut refusal = [0; 16];
            client.read_exact(&mut refusal).unwrap();
            assert_eq!(refusal[4..8], FAILED.to_be_bytes());
        }
        assert!(disk.is_off());
        assert_eq!(disk.requests(), 4);

        let medium = || std::fs::read(VolatileDisk::medium(folder.path())).unwrap();
        assert_eq!(medium()[..data.len()], data);
        disk.settle(3, SECTOR).unwrap();
        let sectors: Vec<_> =
            medium()[..data.len()].chunks(SECTOR).map(|sector| sector == [0; SECTOR]).collect();
        assert!(sectors.contains(&true) && sectors.contains(&false), "{sectors:?}");
    }
}
