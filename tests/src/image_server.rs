//! An image server that behaves, or misbehaves as told.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A client that stops reading for so long has gone.
const STALL: Duration = Duration::from_secs(60);

/// What to do with a request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// All of it.
    Body(Arc<Vec<u8>>),
    /// All of a file.
    File(PathBuf),
    /// All of it, ended by closing the connection.
    WithoutLength(Arc<Vec<u8>>),
    /// The length of all of it, and then only so many bytes.
    Truncated(Arc<Vec<u8>>, usize),
    /// So many bytes, and then nothing while the connection stays open.
    Stalled(Arc<Vec<u8>>, usize),
    /// An error page.
    Status(u16),
}

/// Answers each request with the next reply, and the last one for ever.
#[derive(Debug)]
pub struct ImageServer {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl ImageServer {
    /// Listens on a free port of the loopback address until the process ends.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn start(replies: Vec<Reply>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let index = counter.fetch_add(1, Ordering::SeqCst).min(replies.len() - 1);
                let reply = replies[index].clone();
                // The client sees an error as a body that is too short.
                thread::spawn(move || answer(connection, &reply));
            }
        });
        Ok(Self { address, requests })
    }

    /// URL of the image on this machine.
    pub fn url(&self) -> String {
        format!("http://{}/image.raw", self.address)
    }

    /// URL of the image for a machine on QEMU's user network.
    pub fn guest_url(&self) -> String {
        format!("http://10.0.2.2:{}/image.raw", self.address.port())
    }

    /// Requests so far.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn answer(mut connection: TcpStream, reply: &Reply) -> io::Result<()> {
    connection.set_read_timeout(Some(STALL))?;
    connection.set_write_timeout(Some(STALL))?;
    for line in BufReader::new(&connection).lines() {
        if line?.is_empty() {
            break;
        }
    }
    match reply {
        Reply::Body(body) => send(&mut connection, 200, Some(body.len() as u64), &mut body.as_slice()),
        Reply::File(path) => {
            let mut file = File::open(path)?;
            let length = file.metadata()?.len();
            send(&mut connection, 200, Some(length), &mut file)
        }
        Reply::WithoutLength(body) => send(&mut connection, 200, None, &mut body.as_slice()),
        Reply::Truncated(body, count) => {
            send(&mut connection, 200, Some(body.len() as u64), &mut &body[..*count])
        }
        Reply::Stalled(body, count) => {
            send(&mut connection, 200, Some(body.len() as u64), &mut &body[..*count])?;
            // Until the client hangs up.
            connection.read(&mut [0]).map(drop)
        }
        Reply::Status(status) => send(&mut connection, *status, Some(5), &mut &b"page\n"[..]),
    }
}

fn send(connection: &mut TcpStream, status: u16, length: Option<u64>, body: &mut dyn Read) -> io::Result<()> {
    let length = length.map(|length| format!("Content-Length: {length}\r\n")).unwrap_or_default();
    write!(connection, "HTTP/1.1 {status} Answer\r\n{length}Connection: close\r\n\r\n")?;
    io::copy(body, connection).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetch(server: &ImageServer) -> String {
        let mut connection = TcpStream::connect(server.address).unwrap();
        connection.write_all(b"GET /image.raw HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
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
            let answer = fetch(&server);
            assert!(answer.starts_with(start) && answer.ends_with(end), "{answer}");
        }
        assert_eq!(server.requests(), 5);
    }
}
