//! Many machines that load the same file at once, each from an address of its own.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::StatusCode;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};

/// A transfer that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often a file is asked for by HTTP that the server has no turn for; the n-th time after n seconds, as the script of
/// iPXE does.
const TRIES: u32 = 10;

/// A file that has come whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fetched {
    /// How often something was asked for again.
    pub repeats: u32,
}

/// How a server sent a file to all clients.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// MiB in a second, of all that came, from the first request to the end of the last transfer.
    pub mib_per_second: f64,
    /// Seconds that 99 of 100 transfers keep to.
    pub p99_s: f64,
    /// Clients that did not get the file.
    pub failed: usize,
    /// How often clients asked for something again.
    pub repeats: u32,
}

/// Has so many clients fetch a file of so many bytes at once. What failed is told.
pub fn crowd(clients: u16, bytes: u64, fetch: impl Fn(Ipv4Addr) -> Result<Fetched> + Sync) -> Figures {
    let begin = Instant::now();
    let client = |number| {
        let fetched = fetch(address(number))?;
        Ok((begin.elapsed(), fetched))
    };
    let outcomes = thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|number| scope.spawn(move || client(number))).collect();
        let ended =
            clients.into_iter().map(|client| client.join().unwrap_or_else(|_| bail!("a client panicked")));
        ended.collect::<Vec<Result<_>>>()
    });
    if let Some(error) = outcomes.iter().find_map(|outcome| outcome.as_ref().err()) {
        println!("a client did not get its file: {error:#}");
    }
    figures(bytes, &outcomes)
}

/// The address of a client, of which there are enough on the loopback interface.
fn address(number: u16) -> Ipv4Addr {
    let [high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 1, high, low)
}

fn figures(bytes: u64, outcomes: &[Result<(Duration, Fetched)>]) -> Figures {
    let good = || outcomes.iter().filter_map(|outcome| outcome.as_ref().ok());
    let mut times: Vec<_> = good().map(|(took, _)| took.as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    let last = times.last().copied().unwrap_or_default();
    let mib = (bytes * times.len() as u64) as f64 / f64::from(1 << 20);
    Figures {
        mib_per_second: if last > 0.0 { mib / last } else { 0.0 },
        p99_s: times.get((times.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default(),
        failed: outcomes.len() - times.len(),
        repeats: good().map(|(_, fetched)| fetched.repeats).sum(),
    }
}

/// Fetches a file by HTTP as the client with the address `own`, and holds it against what it is.
///
/// # Errors
///
/// The server does not send it, or sends another.
pub fn fetch_by_http(own: Ipv4Addr, server: SocketAddr, name: &str, content: &[u8]) -> Result<Fetched> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let all = async {
        for repeats in 0..TRIES {
            if is_sent(own, server, name, content).await? {
                return Ok(Fetched { repeats });
            }
            tokio::time::sleep(Duration::from_secs(u64::from(repeats) + 1)).await;
        }
        Err(anyhow!("the server had no turn for it {TRIES} times"))
    };
    runtime.block_on(async { tokio::time::timeout(PATIENCE, all).await }).context("it took too long")?
}

/// Whether the server had a turn for the file, and then has sent it.
async fn is_sent(own: Ipv4Addr, server: SocketAddr, name: &str, content: &[u8]) -> Result<bool> {
    let mut connector = HttpConnector::new();
    connector.set_local_address(Some(IpAddr::V4(own)));
    let client = Client::builder(TokioExecutor::new()).build::<_, Full<Bytes>>(connector);
    let answer = client.get(format!("http://{server}/{name}").parse()?).await?;
    let status = answer.status();
    if status == StatusCode::SERVICE_UNAVAILABLE {
        return Ok(false);
    }
    ensure!(status == StatusCode::OK, "answered {status}");
    let (mut body, mut come) = (answer.into_body(), 0);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        ensure!(
            content.get(come..come + data.len()) == Some(&data[..]),
            "it is another file from byte {come} on"
        );
        come += data.len();
    }
    ensure!(come == content.len(), "the file ends after {come} bytes");
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::Mutex;

    #[test]
    fn the_figures_are_those_of_what_came() {
        let came = |seconds: u64, repeats| Ok((Duration::from_secs(seconds), Fetched { repeats }));
        let outcomes: Vec<_> =
            (1..=100).rev().map(|seconds| came(seconds, 1)).chain([Err(anyhow!("no"))]).collect();
        let expected = Figures { mib_per_second: 2.0, p99_s: 99.0, failed: 1, repeats: 100 };
        assert_eq!(figures(2 << 20, &outcomes), expected);
        let nothing = figures(2 << 20, &[Err(anyhow!("no"))]);
        assert_eq!((nothing.mib_per_second, nothing.p99_s, nothing.failed), (0.0, 0.0, 1));
        assert_eq!(figures(1 << 20, &[came(4, 0)]).p99_s, 4.0);
    }

    #[test]
    fn each_client_has_an_address_of_its_own() {
        let seen = Mutex::new(Vec::new());
        let figures = crowd(300, 1, |own| {
            seen.lock().unwrap().push(own);
            ensure!(own != Ipv4Addr::new(127, 1, 0, 7), "no");
            Ok(Fetched { repeats: 0 })
        });
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!((seen.len(), figures.failed), (300, 1));
    }

    #[test]
    fn a_file_that_the_server_has_no_turn_for_is_asked_for_again_and_another_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let answers = [
            "503 No\r\n\r\n",
            "200 OK\r\n\r\ncontent",
            "200 OK\r\n\r\nanother",
            "200 OK\r\n\r\ncont",
            "404 No\r\n\r\n",
        ];
        thread::spawn(move || {
            for answer in answers {
                let (mut stream, peer) = listener.accept().unwrap();
                assert_eq!(peer.ip(), Ipv4Addr::new(127, 1, 0, 3));
                let mut request = [0; 1024];
                assert!(stream.read(&mut request).unwrap() > 0);
                stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
            }
        });
        let fetch = || fetch_by_http(address(3), server, "deploy_ramdisk", b"content");
        assert_eq!(fetch().unwrap(), Fetched { repeats: 1 });
        for expected in
            ["it is another file from byte 0 on", "the file ends after 4 bytes", "answered 404 Not Found"]
        {
            assert_eq!(fetch().unwrap_err().to_string(), expected);
        }
    }
}
