//! Honest clients, each with an address of its own, that ask for what a stranger takes: machines of a site that boot.

use super::shares::{LOADER, LOADER_BYTES, TFTP, Taken};
use anyhow::{Context, Result, anyhow, ensure};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Longest time for one request.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long TFTP waits for a packet before it asks again.
const PACKET_PATIENCE: Duration = Duration::from_secs(1);
/// How often each client asks, and its pause between.
const TIMES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(200);
/// Bytes of an honest description of a machine.
const REPORT: usize = 2_000_000;
/// Bytes of a block of TFTP.
const BLOCK: usize = 1428;

/// The longest wait of all of these clients for the same that the stranger takes.
///
/// # Errors
///
/// One was not answered as it should be.
pub(super) fn longest(from: Vec<IpAddr>, server: SocketAddr, taken: Taken) -> Result<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut clients: JoinSet<_> = from.into_iter().map(|from| asks(from, server, taken)).collect();
        let mut longest = Duration::ZERO;
        while let Some(waited) = clients.join_next().await {
            longest = longest.max(waited.context("an honest client panicked")??);
        }
        Ok(longest)
    })
}

/// The longest wait of one of them.
async fn asks(from: IpAddr, server: SocketAddr, taken: Taken) -> Result<Duration> {
    let mut longest = Duration::ZERO;
    for _ in 0..TIMES {
        let begin = Instant::now();
        let asked = timeout(PATIENCE, once(from, server, taken)).await;
        asked.map_err(|_| anyhow!("no answer within {} s", PATIENCE.as_secs()))??;
        longest = longest.max(begin.elapsed());
        sleep(PAUSE).await;
    }
    Ok(longest)
}

async fn once(from: IpAddr, server: SocketAddr, taken: Taken) -> Result<()> {
    match taken {
        Taken::Connections => answered(&request(from, server, "GET", "/v1", "").await?, "200"),
        Taken::Bodies => {
            let report = format!("{{\"inventory\": {{\"text\": \"{}\"}}}}", "x".repeat(REPORT));
            let answer = request(from, server, "POST", "/v1/continue_inspection", &report).await?;
            answered(&answer, "4").and_then(|()| {
                ensure!(!answer.contains("cut off"), "an honest report is cut off");
                Ok(())
            })
        }
        Taken::Lookups => {
            let path = "/v1/lookup?addresses=52:54:00:aa:aa:aa";
            answered(&request(from, server, "GET", path, "").await?, "404")
        }
        Taken::Http => {
            let answer = request(from, server, "GET", &format!("/{LOADER}"), "").await?;
            ensure!(answer.len() > LOADER_BYTES, "{} bytes instead of a boot loader", answer.len());
            Ok(())
        }
        // What is lost is asked for again, and so is the file, as firmware does.
        Taken::Tftp => {
            while !loaded_by_tftp(from, SocketAddr::new(server.ip(), TFTP)).await? {}
            Ok(())
        }
    }
}

fn answered(answer: &str, status: &str) -> Result<()> {
    let answer = answer.split_once(' ').map_or("", |(_, answer)| answer);
    ensure!(
        answer.starts_with(status),
        "an honest client is answered {:?}",
        answer.get(..200).unwrap_or(answer)
    );
    Ok(())
}

/// The whole answer to a request.
async fn request(from: IpAddr, server: SocketAddr, method: &str, path: &str, body: &str) -> Result<String> {
    let socket = if from.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind((from, 0).into())?;
    let mut stream = socket.connect(server).await?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n\
         X-OpenStack-Ironic-API-Version: 1.84\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    // A refusal may come before the body has gone out.
    stream.write_all(body.as_bytes()).await.ok();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Whether one attempt to load the boot loader came to its end.
async fn loaded_by_tftp(from: IpAddr, server: SocketAddr) -> Result<bool> {
    let socket = UdpSocket::bind((from, 0)).await?;
    let request = [&[0, 1], LOADER.as_bytes(), b"\0octet\0blksize\x001428\0"].concat();
    socket.send_to(&request, server).await?;
    let (mut packet, mut received, mut silence) = ([0; 2048], 0_u16, 0);
    loop {
        let Ok(came) = timeout(PACKET_PATIENCE, socket.recv_from(&mut packet)).await else {
            silence += 1;
            if received == 0 || silence > 3 {
                return Ok(false);
            }
            continue;
        };
        let (length, from) = came?;
        match packet[..length] {
            [0, 6, ..] => socket.send_to(&[0, 4, 0, 0], from).await?,
            [0, 3, high, low, ref data @ ..] => {
                let number = u16::from_be_bytes([high, low]);
                (received, silence) = (number.max(received), 0);
                let sent = socket.send_to(&[0, 4, high, low], from).await?;
                if data.len() < BLOCK {
                    return Ok(true);
                }
                sent
            }
            _ => return Ok(false),
        };
    }
}
