//! Strangers that take connections, bodies, turns and transfers for as long as they can keep them. Each is a host of its
//! own, or one that has a whole /64 network, and another host asks for the same meanwhile, which is to be served as if the
//! stranger were not there.

use super::conductor::Victim;
use super::honest;
use super::measure::peak_kib;
use super::network::{Neighbour, enter_own};
use super::{Extent, Row};
use crate::machine::free_port;
use anyhow::{Context, Result, anyhow, ensure};
use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;

/// The boot loader that all machines load, and its size.
pub(super) const LOADER: &str = "loader.bin";
pub(super) const LOADER_BYTES: usize = 4 << 20;
/// Where TFTP is served.
pub(super) const TFTP: u16 = 69;
/// How many clients a stranger is at a time: more than there are places.
const CROWD: u16 = 640;
/// How many honest clients there are at a time, each with an address of its own.
const HONEST: u16 = 16;
const FEW_HONEST: u16 = 4;
/// How long a stranger has before honest clients come.
const HEAD_START: Duration = Duration::from_secs(3);
/// Bytes of a description of a machine that a stranger sends.
const LARGEST: usize = (16 << 20) - 1000;
/// Most that a stranger may add to the conductor's memory, in KiB: what its limits say, and a little.
const OF_CONNECTIONS: u64 = 320 << 10;
const OF_BODIES: u64 = 256 << 10;
const OF_REST: u64 = 96 << 10;

/// What is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
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

/// What is tried, the quick ones first, and how much longer than without the stranger an honest client may wait, in
/// milliseconds.
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
    let (count, clients) = match extent {
        Extent::Quick => (QUICK, FEW_HONEST),
        Extent::Whole => (TRIED.len(), HONEST),
    };
    let (program, folder) = (program.to_owned(), folder.to_owned());
    // The thread, and with it what it starts, has a network of its own.
    let tried = thread::spawn(move || {
        enter_own()?;
        let (stranger, honest) = (Neighbour::connect(1)?, Neighbour::connect(2)?);
        let row = |(taken, who, limit)| {
            let folder = folder.join(format!("{taken:?}-{who:?}"));
            row(&program, &folder, (&stranger, &honest), clients, taken, who, limit)
                .unwrap_or_else(|error| Row::failed("conductor", told(taken, who), &error))
        };
        Ok(TRIED[..count].iter().copied().map(row).collect())
    });
    tried.join().map_err(|_| anyhow!("the thread of the strangers panicked"))?
}

fn row(
    program: &Path,
    folder: &Path,
    (stranger, honest): (&Neighbour, &Neighbour),
    clients: u16,
    taken: Taken,
    who: Stranger,
    longer_ms: f64,
) -> Result<Row> {
    fs::create_dir_all(folder)?;
    let loader = folder.join(LOADER);
    fs::write(&loader, vec![7; LOADER_BYTES])?;
    let loader = format!("{LOADER}:{}", loader.display());
    let tftp = format!("[::]:{TFTP}");
    let listen = SocketAddr::from((Ipv6Addr::UNSPECIFIED, free_port()?));
    let options = ["--loader-file-paths", &loader, "--tftp-listen", &tftp];
    let victim = Victim::start_at(listen, program, folder, &options)?;
    let server = SocketAddr::from((honest.gateway(), listen.port()));
    let longest = || {
        let from = (1..=clients).map(|number| honest.other(number)).collect();
        let waited = honest.run(move || honest::longest(from, server, taken)).join();
        let waited = waited.map_err(|_| anyhow!("the honest clients panicked"))?;
        Ok::<_, anyhow::Error>(waited.with_context(|| victim.log_tail())?.as_secs_f64() * 1000.0)
    };
    let alone_ms = longest()?;
    let before_kib = peak_kib(victim.process_id())?;
    let ends = Arc::new(AtomicBool::new(false));
    let asked = Arc::<AtomicU64>::default();
    let crowd = Crowd::of(stranger, listen.port(), taken, who);
    let (is_over, counted) = (Arc::clone(&ends), Arc::clone(&asked));
    let taking = stranger.run(move || crowd.take(&is_over, &counted));
    thread::sleep(HEAD_START);
    let waited = longest();
    ends.store(true, Ordering::Relaxed);
    let took = taking.join().map_err(|_| anyhow!("the stranger panicked"))?;
    // Without a stranger, nothing is shown.
    let (honest_ms, error) = match took.and(waited) {
        Ok(waited) => (waited, None),
        Err(error) => (0.0, Some(format!("{error:#}"))),
    };
    Ok(Row {
        process: "conductor".to_owned(),
        stranger: told(taken, who),
        answer: format!("{} times", asked.load(Ordering::Relaxed)),
        before_kib,
        after_kib: peak_kib(victim.process_id())?,
        allowed_kib: match taken {
            Taken::Connections => OF_CONNECTIONS,
            Taken::Bodies => OF_BODIES,
            Taken::Lookups | Taken::Http | Taken::Tftp => OF_REST,
        },
        alone_ms,
        honest_ms,
        honest_limit_ms: alone_ms + longer_ms,
        error,
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

    /// Takes what it can get until it is over, and counts how often it asked.
    ///
    /// # Errors
    ///
    /// It could never ask.
    fn take(self, is_over: &AtomicBool, asked: &Arc<AtomicU64>) -> Result<()> {
        if self.taken == Taken::Tftp {
            return self.flood(is_over, asked);
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let mut clients = JoinSet::new();
            for address in self.addresses {
                let (taken, server, asked) = (self.taken, self.server, Arc::clone(asked));
                clients.spawn(async move {
                    loop {
                        // A client that is closed out comes again.
                        if let Ok(stream) = connect(taken, address, server).await {
                            asked.fetch_add(1, Ordering::Relaxed);
                            hold(taken, stream).await.ok();
                        }
                        sleep(Duration::from_millis(50)).await;
                    }
                });
            }
            while !is_over.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(20)).await;
            }
        });
        ensure!(asked.load(Ordering::Relaxed) > 0, "the stranger cannot connect to {}", self.server);
        Ok(())
    }

    /// Asks for files again and again, and reads nothing.
    fn flood(self, is_over: &AtomicBool, asked: &AtomicU64) -> Result<()> {
        let request = [&[0, 1], LOADER.as_bytes(), b"\0octet\0timeout\x0010\0"].concat();
        let mut sockets = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            sockets.clear();
            for address in &self.addresses {
                let socket = UdpSocket::bind((*address, 0))?;
                // What the network does not take is lost, as any packet.
                if socket.send_to(&request, self.server).is_ok() {
                    asked.fetch_add(1, Ordering::Relaxed);
                }
                sockets.push(socket);
            }
            thread::sleep(Duration::from_millis(100));
        }
        ensure!(asked.load(Ordering::Relaxed) > 0, "the stranger cannot send to {}", self.server);
        Ok(())
    }
}

async fn connect(taken: Taken, from: IpAddr, server: SocketAddr) -> Result<TcpStream> {
    let socket = if from.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind((from, 0).into())?;
    if taken == Taken::Http {
        socket.set_recv_buffer_size(4096)?;
    }
    Ok(socket.connect(server).await?)
}

/// Takes something, and holds it for as long as it may.
async fn hold(taken: Taken, mut stream: TcpStream) -> Result<()> {
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
