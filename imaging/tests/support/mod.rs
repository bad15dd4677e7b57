//! An image server that misbehaves as told.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What to do with a request.
#[derive(Clone)]
pub enum Reply {
    /// All of it.
    Body(Arc<Vec<u8>>),
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
pub struct ImageServer {
    url: String,
    requests: Arc<AtomicUsize>,
}

impl ImageServer {
    pub fn new(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/image.raw", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let index = counter.fetch_add(1, Ordering::SeqCst).min(replies.len() - 1);
                let reply = replies[index].clone();
                thread::spawn(move || answer(stream.unwrap(), &reply));
            }
        });
        Self { url, requests }
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn answer(mut stream: TcpStream, reply: &Reply) {
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read_exact(&mut byte).is_ok() {
        request.push(byte[0]);
    }
    let ok =
        |length: usize| format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
    let (head, body, stall): (_, &[u8], _) = match reply {
        Reply::Body(body) => (ok(body.len()), body, false),
        Reply::WithoutLength(body) => {
            ("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_owned(), body, false)
        }
        Reply::Truncated(body, count) => (ok(body.len()), &body[..*count], false),
        Reply::Stalled(body, count) => (ok(body.len()), &body[..*count], true),
        Reply::Status(status) => (
            format!("HTTP/1.1 {status} Nope\r\ncontent-length: 5\r\nconnection: close\r\n\r\n"),
            b"page\n",
            false,
        ),
    };
    // The client may hang up whenever it likes.
    let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    if stall && sent.is_ok() {
        let _ = stream.read(&mut byte);
    }
}
