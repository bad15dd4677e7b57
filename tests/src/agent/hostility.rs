//! Clients that mean harm to an agent: each does something that costs little and may take much.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_rustls::TlsConnector;

/// How long who was closed out stays away.
const AWAY: Duration = Duration::from_secs(2);

/// What a hostile client does on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hostility {
    /// Nothing, not even TLS.
    Silence,
    /// Bytes that look like the beginning of TLS.
    Garbage,
    /// Nothing after the handshake.
    SilenceInTls,
    /// A head, byte by byte.
    SlowHead,
    /// A head of headers only.
    Headers,
    /// A path without an end.
    Path,
    /// HTTP/2 by prior knowledge, with a window of 0 and long paths.
    Http2,
    /// Requests, whose answers it does not read.
    Pipelining,
    /// A body, without the token.
    Body,
}

/// Where the agent is, and how it proves that it is the one.
#[derive(Clone)]
pub struct Victim {
    address: SocketAddr,
    name: ServerName<'static>,
    tls: TlsConnector,
}

/// Clients of one kind, which come again as often as they are closed out, until this is dropped.
pub struct Crowd {
    _clients: JoinSet<()>,
    meetings: Arc<AtomicUsize>,
}

impl Victim {
    /// An agent that is reached at `address`, and whose certificate, in PEM, is for `name`.
    ///
    /// # Panics
    ///
    /// It is no certificate.
    pub fn new(address: SocketAddr, name: IpAddr, certificate: &str) -> Self {
        Self { address, name: ServerName::from(name), tls: trusting(certificate) }
    }
}

/// Connects to whoever has this certificate, which is in PEM.
///
/// # Panics
///
/// It is no certificate.
pub fn trusting(certificate: &str) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate in PEM");
    roots.add(certificate).expect("a certificate");
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

impl Crowd {
    /// So many clients, on the runtime of the caller. They come from another address than honest ones.
    pub fn gather(hostility: Hostility, count: usize, victim: &Victim) -> Self {
        let (mut clients, meetings) = (JoinSet::new(), Arc::new(AtomicUsize::default()));
        for _ in 0..count {
            clients.spawn(hostility.harass(victim.clone(), Arc::clone(&meetings)));
        }
        Self { _clients: clients, meetings }
    }

    /// How often the agent has shown that it had one of them before it: by a handshake, or by closing it out.
    pub fn meetings(&self) -> usize {
        self.meetings.load(Ordering::Relaxed)
    }
}

impl Hostility {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Silence,
        Self::Garbage,
        Self::SilenceInTls,
        Self::SlowHead,
        Self::Headers,
        Self::Path,
        Self::Http2,
        Self::Pipelining,
        Self::Body,
    ];

    fn is_below_tls(self) -> bool {
        matches!(self, Self::Silence | Self::Garbage)
    }

    /// The first bytes, and those that follow again and again.
    fn words(self) -> (Vec<u8>, Vec<u8>) {
        let long = "y".repeat(7000);
        match self {
            Self::Silence | Self::SilenceInTls => (vec![], vec![]),
            // A record of the greatest length with the beginning of a message that is larger still.
            Self::Garbage => (vec![0x16, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff, 3, 3], vec![0x5a; 1000]),
            Self::SlowHead => (b"GET /v1/status HTTP/1.1\r\nHost: x\r\nx: ".to_vec(), b"y".to_vec()),
            Self::Headers => (b"GET / HTTP/1.1\r\nHost: x\r\n".to_vec(), b"x: y\r\n".repeat(1000)),
            Self::Path => (b"GET /".to_vec(), long.into_bytes()),
            Self::Http2 => {
                let mut words = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
                // SETTINGS with INITIAL_WINDOW_SIZE 0 (RFC 9113, 6.5.2).
                words.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
                (words, long.into_bytes())
            }
            Self::Pipelining => {
                let one = format!("GET /{long} HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes();
                (vec![], [one, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(500)].concat())
            }
            Self::Body => {
                let head = "POST /v1/commands/?agent_token=wrong HTTP/1.1\r\nHost: x\r\nContent-Length: 90000000\r\n\r\n";
                (head.as_bytes().to_vec(), vec![b' '; 16 << 10])
            }
        }
    }

    /// Goes on until the other side has had enough.
    async fn speak(self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let (first, rest) = self.words();
        stream.write_all(&first).await?;
        stream.flush().await?;
        if rest.is_empty() {
            stream.read_u8().await?;
        }
        loop {
            stream.write_all(&rest).await?;
            stream.flush().await?;
            // One byte at a time is slow only if there is time between them.
            let pause = if rest.len() == 1 { Duration::from_millis(50) } else { Duration::from_millis(1) };
            sleep(pause).await;
        }
    }

    async fn harass(self, victim: Victim, meetings: Arc<AtomicUsize>) {
        let met = || meetings.fetch_add(1, Ordering::Relaxed);
        loop {
            if let Ok(stream) = connect(victim.address).await {
                if self.is_below_tls() {
                    self.speak(stream).await.ok();
                    met();
                } else if let Ok(stream) = victim.tls.connect(victim.name.clone(), stream).await {
                    met();
                    self.speak(stream).await.ok();
                }
            }
            sleep(AWAY).await;
        }
    }
}

/// Takes as little at once as can be.
async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(2048)?;
    socket.bind((Ipv4Addr::new(127, 0, 0, 3), 0).into())?;
    socket.connect(address).await
}
