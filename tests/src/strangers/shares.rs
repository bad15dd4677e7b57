//! Strangers that take connections, bodies, turns and transfers for as long as they can keep them. Each is a host of its
//! own, or one that has a whole /64 network, and another host asks for the same meanwhile, which is to be served as if the
//! stranger were not there.

use super::conductor::{Victim, request};
use super::network::{Neighbour, enter_own};
use super::{Extent, Row};
use crate::machine::free_port;
use anyhow::{Context, Result, anyhow, ensure};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The boot loader that all machines load, and its size.
const LOADER: &str = "loader.bin";
const LOADER_BYTES: usize = 4 << 20;
/// Where TFTP is served.
const TFTP: u16 = 69;
/// How many clients a stranger is at a time: more than there are places.
const CROWD: u16 = 640;
/// Longest time for one request of an honest client.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a stranger has before honest clients come.
const HEAD_START: Duration = Duration::from_secs(3);
/// Bytes of an honest description of a machine, and of one that a stranger sends.
const REPORT: usize = 2_000_000;
const LARGEST: usize = (16 << 20) - 1000;
/// Most that a stranger may add to the conductor's memory, in KiB: what its limits say, and a little.
const OF_CONNECTIONS: u64 = 320 << 10;
const OF_BODIES: u64 = 256 << 10;
const OF_REST: u64 = 96 << 10;

/// What is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// Places of connections.
    Connections,
    /// Memory of bodies.
    Bodies,
    /// Turns of lookups.
    Lookups,
    /// Transfers by HTTP.
    Http,
    /// Transfers by TFTP.
    Tftp,
}

/// Who takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stranger {
    /// One address.
    Host,
    /// Every address of a /64.
    Network,
    /// Addresses of others, who never asked.
    Forger,
}

/// What is tried, the quick ones first, and how long an honest client may wait, in milliseconds.
const TRIED: [(Taken, Stranger, f64); 10] = [
    (Taken::Connections, Stranger::Host, 3_000.0),
    (Taken::Bodies, Stranger::Host, 6_000.0),
    (Taken::Http, Stranger::Host, 6_000.0),
    (Taken::Tftp, Stranger::Forger, 8_000.0),
    (Taken::Lookups, Stranger::Host, 4_000.0),
    (Taken::Connections, Stranger::Network, 3_000.0),
    (Taken::Bodies, Stranger::Network, 6_000.0),
    (Taken::Http, Stranger::Network, 8_000.0),
    (Taken::Lookups, Stranger::Network, 4_000.0),
    (Taken::Tftp, Stranger::Network, 8_000.0),
];
/// How many of them are quick.
const QUICK: usize = 4;

/// One row for each of them.
///
/// # Errors
///
/// A conductor did not start.
pub fn rows(program: &Path, folder: &Path, extent: Extent) -> Result<Vec<Row>> {
    let count = if extent == Extent::Quick { QUICK } else { TRIED.len() };
    let (program, folder) = (program.to_owned(), folder.to_owned());
    // The thread, and with it what it starts, has a network of its own.
    let tried = thread::spawn(move || {
        enter_own()?;
        let (stranger, honest) = (Neighbour::connect(1)?, Neighbour::connect(2)?);
        let row = |(taken, who, limit)| {
            let folder = folder.join(format!("{taken:?}-{who:?}"));
            row(&program, &folder, (&stranger, &honest), taken, who, limit)
                .with_context(|| format!("{taken:?} by {who:?}"))
        };
        TRIED[..count].iter().copied().map(row).collect()
    });
    tried.join().map_err(|_| anyhow!("the thread of the strangers panicked"))?
}

fn row(
    program: &Path,
    folder: &Path,
    (stranger, honest): (&Neighbour, &Neighbour),
    taken: Taken,
    who: Stranger,
    honest_limit_ms: f64,
) -> Result<Row> {
    fs::create_dir_all(folder)?;
    let loader = folder.join(LOADER);
    fs::write(&loader, vec![7; LOADER_BYTES])?;
    let loader = format!("{LOADER}:{}", loader.display());
    let tftp = format!("[::]:{TFTP}");
    let listen = SocketAddr::from((Ipv6Addr::UNSPECIFIED, free_port()?));
    let options = ["--loader-file-paths", &loader, "--tftp-listen", &tftp];
    let victim = Victim::start_at(listen, program, folder, &options)?;
    let before_kib = victim.peak_kib()?;
    let ends = Arc::new(AtomicBool::new(false));
    let answers = Arc::<AtomicU64>::default();
    let crowd = Crowd::of(stranger, listen.port(), taken, who);
    let (is_over, counted) = (Arc::clone(&ends), Arc::clone(&answers));
    let taking = stranger.run(move || crowd.take(&is_over, &counted));
    thread::sleep(HEAD_START);
    let server = SocketAddr::from((honest.gateway(), listen.port()));
    let waited = honest.run(move || longest(server, taken)).join();
    let waited = waited.map_err(|_| anyhow!("the honest client panicked"))?;
    ends.store(true, Ordering::Relaxed);
    taking.join().map_err(|_| anyhow!("the stranger panicked"))??;
    let honest_ms = waited.with_context(|| victim.log_tail())?.as_secs_f64() * 1000.0;
    Ok(Row {
        stranger: told(taken, who),
        answer: format!("{} taken or answered", answers.load(Ordering::Relaxed)),
        before_kib,
        after_kib: victim.peak_kib()?,
        allowed_kib: match taken {
            Taken::Connections => OF_CONNECTIONS,
            Taken::Bodies => OF_BODIES,
            Taken::Lookups | Taken::Http | Taken::Tftp => OF_REST,
        },
        honest_ms,
        honest_limit_ms,
    })
}

fn told(taken: Taken, who: Stranger) -> String {
    let who = match who {
        Stranger::Host => "one address",
        Stranger::Network => "a /64 network",
        Stranger::Forger => "forged senders",
    };
    let taken = match taken {
        Taken::Connections => "silent connections",
        Taken::Bodies => "bodies of 16 MiB that do not end",
        Taken::Lookups => "lookups of many addresses",
        Taken::Http => "unread transfers by HTTP",
        Taken::Tftp => "requests by TFTP",
    };
    format!("{who}: {taken}")
}

/// The clients that a stranger is.
struct Crowd {
    taken: Taken,
    addresses: Vec<IpAddr>,
    server: SocketAddr,
}

impl Crowd {
    fn of(stranger: &Neighbour, port: u16, taken: Taken, who: Stranger) -> Self {
        let address = |number| match who {
            Stranger::Host => stranger.address().into(),
            Stranger::Network => stranger.of_network(number),
            Stranger::Forger => stranger.other(number),
        };
        let gateway: IpAddr = match who {
            Stranger::Network => stranger.gateway_v6().into(),
            Stranger::Host | Stranger::Forger => stranger.gateway().into(),
        };
        let clients = if matches!(taken, Taken::Bodies | Taken::Lookups) { CROWD / 10 } else { CROWD };
        let port = if taken == Taken::Tftp { TFTP } else { port };
        Self {
            taken,
            addresses: (1..=clients).map(address).collect(),
            server: SocketAddr::new(gateway, port),
        }
    }

    /// Takes what it can get until it is over.
    fn take(self, is_over: &AtomicBool, answers: &Arc<AtomicU64>) -> Result<()> {
        if self.taken == Taken::Tftp {
            return self.flood(is_over, answers);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut clients = JoinSet::new();
            for address in self.addresses {
                let (taken, server, answers) = (self.taken, self.server, Arc::clone(answers));
                clients.spawn(async move {
                    loop {
                        // A client that is closed out comes again.
                        if once(taken, address, server).await.is_ok() {
                            answers.fetch_add(1, Ordering::Relaxed);
                        }
                        sleep(Duration::from_millis(50)).await;
                    }
                });
            }
            while !is_over.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(20)).await;
            }
        });
        Ok(())
    }

    /// Asks for files again and again, and reads nothing.
    fn flood(self, is_over: &AtomicBool, answers: &AtomicU64) -> Result<()> {
        let request = [&[0, 1], LOADER.as_bytes(), b"\0octet\0timeout\x0010\0"].concat();
        let mut sockets = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            sockets.clear();
            for address in &self.addresses {
                let socket = UdpSocket::bind((*address, 0))?;
                // What the network does not take is lost, as any packet.
                if socket.send_to(&request, self.server).is_ok() {
                    answers.fetch_add(1, Ordering::Relaxed);
                }
                sockets.push(socket);
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    }
}

/// Takes something once, and holds it for as long as it may.
async fn once(taken: Taken, from: IpAddr, server: SocketAddr) -> Result<()> {
    let socket = if from.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind((from, 0).into())?;
    if taken == Taken::Http {
        socket.set_recv_buffer_size(4096)?;
    }
    let mut stream = socket.connect(server).await?;
    match taken {
        Taken::Connections => held(&mut stream).await,
        Taken::Bodies => {
            let head = format!(
                "POST /v1/continue_inspection HTTP/1.1\r\nHost: x\r\nX-OpenStack-Ironic-API-Version: 1.84\r\n\
                 Content-Length: {}\r\n\r\n",
                LARGEST + 1000
            );
            stream.write_all(head.as_bytes()).await?;
            let piece = vec![b' '; 256 << 10];
            for _ in 0..LARGEST / piece.len() {
                stream.write_all(&piece).await?;
            }
            held(&mut stream).await
        }
        Taken::Lookups => {
            let addresses: Vec<_> =
                (0..1700).map(|n| format!("52:54:01:00:{:02x}:{:02x}", n / 256, n % 256)).collect();
            let head = format!(
                "GET /v1/lookup?addresses={} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                 X-OpenStack-Ironic-API-Version: 1.84\r\n\r\n",
                addresses.join(",")
            );
            stream.write_all(head.as_bytes()).await?;
            held(&mut stream).await
        }
        Taken::Http => {
            stream.write_all(format!("GET /{LOADER} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await?;
            // Reads nothing; as it never learns that it was closed out, it comes again after a while.
            sleep(Duration::from_secs(20)).await;
            Ok(())
        }
        Taken::Tftp => Ok(()),
    }
}

/// Reads until the other side has enough of it.
async fn held(stream: &mut TcpStream) -> Result<()> {
    let mut answer = [0; 1024];
    while stream.read(&mut answer).await? > 0 {}
    Ok(())
}

/// The longest of some waits for the same that the stranger takes.
fn longest(server: SocketAddr, taken: Taken) -> Result<Duration> {
    let mut longest = Duration::ZERO;
    for _ in 0..8 {
        let begin = Instant::now();
        match taken {
            Taken::Connections => answered(&request(server, "GET", "/v1", "")?, "200")?,
            Taken::Bodies => {
                let report = format!("{{\"inventory\": {{\"text\": \"{}\"}}}}", "x".repeat(REPORT));
                let answer = request(server, "POST", "/v1/continue_inspection", &report)?;
                ensure!(answer.starts_with('4'), "an honest report is answered {answer}");
            }
            Taken::Lookups => {
                let path = "/v1/lookup?addresses=52:54:00:aa:aa:aa";
                answered(&request(server, "GET", path, "")?, "404")?;
            }
            Taken::Http => loaded(server)?,
            Taken::Tftp => loaded_by_tftp(SocketAddr::new(server.ip(), TFTP))?,
        }
        longest = longest.max(begin.elapsed());
        thread::sleep(Duration::from_millis(100));
    }
    Ok(longest)
}

fn answered(answer: &str, status: &str) -> Result<()> {
    ensure!(answer.starts_with(status), "an honest client is answered {answer}");
    Ok(())
}

/// Loads the boot loader by HTTP, as iPXE does.
fn loaded(server: SocketAddr) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let received = runtime.block_on(async {
        let mut stream = TcpStream::connect(server).await?;
        let head = format!("GET /{LOADER} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut answer = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut answer)).await??;
        anyhow::Ok(answer)
    })?;
    ensure!(received.len() > LOADER_BYTES, "{} bytes instead of a boot loader", received.len());
    Ok(())
}

/// Loads the boot loader by TFTP, as firmware does: what is lost is asked for again, and so is the file.
fn loaded_by_tftp(server: SocketAddr) -> Result<()> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE {
        if attempt_by_tftp(server)? {
            return Ok(());
        }
    }
    Err(anyhow!("no boot loader within {} s", PATIENCE.as_secs()))
}

/// Whether one attempt came to its end.
fn attempt_by_tftp(server: SocketAddr) -> Result<bool> {
    const BLOCK: usize = 1428;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    let request = [&[0, 1], LOADER.as_bytes(), b"\0octet\0blksize\x001428\0"].concat();
    socket.send_to(&request, server)?;
    let (mut packet, mut received, mut silence) = ([0; 2048], 0_u16, 0);
    loop {
        let Ok((length, from)) = socket.recv_from(&mut packet) else {
            silence += 1;
            if received == 0 || silence > 3 {
                return Ok(false);
            }
            continue;
        };
        match packet[..length] {
            [0, 6, ..] => socket.send_to(&[0, 4, 0, 0], from)?,
            [0, 3, high, low, ref data @ ..] => {
                let number = u16::from_be_bytes([high, low]);
                (received, silence) = (number.max(received), 0);
                let sent = socket.send_to(&[0, 4, high, low], from)?;
                if data.len() < BLOCK {
                    return Ok(true);
                }
                sent
            }
            _ => return Ok(false),
        };
    }
}
