//! An image server that behaves, or misbehaves as told.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// A client that stops reading for so long has gone.
const STALL: Duration = Duration::from_secs(60);

/// What to do with a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// All of it.
    Body(Arc<Vec<u8>>),
    /// All of a file, or the part of it that is asked for.
    File(PathBuf),
    /// The file below a folder that the request names.
    Folder(PathBuf),
    /// All of it, ended by closing the connection.
    WithoutLength(Arc<Vec<u8>>),
    /// The length of all of it, and then only so many bytes.
    Truncated(Arc<Vec<u8>>, usize),
    /// At most so many bytes per request, with an entity tag and from where a range asks for them.
    Resumable(Arc<Vec<u8>>, usize),
    /// The same, but each request gets another entity tag, as if the file changed all the time.
    Changing(Arc<Vec<u8>>, usize),
    /// So many bytes, and then nothing while the connection stays open.
    Stalled(Arc<Vec<u8>>, usize),
    /// So many bytes with the same entity tag, and then one after the other, slowly, until the client hangs up.
    Trickling(Arc<Vec<u8>>, usize),
    /// An error page.
    Status(u16),
    /// An error page with this `Retry-After`.
    Busy(u16, String),
    /// All of it, with this `Content-Encoding`.
    Encoded(Arc<Vec<u8>>, &'static str),
    /// All of it, slowly.
    Paced(Arc<Vec<u8>>, Arc<Pace>),
    /// Another address.
    Redirect(String),
}

/// How slowly something is sent.
#[derive(Debug)]
pub struct Pace {
    first: usize,
    rate: usize,
    is_over: AtomicBool,
}

impl Pace {
    /// So many bytes at once, and after them so many a second.
    pub fn new(first: usize, rate: usize) -> Arc<Self> {
        Arc::new(Self { first, rate, is_over: AtomicBool::new(false) })
    }

    /// What is left comes at once too.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// The entity tag of what does not change.
const TAG: &str = "\"tag\"";
/// How often something comes of what is sent slowly.
const BEAT: Duration = Duration::from_millis(100);

/// Answers each request with the next reply, and the last one for ever.
#[derive(Debug)]
pub struct ImageServer {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl ImageServer {
    /// Listens on a free port of the loopback address until the process ends.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn start(replies: Vec<Reply>) -> io::Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST, replies)
    }

    /// The same, on another address of this machine, or of the network of the calling thread.
    ///
    /// # Errors
    ///
    /// There is no such address, or no free port.
    pub fn start_at(address: Ipv4Addr, replies: Vec<Reply>) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0))?;
        let address = listener.local_addr()?;
        let heads = Arc::default();
        let server = Self { address, heads: Arc::clone(&heads) };
        thread::spawn(move || {
            let replies = Arc::new(replies);
            for connection in listener.incoming().flatten() {
                let (heads, replies) = (Arc::clone(&heads), Arc::clone(&replies));
                // The client sees an error as a body that is too short.
                thread::spawn(move || {
                    let head = read_head(&connection)?;
                    let number = remember(&heads, &head);
                    answer(connection, &replies[number.min(replies.len() - 1)], &head, number)
                });
            }
        });
        Ok(server)
    }

    /// URL of the server as a proxy: it gives the image whatever is asked for.
    pub fn proxy(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The port of the loopback address.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// URL of the image on this machine.
    pub fn url(&self) -> String {
        format!("http://{}/image.raw", self.address)
    }

    /// Heads of the requests so far, each with its header names in lower case.
    pub fn heads(&self) -> Vec<String> {
        lock(&self.heads).clone()
    }

    /// URL of the image for a machine on QEMU's user network.
    pub fn guest_url(&self) -> String {
        format!("http://10.0.2.2:{}/image.raw", self.address.port())
    }

    /// Requests so far.
    pub fn requests(&self) -> usize {
        lock(&self.heads).len()
    }
}

fn lock(heads: &Mutex<Vec<String>>) -> MutexGuard<'_, Vec<String>> {
    heads.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Number of the request, counted from nought.
fn remember(heads: &Mutex<Vec<String>>, head: &str) -> usize {
    let mut heads = lock(heads);
    heads.push(head.to_owned());
    heads.len() - 1
}

fn read_head(connection: &TcpStream) -> io::Result<String> {
    connection.set_read_timeout(Some(STALL))?;
    connection.set_write_timeout(Some(STALL))?;
    let mut head = String::new();
    for line in BufReader::new(connection).lines() {
        let line = line?;
        match line.split_once(':') {
            _ if line.is_empty() => break,
            Some((name, value)) if !name.contains(' ') => {
                head += &format!("{}:{value}\n", name.to_ascii_lowercase());
            }
            _ => head += &format!("{line}\n"),
        }
    }
    Ok(head)
}

fn answer(mut connection: TcpStream, reply: &Reply, head: &str, number: usize) -> io::Result<()> {
    match reply {
        Reply::Body(body) => send(&mut connection, head, 200, Some(body.len() as u64), &mut body.as_slice()),
        Reply::File(path) => send_file(&mut connection, head, path),
        Reply::Folder(folder) => match requested(folder, head).filter(|path| path.is_file()) {
            Some(path) => send_file(&mut connection, head, &path),
            None => send(&mut connection, head, 404, Some(5), &mut &b"page\n"[..]),
        },
        Reply::Encoded(body, encoding) => {
            let length = body.len();
            let headers = format!("Content-Length: {length}\r\nContent-Encoding: {encoding}\r\n");
            write!(connection, "HTTP/1.1 200 Answer\r\n{headers}Connection: close\r\n\r\n")?;
            connection.write_all(body)
        }
        Reply::WithoutLength(body) => send(&mut connection, head, 200, None, &mut body.as_slice()),
        Reply::Truncated(body, count) => {
            send(&mut connection, head, 200, Some(body.len() as u64), &mut &body[..*count])
        }
        Reply::Stalled(body, count) => {
            send(&mut connection, head, 200, Some(body.len() as u64), &mut &body[..*count])?;
            // Until the client hangs up.
            connection.read(&mut [0]).map(drop)
        }
        Reply::Resumable(body, limit) => send_part(&mut connection, body, *limit, head, TAG),
        Reply::Changing(body, limit) => {
            send_part(&mut connection, body, *limit, head, &format!("\"{number}\""))
        }
        Reply::Paced(body, pace) => send_paced(&mut connection, body, pace),
        Reply::Redirect(url) => {
            write!(connection, "HTTP/1.1 302 Answer\r\nLocation: {url}\r\nConnection: close\r\n\r\n")
        }
        Reply::Busy(status, wish) => {
            let headers = format!("Retry-After: {wish}\r\nContent-Length: 0\r\nConnection: close\r\n");
            write!(connection, "HTTP/1.1 {status} Answer\r\n{headers}\r\n")
        }
        Reply::Trickling(body, count) => {
            send_part(&mut connection, body, *count, head, TAG)?;
            body[*count..].chunks(1).try_for_each(|byte| {
                thread::sleep(BEAT);
                connection.write_all(byte)
            })
        }
        Reply::Status(status) => send(&mut connection, head, *status, Some(5), &mut &b"page\n"[..]),
    }
}

/// The path that the first line of a request means below `folder`.
fn requested(folder: &Path, head: &str) -> Option<PathBuf> {
    let path = Path::new(head.split(' ').nth(1)?.trim_start_matches('/'));
    let stays_below = path.components().all(|part| matches!(part, Component::Normal(_)));
    stays_below.then(|| folder.join(path))
}

fn send(
    connection: &mut TcpStream,
    head: &str,
    status: u16,
    length: Option<u64>,
    body: &mut dyn Read,
) -> io::Result<()> {
    let length = length.map(|length| format!("Content-Length: {length}\r\n")).unwrap_or_default();
    write!(connection, "HTTP/1.1 {status} Answer\r\n{length}Connection: close\r\n\r\n")?;
    if head.starts_with("HEAD ") {
        return Ok(());
    }
    io::copy(body, connection).map(drop)
}

fn send_paced(connection: &mut TcpStream, body: &[u8], pace: &Pace) -> io::Result<()> {
    let length = body.len();
    write!(connection, "HTTP/1.1 200 Answer\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    let (first, rest) = body.split_at(pace.first.min(length));
    connection.write_all(first)?;
    for part in rest.chunks((pace.rate / 10).max(1)) {
        if !pace.is_over.load(Ordering::Relaxed) {
            thread::sleep(BEAT);
        }
        connection.write_all(part)?;
    }
    Ok(())
}

/// Sends a file or, for a client that knows which version it holds, a range of it.
fn send_file(connection: &mut TcpStream, head: &str, path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let facts = file.metadata()?;
    let (total, tag) = (facts.len(), format!("\"{:x}.{:x}\"", facts.mtime(), facts.mtime_nsec()));
    let named = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    let range = named("range: bytes=").filter(|_| named("if-range: ").is_none_or(|held| held == tag));
    let range = range.and_then(|range| range.split_once('-')).and_then(|(first, last)| {
        Some((first.parse::<u64>().ok()?, last.parse().map_or(total, |last: u64| last + 1)))
    });
    let (status, first, end) = match range {
        Some((first, end)) if first < end && end <= total => (206, first, end),
        _ => (200, 0, total),
    };
    let mut headers = format!("Content-Length: {}\r\nAccept-Ranges: bytes\r\nETag: {tag}\r\n", end - first);
    if status == 206 {
        headers += &format!("Content-Range: bytes {first}-{}/{total}\r\n", end - 1);
    }
    write!(connection, "HTTP/1.1 {status} Answer\r\n{headers}Connection: close\r\n\r\n")?;
    if head.starts_with("HEAD ") {
        return Ok(());
    }
    file.seek(SeekFrom::Start(first))?;
    io::copy(&mut file.take(end - first), connection).map(drop)
}

/// Sends the rest of a body when the client holds the part before it, else all; and hangs up early.
fn send_part(connection: &mut TcpStream, body: &[u8], limit: usize, head: &str, tag: &str) -> io::Result<()> {
    let start =
        head.lines().find_map(|line| line.strip_prefix("range: bytes=")?.strip_suffix('-')?.parse().ok());
    let is_current = head.contains(&format!("if-range: {tag}\n"));
    let start: usize = start.filter(|_| is_current).unwrap_or_default();
    let (status, range) = match start {
        0 => (200, String::new()),
        _ => (206, format!("Content-Range: bytes {start}-{}/{}\r\n", body.len() - 1, body.len())),
    };
    let length = body.len() - start;
    write!(
        connection,
        "HTTP/1.1 {status} Answer\r\nContent-Length: {length}\r\nETag: {tag}\r\n{range}Connection: close\r\n\r\n"
    )?;
    connection.write_all(&body[start..][..length.min(limit)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn fetch(server: &ImageServer, method: &str) -> String {
        fetch_path(server, method, "/image.raw")
    }

    fn fetch_path(server: &ImageServer, method: &str, path: &str) -> String {
        let mut connection = TcpStream::connect(server.address).unwrap();
        write!(connection, "{method} {path} HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn replies_come_in_order_and_the_last_one_stays() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "content").unwrap();
        let body = Arc::new(b"0123456789".to_vec());
        let server = ImageServer::start(vec![
            Reply::Status(503),
            Reply::Truncated(Arc::clone(&body), 4),
            Reply::WithoutLength(body),
            Reply::File(file.path().to_owned()),
        ])
        .unwrap();
        for (start, end) in [
            ("HTTP/1.1 503 ", "\r\n\r\npage\n"),
            ("HTTP/1.1 200 Answer\r\nContent-Length: 10\r\n", "\r\n\r\n0123"),
            ("HTTP/1.1 200 Answer\r\nConnection: close\r\n", "\r\n\r\n0123456789"),
            ("HTTP/1.1 200 Answer\r\nContent-Length: 7\r\n", "\r\n\r\ncontent"),
            ("HTTP/1.1 200 Answer\r\nContent-Length: 7\r\n", "\r\n\r\ncontent"),
        ] {
            let answer = fetch(&server, "GET");
            assert!(answer.starts_with(start) && answer.ends_with(end), "{answer}");
        }
        assert_eq!(server.requests(), 5);
    }

    #[test]
    fn what_is_paced_comes_slowly_until_the_pace_is_over() {
        let pace = Pace::new(4, 20);
        let reply = Reply::Paced(Arc::new(b"0123456789".to_vec()), Arc::clone(&pace));
        let server = ImageServer::start(vec![reply]).unwrap();
        let started = Instant::now();
        assert!(fetch(&server, "GET").ends_with("\r\n\r\n0123456789"));
        assert!(started.elapsed() >= 3 * BEAT);
        pace.end();
        assert!(fetch(&server, "GET").ends_with("\r\n\r\n0123456789"));
    }

    #[test]
    fn a_head_request_gets_the_length_only() {
        let server = ImageServer::start(vec![Reply::Body(Arc::new(b"0123456789".to_vec()))]).unwrap();
        let answer = fetch(&server, "HEAD");
        assert!(answer.contains("Content-Length: 10\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    }

    #[test]
    fn a_folder_gives_what_lies_in_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("inner")).unwrap();
        std::fs::write(folder.path().join("inner/file"), "content").unwrap();
        let server = ImageServer::start(vec![Reply::Folder(folder.path().join("inner"))]).unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        for (path, start) in [
            ("/file", "HTTP/1.1 200 "),
            ("/absent", "HTTP/1.1 404 "),
            ("/../secret", "HTTP/1.1 404 "),
            ("/", "HTTP/1.1 404 "),
        ] {
            let answer = fetch_path(&server, "GET", path);
            assert!(answer.starts_with(start), "{path}: {answer}");
        }
    }
}
