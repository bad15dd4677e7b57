//! Machines with one thing wrong, and servers that are wrong in one way each.

use super::*;
use crate::network::http::install_tls_provider;
use farrier_linux::kernel_line;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use std::time::SystemTime;
use tempfile::TempDir;
use time::OffsetDateTime;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

const NODE: &str = "1f4c3c6e-62d4-4c6f-8a0a-3d0f6f0f2f11";
const DAY: i64 = 86_400;

fn nic(name: &str, has_carrier: bool) -> NetworkInterface {
    let mac_address = "52:54:00:00:00:01".to_owned();
    NetworkInterface { name: name.into(), mac_address, has_carrier, ..NetworkInterface::default() }
}

/// A machine whose network is in order, with these parameters.
fn machine(line: &str) -> Host {
    install_tls_provider();
    let line = format!("ipa-http-request-timeout=1 ipa-lldp-timeout=0 {line}");
    let address =
        InterfaceAddress { interface: "nosuch0".into(), address: [192, 0, 2, 15].into(), prefix: 24 };
    Host {
        options: Options::load(&kernel_line::parse(&line), &Default::default()).0,
        nics: vec![nic("nosuch0", true)],
        addresses: vec![address],
        name_servers: Vec::new(),
    }
}

/// The line of the first failure, and the checks that were not tried.
async fn cause(host: &Host) -> (String, Vec<&'static str>) {
    let report = host.examine().await;
    let untried = report.verdicts.iter().filter(|verdict| verdict.state == State::NotTried);
    let untried = untried.map(|verdict| verdict.check).collect();
    (report.cause().map(ToString::to_string).unwrap_or_default(), untried)
}

/// How a server behaves.
#[derive(Clone, Default)]
struct Server {
    /// Status and body of a lookup.
    lookup: Option<(u16, &'static str)>,
    /// Seconds by which its clock is ahead.
    ahead: i64,
    /// Says this instead of anything sensible.
    garbage: Option<&'static [u8]>,
    tls: Option<Arc<ServerConfig>>,
}

impl Server {
    /// Serves and returns its URL.
    async fn start(self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = self.clone();
                tokio::spawn(async move {
                    match server.tls.clone() {
                        // A client that does not believe the certificate goes away.
                        Some(tls) => match TlsAcceptor::from(tls).accept(stream).await {
                            Ok(stream) => server.serve(stream).await,
                            Err(_) => Ok(()),
                        },
                        None => server.serve(stream).await,
                    }
                });
            }
        });
        url
    }

    async fn serve(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
        let mut request = vec![0; 4096];
        let length = stream.read(&mut request).await?;
        if let Some(garbage) = self.garbage {
            stream.write_all(garbage).await?;
            return stream.shutdown().await;
        }
        let node = format!(r#"{{"node": {{"uuid": "{NODE}"}}, "config": {{"heartbeat_timeout": 300}}}}"#);
        let is_lookup = request[..length].starts_with(b"GET /v1/lookup?addresses=52:54:00:00:00:01 ");
        let (status, body) = match self.lookup {
            Some((status, body)) if is_lookup => (status, body.to_owned()),
            None if is_lookup => (200, node),
            _ => (200, r#"{"default_version": {"version": "1.95"}}"#.to_owned()),
        };
        let now = SystemTime::now() + Duration::from_secs(10 * 365 * DAY.unsigned_abs());
        let date = now - Duration::from_secs((10 * 365 * DAY - self.ahead).unsigned_abs());
        let date = httpdate::fmt_http_date(date);
        let head = format!(
            "HTTP/1.1 {status} X\r\nDate: {date}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).await?;
        stream.shutdown().await
    }
}

/// An authority, and a certificate of its for this machine that is valid between these days from now;
/// the authority's own goes into `ca.pem`.
fn certificate(folder: &TempDir, days: [i64; 2]) -> Arc<ServerConfig> {
    install_tls_provider();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let [from, to] = days.map(|day| OffsetDateTime::now_utc() + time::Duration::days(day));
    (params.not_before, params.not_after) = (from, to);
    let signed = params.signed_by(&key, &authority).unwrap();
    let chain = vec![CertificateDer::from_pem_slice(signed.pem().as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).unwrap();
    Arc::new(ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap())
}

/// A machine with the authority in `ca.pem`.
fn trusting(folder: &TempDir, url: &str) -> Host {
    let mut host = machine(&format!("ipa-api-url={url}"));
    host.options.cafile = Some(folder.path().join("ca.pem").to_str().unwrap().to_owned());
    host
}

#[tokio::test]
async fn a_machine_that_is_known_has_nothing_wrong() {
    let folder = TempDir::new().unwrap();
    let tls = Some(certificate(&folder, [-1, 1]));
    for server in [Server::default(), Server { tls, ..Server::default() }] {
        let url = server.start().await;
        let report = trusting(&folder, &url).examine().await;
        assert!(report.is_healthy, "{}", report.text());
        assert!(report.text().contains(&format!("{url}: this machine is node {NODE}")), "{}", report.text());
        assert!(report.verdicts.iter().all(|one| one.state == State::Good || one.check == "lldp"));
    }
}

#[tokio::test]
async fn what_rests_on_a_refused_connection_is_named_as_not_tried() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (cause, untried) = cause(&machine(&format!("ipa-api-url=http://{closed}"))).await;
    assert!(cause.contains("tcp") && cause.contains("refuses the connection. Start"), "{cause}");
    assert_eq!(untried, ["tls", "http", "lookup"]);
}

#[tokio::test]
async fn a_server_that_never_answers_ends_in_bounded_time() {
    let hole = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (cause, untried) =
        cause(&machine(&format!("ipa-api-url=http://{}", hole.local_addr().unwrap()))).await;
    assert!(cause.contains("http ") && cause.contains("cannot be reached"), "{cause}");
    assert_eq!(untried, ["lookup"]);
}

#[tokio::test]
async fn each_wrong_answer_has_its_own_line() {
    let lookup = |status, body| Server { lookup: Some((status, body)), ..Server::default() };
    let garbage = |bytes| Server { garbage: Some(bytes), ..Server::default() };
    for (server, check, expected) in [
        (garbage(b"\x00garbage\r\n\r\n"), "http", "cannot be reached"),
        (garbage(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), "http", "or a proxy?"),
        (garbage(b"HTTP/1.1 502 X\r\nContent-Length: 5\r\n\r\nhello"), "http", "answered 502"),
        (lookup(401, "who are you"), "lookup", "Agents have no account"),
        (lookup(404, "unknown"), "lookup", "Enrol this machine's addresses"),
        (lookup(200, "{}"), "lookup", "not a lookup reply"),
    ] {
        let (cause, _) = cause(&machine(&format!("ipa-api-url={}", server.start().await))).await;
        assert!(cause.contains(check) && cause.contains(expected), "{expected}: {cause}");
    }
}

#[tokio::test]
async fn a_certificate_that_is_out_of_date_is_told_from_a_clock_that_is_wrong() {
    let folder = TempDir::new().unwrap();
    for (days, ahead, expected) in [
        ([-9, -1], 0, "Renew the certificate"),
        ([1, 9], DAY + 3600, "because this clock is 25 h behind the server's. Set the clock"),
        ([-9, -1], -2 * DAY - 60, "because this clock is 2 days ahead of the server's. Set the clock"),
    ] {
        let tls = Some(certificate(&folder, days));
        let url = Server { tls, ahead, ..Server::default() }.start().await;
        let (cause, untried) = cause(&trusting(&folder, &url)).await;
        assert!(cause.contains("tls ") && cause.contains(expected), "{expected}: {cause}");
        assert_eq!(untried, ["http", "lookup"]);
    }
}

#[tokio::test]
async fn a_clock_that_is_an_hour_off_is_told_where_it_does_no_harm_yet() {
    let folder = TempDir::new().unwrap();
    let tls = Some(certificate(&folder, [-9, 9]));
    for server in
        [Server { ahead: 3600, ..Server::default() }, Server { ahead: 3600, tls, ..Server::default() }]
    {
        let report = trusting(&folder, &server.start().await).examine().await;
        let text = report.text();
        assert!(report.is_healthy && text.contains("CAUTION   tls"), "{text}");
        assert!(text.contains("min behind the server's"), "{text}");
    }
}

#[tokio::test]
async fn strangers_and_servers_without_tls_are_told_apart() {
    let folder = TempDir::new().unwrap();
    let url = Server { tls: Some(certificate(&folder, [-1, 1])), ..Server::default() }.start().await;
    let (stranger, _) = cause(&machine(&format!("ipa-api-url={url}"))).await;
    assert!(stranger.contains("no known authority"), "{stranger}");
    let plain = Server::default().start().await.replace("http://", "https://");
    let (plain, _) = cause(&machine(&format!("ipa-api-url={plain}"))).await;
    assert!(plain.contains("tls ") && plain.contains("does not speak TLS"), "{plain}");
}

#[tokio::test]
async fn a_machine_without_a_network_interface_gets_one_cause() {
    let host = Host { nics: Vec::new(), addresses: Vec::new(), ..machine("ipa-api-url=http://192.0.2.1") };
    let (cause, untried) = cause(&host).await;
    assert!(cause.contains("no network interface"), "{cause}");
    assert_eq!(untried, ["lldp", "dhcp", "address", "route", "dns", "tcp", "tls", "http", "lookup"]);
}

#[tokio::test]
async fn forty_interfaces_of_which_one_is_up_are_one_line_each() {
    let mut host = machine("ipa-api-url=http://192.0.2.1");
    host.nics = (0..40).map(|number| nic(&format!("nosuch{number}"), number == 0)).collect();
    host.options.api_url.0.clear();
    let report = host.examine().await;
    let lines = |check: &str| report.verdicts.iter().filter(|verdict| verdict.check == check).count();
    assert_eq!((lines("link"), lines("lldp"), lines("dhcp")), (40, 1, 1), "{}", report.text());
    assert_eq!(report.cause().map(|cause| cause.check), Some("api"));
}

#[test]
fn name_servers_are_read_and_other_lines_passed_over() {
    let text =
        "# comment\nsearch example\nnameserver 192.0.2.53\nnameserver junk\nnameserver 2001:db8::53 x\n";
    let expected: Vec<IpAddr> = vec!["192.0.2.53".parse().unwrap(), "2001:db8::53".parse().unwrap()];
    assert_eq!(name_servers(text), expected);
}
