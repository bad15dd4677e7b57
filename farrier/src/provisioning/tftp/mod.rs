//! Boot files by TFTP.
//!
//! Each transfer has a socket of its own, as the protocol wants. What it takes is bounded before anything is looked up:
//! so many transfers at a time for each client, and so many for all (see [`table`]). A request beyond that gets no answer,
//! and is asked again by its client; one that comes twice begins one transfer. Until a client has answered, it gets one
//! packet for each of its own: so little is sent to who never asked, in whose name another did.

mod asked;
mod table;

use crate::failure::{LISTEN_FAILED, WithCode};
use crate::provisioning::figures::Protocol;
use crate::provisioning::files::{Content, Files, Found};
use anyhow::Context;
use asked::Asked;
use farrier_drivers::netboot::tftp::{
    Answer, LONGEST_REQUEST, Next, NoRequest, Progress, Refusal, Request, Terms, data,
};
use rand::Rng;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use table::{Table, TransferSlot};
use tokio::io::{AsyncReadExt, AsyncSeekExt, SeekFrom};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// How long a slot is kept for a client that has not answered.
const FIRST_ANSWER: Duration = Duration::from_secs(3);
/// How often such a client is sent the same again, when it asks again.
const FIRST_REPEATS: u32 = 3;
/// How often a window is sent again before its machine is given up.
const TRIES: u32 = 6;
/// Bytes that are read ahead for each transfer, which the system's reader holds once more.
const AHEAD: usize = 64 << 10;
/// How soon a window may be sent again that a machine asks for again.
const REPEAT: Duration = Duration::from_millis(50);

/// A port where files may be asked for.
pub(crate) struct Tftp {
    socket: UdpSocket,
    address: SocketAddr,
}

impl Tftp {
    /// Opens the port.
    pub(crate) async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let socket = UdpSocket::bind(address).await.with_context(|| {
            format!(
                "--tftp-listen {address} cannot be used; choose another address, or stop the program that uses it"
            )
        });
        let socket = socket.code(LISTEN_FAILED)?;
        asked::enable_packet_info(&socket)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address })
    }

    /// Where it is.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends files until it is dropped.
    pub(crate) async fn serve(self, files: Arc<Files>) {
        let table = Table::default();
        let mut transfers = JoinSet::new();
        let mut packet = [0; LONGEST_REQUEST + 1];
        loop {
            let Ok(Asked { length, client, at }) = asked::receive(&self.socket, &mut packet).await else {
                // An earlier answer was refused by its client.
                tokio::task::yield_now().await;
                continue;
            };
            let own = at.unwrap_or_else(|| SocketAddr::new(self.address.ip(), 0));
            while transfers.try_join_next().is_some() {}
            let request = match Request::parse(&packet[..length]) {
                Ok(request) => request,
                Err(NoRequest::Stray) => continue,
                Err(NoRequest::Refused(refusal)) => {
                    refuse(own, client, &refusal).ok();
                    continue;
                }
            };
            let Some((slot, given_away)) = table.admit(client) else { continue };
            let files = Arc::clone(&files);
            transfers.spawn(async move {
                let answered = async {
                    if let Err(error) = answer(&files, own, client, &slot, &request).await {
                        tracing::debug!("{} to {client} by TFTP: {error}", request.file);
                    }
                };
                tokio::select! {
                    () = answered => {}
                    _ = given_away => {}
                }
            });
        }
    }
}

/// Refuses from the address that was asked.
fn refuse(own: SocketAddr, client: SocketAddr, refusal: &Refusal) -> io::Result<()> {
    let socket = std::net::UdpSocket::bind(own)?;
    socket.set_nonblocking(true)?;
    socket.send_to(&refusal.packet(), client).map(drop)
}

/// Answers from the address that was asked: several network cards take packets of no other.
async fn answer(
    files: &Files,
    own: SocketAddr,
    client: SocketAddr,
    slot: &TransferSlot,
    request: &Request,
) -> io::Result<()> {
    let socket = UdpSocket::bind(own).await?;
    socket.connect(client).await?;
    let Some(Found { content, mut trace }) = files.open(&request.file, client.ip(), Protocol::Tftp).await
    else {
        return socket.send(&Refusal::NotFound.packet()).await.map(drop);
    };
    let size = content.size();
    let terms = request.terms(size);
    let mut blocks = Blocks::new(content, &terms);
    let counted = files.figures().sent(Protocol::Tftp);
    let mut counted_bytes = 0;
    let sent = send(&socket, slot, &terms, &mut blocks, |bytes| {
        counted.inc_by(bytes - counted_bytes);
        counted_bytes = bytes;
        if let Some(trace) = &mut trace {
            trace.reached(bytes);
        }
    })
    .await;
    if let Err(error) = &sent
        && error.kind() == io::ErrorKind::UnexpectedEof
    {
        socket.send(&Refusal::Broken.packet()).await?;
    }
    sent
}

/// Sends a file to its end, or until its machine has gone; returns the number of bytes.
async fn send(
    socket: &UdpSocket,
    slot: &TransferSlot,
    terms: &Terms,
    blocks: &mut Blocks,
    mut progressed: impl FnMut(u64),
) -> io::Result<()> {
    let size = blocks.size;
    let mut progress = Progress::new(terms, size);
    let mut heard = first(socket, slot, blocks, terms, &mut progress).await?;
    if !slot.answered() {
        return Err(io::ErrorKind::QuotaExceeded.into());
    }
    let mut tries = 0;
    loop {
        match heard {
            Heard::Done => {
                progressed(size);
                return Ok(());
            }
            Heard::Send => {
                progressed((progress.blocks() * terms.block as u64).min(size));
                tries = 0;
            }
            Heard::Repeated | Heard::Nothing => tries += 1,
        }
        if tries >= TRIES {
            return Err(io::ErrorKind::TimedOut.into());
        }
        for number in progress.window() {
            socket.send(&data(number, blocks.read(number).await?)).await?;
        }
        heard = listen(socket, &mut progress, terms.wait).await?;
    }
}

/// Sends the first packet, and no more until its client has answered. Who asks again gets it again.
async fn first(
    socket: &UdpSocket,
    slot: &TransferSlot,
    blocks: &mut Blocks,
    terms: &Terms,
    progress: &mut Progress,
) -> io::Result<Heard> {
    let packet = match &terms.acknowledgement {
        Some(acknowledgement) => acknowledgement.clone(),
        None => data(1, blocks.first().await?),
    };
    let begin = Instant::now();
    for _ in 0..=FIRST_REPEATS {
        socket.send(&packet).await?;
        let left = FIRST_ANSWER.saturating_sub(begin.elapsed());
        tokio::select! {
            heard = listen(socket, progress, left) => match heard? {
                Heard::Nothing => break,
                heard => return Ok(heard),
            },
            () = slot.again.notified() => {}
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

enum Heard {
    Send,
    Repeated,
    Nothing,
    Done,
}

/// Waits for what a machine says about the window that it was sent.
async fn listen(socket: &UdpSocket, progress: &mut Progress, wait: Duration) -> io::Result<Heard> {
    // So that machines that began together do not go on together.
    let jitter = rand::rng().random_range(1.0..1.25);
    let begin = Instant::now();
    let end = begin + wait.mul_f64(jitter);
    let mut packet = [0; LONGEST_REQUEST];
    loop {
        let Ok(received) = timeout_at(end, socket.recv(&mut packet)).await else { return Ok(Heard::Nothing) };
        match Answer::parse(&packet[..received?]) {
            None => {}
            Some(Answer::Ended) => return Err(io::ErrorKind::ConnectionAborted.into()),
            Some(Answer::Acknowledged(number)) => match progress.acknowledge(number) {
                Next::Done => return Ok(Heard::Done),
                Next::Send => return Ok(Heard::Send),
                // With a window of one block, an answer that comes twice would double all that follows.
                Next::Repeated if progress.window().count() > 1 && begin.elapsed() > REPEAT => {
                    return Ok(Heard::Repeated);
                }
                Next::Repeated | Next::Stray => {}
            },
        }
    }
}

/// The blocks of a file, of which some are read ahead.
struct Blocks {
    content: Content,
    size: u64,
    block: usize,
    begin: u64,
    ahead: Vec<u8>,
}

impl Blocks {
    fn new(content: Content, terms: &Terms) -> Self {
        Self { size: content.size(), content, block: terms.block, begin: 0, ahead: Vec::new() }
    }

    /// The first block, with nothing read ahead: whether its machine is there is not known yet.
    async fn first(&mut self) -> io::Result<&[u8]> {
        self.ensure(0, self.block).await?;
        self.read(1).await
    }

    /// A block; the last one is shorter than the others, and may be empty.
    async fn read(&mut self, number: u64) -> io::Result<&[u8]> {
        let begin = (number - 1) * self.block as u64;
        let end = (begin + self.block as u64).min(self.size);
        let is_ahead = begin >= self.begin && end <= self.begin + self.ahead.len() as u64;
        if matches!(self.content, Content::File { .. }) && !is_ahead {
            self.ensure(begin, AHEAD).await?;
        }
        if let Content::Text(text) = &self.content {
            return Ok(&text[begin as usize..end as usize]);
        }
        let from = (begin - self.begin) as usize;
        self.ahead.get(from..from + (end - begin) as usize).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Reads so many bytes of a file, or what it has.
    async fn ensure(&mut self, begin: u64, bytes: usize) -> io::Result<()> {
        let Content::File { file, .. } = &mut self.content else { return Ok(()) };
        let bytes = (self.size - begin).min(bytes as u64);
        file.seek(SeekFrom::Start(begin)).await?;
        let mut ahead = Vec::with_capacity(bytes as usize);
        file.take(bytes).read_to_end(&mut ahead).await?;
        (self.begin, self.ahead) = (begin, ahead);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
