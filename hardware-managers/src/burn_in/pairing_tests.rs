//! Pairing by a real etcd.

use super::*;
use crate::fake_host::FakeHost;
use farrier_protocol::error::{CommandError, ErrorKind};
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

const START: Duration = Duration::from_secs(60);
const ENOUGH: Duration = Duration::from_secs(60);

fn post(url: &str, body: &Value) -> Result<Value, CommandError> {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail-with-body", "--data-binary", "@-", url]);
    let mut curl = curl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    curl.stdin.take().unwrap().write_all(body.to_string().as_bytes()).unwrap();
    let output = curl.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let failed = || CommandError::new(ErrorKind::CommandExecutionError, format!("{url}: {text}"));
    if output.status.success() { serde_json::from_str(&text).map_err(|_| failed()) } else { Err(failed()) }
}

/// An agent whose HTTP client is curl.
fn host() -> FakeHost {
    FakeHost { post_json: post, ..FakeHost::default() }
}

/// A server with nothing in it. Dropping it ends it.
struct Server {
    host: FakeHost,
    process: Child,
    url: String,
    _folder: TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let [client, peer] = [free_url(), free_url()];
        let mut etcd = Command::new("etcd");
        etcd.arg("--data-dir").arg(folder.path().join("data"));
        etcd.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        etcd.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        etcd.args(["--initial-cluster", &format!("default={peer}")]);
        let process = etcd.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = Self {
            host: host(),
            process: process.expect("etcd-server is installed"),
            url: client,
            _folder: folder,
        };
        let started = Instant::now();
        while server.etcd().lease(1).is_err() {
            assert!(started.elapsed() < START, "etcd does not answer");
            thread::sleep(Duration::from_millis(50));
        }
        server
    }

    fn etcd(&self) -> Etcd<'_> {
        Etcd::new(&self.host, self.url.clone())
    }

    fn pair(&self, member: &str, timeout: Duration) -> Result<Pairing, String> {
        pair(&self.host, &self.url, "test", member, timeout).map_err(|error| error.to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn free_url() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn of_four_machines_each_has_a_partner_with_the_other_role() {
    let server = Server::start();
    let members = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
    let pairings: Vec<_> = thread::scope(|scope| {
        let machines = members.map(|member| {
            let server = &server;
            scope.spawn(move || server.pair(member, ENOUGH).unwrap())
        });
        machines.into_iter().map(|machine| machine.join().unwrap()).collect()
    });
    for (member, pairing) in members.iter().zip(&pairings) {
        let place = members.iter().position(|other| *other == pairing.partner).unwrap();
        assert_eq!(&pairings[place].partner, member, "{pairings:?}");
        assert_ne!(pairings[place].role, pairing.role, "{pairings:?}");
    }
    // Nothing is left for the next ones but the group.
    assert_eq!(server.etcd().below("tooz/groups/test/").unwrap(), [""; 0]);
    assert_eq!(server.etcd().below("/tooz/locks").unwrap(), [""; 0]);
}

#[test]
fn a_machine_without_partner_gives_up_and_leaves_no_trace() {
    let server = Server::start();
    let text = server.pair("192.0.2.1", Duration::ZERO).unwrap_err();
    assert!(text.contains("no partner came to the group tooz/groups/test/"), "{text}");
    assert_eq!(server.etcd().below("tooz/groups/test/").unwrap(), [""; 0]);
    assert_eq!(server.etcd().below("/tooz/locks").unwrap(), [""; 0]);
}

/// Of five questions one does not get there, and of another one the answer does not come back.
fn post_badly(url: &str, body: &Value) -> Result<Value, CommandError> {
    static QUESTIONS: AtomicU32 = AtomicU32::new(0);
    let lost = || CommandError::new(ErrorKind::CommandExecutionError, format!("{url}: lost"));
    if url.ends_with("lease/grant") {
        return post(url, body);
    }
    match QUESTIONS.fetch_add(1, Ordering::Relaxed) % 5 {
        0 => Err(lost()),
        2 => post(url, body).and_then(|_| Err(lost())),
        _ => post(url, body),
    }
}

#[test]
fn what_is_lost_on_the_way_is_asked_again() {
    let mut server = Server::start();
    server.host.post_json = post_badly;
    let pairings = thread::scope(|scope| {
        let server = &server;
        let machines = ["192.0.2.1", "192.0.2.2"]
            .map(|member| scope.spawn(move || server.pair(member, ENOUGH).unwrap()));
        machines.map(|machine| machine.join().unwrap())
    });
    assert_eq!([&*pairings[0].partner, &*pairings[1].partner], ["192.0.2.2", "192.0.2.1"]);
    assert_ne!(pairings[0].role, pairings[1].role);
}

#[test]
fn a_server_that_stays_away_is_named_with_its_last_failure() {
    let mut server = Server::start();
    server.host.post_json = |url, body| match url.ends_with("lease/grant") {
        true => post(url, body),
        false => Err(CommandError::new(ErrorKind::CommandExecutionError, format!("{url}: refused"))),
    };
    let text = server.pair("192.0.2.1", Duration::ZERO).unwrap_err();
    assert!(text.contains("in time") && text.ends_with("/v3/kv/txn: refused"), "{text}");
}

#[test]
fn a_lock_is_released_by_the_one_that_holds_it() {
    let server = Server::start();
    let etcd = server.etcd();
    let [own, foreign] = [etcd.lease(LEASE).unwrap(), etcd.lease(LEASE).unwrap()];
    assert!(etcd.create(LOCK, b"own", Some(&own)).unwrap());
    assert!(etcd.create(LOCK, b"own", Some(&own)).unwrap(), "the answer may have been lost");
    assert!(!etcd.create(LOCK, b"foreign", Some(&foreign)).unwrap());
    etcd.release(LOCK, &foreign).unwrap();
    assert!(!etcd.create(LOCK, b"foreign", Some(&foreign)).unwrap());
    etcd.release(LOCK, &own).unwrap();
    assert!(etcd.create(LOCK, b"foreign", Some(&foreign)).unwrap());
    assert!(etcd.keep_alive(&own).unwrap());
    etcd.revoke(&own).unwrap();
    assert!(!etcd.keep_alive(&own).unwrap());
}

#[test]
fn what_answers_and_is_no_etcd_is_told() {
    let text = pair(&host(), "http://127.0.0.1:1", "test", "192.0.2.1", ENOUGH).unwrap_err().to_string();
    assert!(text.contains("http://127.0.0.1:1/v3/lease/grant"), "{text}");
}

#[test]
fn the_backend_is_a_url_as_tooz_writes_it() {
    let backend = |url: &str, host: &str, port| Backend { url: url.to_owned(), host: host.to_owned(), port };
    for (value, expected) in [
        ("etcd3+http://etcd.example", Some(backend("http://etcd.example:2379", "etcd.example", 2379))),
        ("etcd3+https://10.0.0.1:99?timeout=9", Some(backend("https://10.0.0.1:99", "10.0.0.1", 99))),
        ("etcd3+http://[2001:db8::1]/", Some(backend("http://[2001:db8::1]:2379", "2001:db8::1", 2379))),
        ("etcd3+http://[2001:db8::1]:80", Some(backend("http://[2001:db8::1]:80", "2001:db8::1", 80))),
        ("zookeeper://zk.example:2181", None),
        ("etcd3+http://", None),
        ("etcd3+http://user@host", None),
        ("etcd.example", None),
    ] {
        assert_eq!(Backend::parse(&json!(value)), expected, "{value}");
    }
    let local = backend("http://127.0.0.1:2379", "127.0.0.1", 2379);
    assert_eq!(local.own_address().unwrap(), "127.0.0.1");
}
