//! Operators, and others who would like to be.

use crate::agent::Script;
use crate::conductor::{Conductor, farrier, has_code};
use crate::site::{PATIENCE, Site};
use reqwest::header::{CONTENT_TYPE, COOKIE, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Method, RequestBuilder, Response, StatusCode, Url};
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub const NOAUTH: [&str; 3] = ["--admin-plain-http", "--auth-strategy", "noauth"];
pub const PASSWORD: &str = "a horse! a horse: my kingdom";

/// A client that knows the conductor's certificate.
pub fn client(certificate: &Path) -> Client {
    let certificate = Certificate::from_pem(&fs::read(certificate).unwrap()).unwrap();
    let builder = Client::builder().timeout(PATIENCE).no_proxy().redirect(Policy::none());
    builder.tls_certs_only([certificate]).build().unwrap()
}

pub fn own_certificate(conductor: &Conductor) -> std::path::PathBuf {
    conductor.state().join("tls/certificate.pem")
}

pub async fn send(request: RequestBuilder) -> Response {
    request.send().await.unwrap()
}

/// Waits until a request is answered with a status.
pub async fn until(status: StatusCode, request: RequestBuilder) {
    let end = Instant::now() + PATIENCE;
    while send(request.try_clone().unwrap()).await.status() != status {
        assert!(Instant::now() < end, "waited for {status}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn process_operators_are_asked_who_they_are_and_ramdisks_are_not() {
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    site.enrol(&conductor);
    let http = client(&own_certificate(&conductor));
    let nodes = format!("{}/v1/nodes", conductor.node_api);
    let reply = send(http.get(&nodes)).await;
    assert_eq!(reply.status(), StatusCode::UNAUTHORIZED);
    let challenges: Vec<_> = reply.headers().get_all("www-authenticate").iter().collect();
    assert!(challenges.iter().any(|challenge| challenge.as_bytes().starts_with(b"Basic realm=")));
    assert!(challenges.iter().any(|challenge| challenge.as_bytes().starts_with(b"Bearer")));

    for (name, role) in [("admin", "admin"), ("watcher", "reader")] {
        let input = format!("{PASSWORD}\n");
        conductor.auth(&["add", name, "--role", role, "--bcrypt-cost", "4"], &input);
    }
    let token = conductor.auth(&["token", "ci", "--role", "admin"], "");
    until(StatusCode::OK, http.get(&nodes).bearer_auth(&token)).await;
    let maintenance = format!("{nodes}/n1/maintenance");
    let metrics = format!("{}/metrics", conductor.node_api);
    for (method, url, watcher, admin) in [
        (Method::GET, &nodes, 200, 200),
        (Method::HEAD, &nodes, 200, 200),
        (Method::GET, &metrics, 200, 200),
        (Method::PUT, &maintenance, 403, 202),
        (Method::DELETE, &maintenance, 403, 202),
        (Method::POST, &nodes, 403, 400),
    ] {
        let request = || http.request(method.clone(), url);
        let status_of = async |request: RequestBuilder| send(request).await.status().as_u16();
        assert_eq!(
            status_of(request().basic_auth("watcher", Some(PASSWORD))).await,
            watcher,
            "{method} {url}"
        );
        assert_eq!(status_of(request().basic_auth("admin", Some(PASSWORD))).await, admin, "{method} {url}");
        assert_eq!(status_of(request().bearer_auth(&token)).await, admin, "{method} {url}");
        assert_eq!(status_of(request().header("X-Auth-Token", &token)).await, admin, "{method} {url}");
        for stranger in [
            request().basic_auth("admin", Some("wrong")),
            request().basic_auth("admin", Some("x".repeat(8 << 10))),
            request().basic_auth("nobody", Some(PASSWORD)),
            request().bearer_auth("wrong"),
            request().header("Authorization", "Digest x"),
            request().header("Authorization", "Basic !"),
            request().header("Authorization", ""),
        ] {
            let status = status_of(stranger).await;
            assert!([401, 429].contains(&status), "{status} {method} {url}");
        }
    }
    for path in ["", "/v1"] {
        let status = send(http.get(format!("{}{path}", conductor.node_api))).await.status();
        assert_ne!(status, StatusCode::UNAUTHORIZED, "{path}");
    }
    let lookup = format!("{}/v1/lookup?addresses=x", conductor.ramdisk_api);
    let lookup = http.get(lookup).header("X-OpenStack-Ironic-API-Version", "1.62");
    assert_eq!(send(lookup).await.status(), StatusCode::BAD_REQUEST);

    conductor.auth(&["remove", "ci"], "");
    until(StatusCode::UNAUTHORIZED, http.get(&nodes).bearer_auth(&token)).await;
    let log = conductor.log();
    for secret in [PASSWORD, &token, "a horse", "YWRtaW4", "$2y$"] {
        assert!(!log.contains(secret), "{log}");
    }
    assert!(log.contains("by=\"admin\" method=PUT"), "{log}");
}

/// The value of the field of this name that a page has first.
fn field(page: &str, name: &str) -> String {
    let found = page.split_once(&format!("name=\"{name}\" value=\""));
    let (_, rest) = found.unwrap_or_else(|| panic!("{name}: {page}"));
    rest.split('"').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn process_operators_sign_in_to_the_page_with_their_names_and_roles() {
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    site.enrol(&conductor);
    let http = client(&own_certificate(&conductor));
    for (name, role) in [("admin", "admin"), ("watcher", "reader")] {
        conductor.auth(&["add", name, "--role", role, "--bcrypt-cost", "4"], &format!("{PASSWORD}\n"));
        let nodes = http.get(format!("{}/v1/nodes", conductor.node_api));
        until(StatusCode::OK, nodes.basic_auth(name, Some(PASSWORD))).await;
    }
    let get = async |path: &str, cookie: &str| {
        send(http.get(format!("{}{path}", conductor.node_api)).header(COOKIE, cookie)).await
    };
    let post = async |path: &str, cookie: &str, origin: &str, fields: &[(&str, &str)]| {
        let body = Url::parse_with_params("http://x", fields).unwrap().query().unwrap().to_owned();
        let request = http.post(format!("{}{path}", conductor.node_api)).body(body).header(ORIGIN, origin);
        send(request.header(CONTENT_TYPE, "application/x-www-form-urlencoded").header(COOKIE, cookie)).await
    };
    for (name, expected) in [("admin", StatusCode::SEE_OTHER), ("watcher", StatusCode::FORBIDDEN)] {
        let form = get("/page/", "").await;
        assert_eq!(form.status(), StatusCode::UNAUTHORIZED);
        let cookie = form.headers()[SET_COOKIE].to_str().unwrap().to_owned();
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Secure"), "{cookie}");
        let token = field(&form.text().await.unwrap(), "form_token");
        let fields = [("form_token", token.as_str()), ("user", name), ("password", PASSWORD)];
        let elsewhere = post("/page/sign-in", &cookie, "https://evil.example", &fields).await;
        assert_eq!(elsewhere.status(), StatusCode::FORBIDDEN);
        let answer = post("/page/sign-in", &cookie, &conductor.node_api, &fields).await;
        assert_eq!(
            (answer.status(), &answer.headers()[LOCATION]),
            (StatusCode::SEE_OTHER, &"/page/".parse().unwrap())
        );
        let cookie = answer.headers()[SET_COOKIE].to_str().unwrap().to_owned();
        assert!(get("/page/", &cookie).await.text().await.unwrap().contains("<bdi>n1</bdi>"));
        let node = get("/page/nodes/n1", &cookie).await.text().await.unwrap();
        let (token, seen) = (field(&node, "form_token"), field(&node, "seen"));
        let fields = [("form_token", token.as_str()), ("seen", &seen), ("reason", "a new fan")];
        let answer = post("/page/nodes/n1/orders/maintenance", &cookie, &conductor.node_api, &fields).await;
        assert_eq!(answer.status(), expected, "{name}");
    }
    assert_eq!(site.record().await.node.maintenance_reason.as_deref(), Some("a new fan"));
    let log = conductor.log();
    assert!(log.contains("by=\"admin\" method=POST path=\"/page/nodes/n1/orders/maintenance\""), "{log}");
    assert!(!log.contains(PASSWORD) && !log.contains("a horse"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn process_a_crowd_that_never_says_anything_keeps_no_operator_and_no_ramdisk_out() {
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    let address = conductor.node_api.strip_prefix("https://").unwrap();
    // More than there are places.
    let crowd: Vec<_> = (0..300).map(|_| TcpStream::connect(address).unwrap()).collect();
    site.enrol(&conductor);
    conductor.order(&["node", "list"]);
    drop(crowd);
}

#[tokio::test(flavor = "multi_thread")]
async fn process_commands_say_what_to_do_when_they_are_not_let_in() {
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    conductor.auth(&["add", "watcher", "--role", "reader", "--bcrypt-cost", "4"], PASSWORD);
    let certificate = own_certificate(&conductor);
    let ca = ("FARRIER_CA", certificate.to_str().unwrap());
    let user = ("FARRIER_USERNAME", "watcher");
    let http = client(&certificate);
    let nodes = format!("{}/v1/nodes", conductor.node_api);
    until(StatusCode::OK, http.get(&nodes).basic_auth("watcher", Some(PASSWORD))).await;
    let standalone =
        [("OS_AUTH_TYPE", "http_basic"), ("OS_USERNAME", "watcher"), ("OS_PASSWORD", PASSWORD), ca];
    for (arguments, variables, expected) in [
        (&["node", "list"][..], &standalone[..], None),
        (&["node", "list"], &[ca, user, ("FARRIER_PASSWORD", PASSWORD)], None),
        (&["node", "list"], &[], Some("is not trusted: its certificate is not trusted")),
        (&["node", "list"], &[], Some("give it as --fingerprint")),
        (&["node", "list"], &[ca], Some("the conductor requires credentials: set FARRIER_TOKEN")),
        (&["node", "list"], &[ca, ("FARRIER_TOKEN", "secret")], Some("rejects these credentials")),
        (&["node", "list"], &[ca, user, ("FARRIER_PASSWORD", "secret")], Some("rejects these credentials")),
        (&["node", "list"], &[("FARRIER_FINGERPRINT", &"0".repeat(64))], Some("was expected")),
        (
            &["node", "delete", "n1"],
            &standalone,
            Some("the conductor does not allow this: watcher has the role reader"),
        ),
        (
            &["node", "list", "--url", &conductor.ramdisk_api.replace("http", "https")],
            &[],
            Some("does not use TLS: use http://"),
        ),
        (&["node", "list", "--url", &conductor.node_api.replace("https", "http")], &[], Some("use https://")),
        (&["node", "list", "--url", "ftp://conductor"], &[], Some("does not begin with https://")),
        (&["node", "list", "--credentials", "/proc/none"], &[], Some("/proc/none")),
        (&["node", "list", "--ca", "/dev/null"], &[], Some("it has no certificate in PEM format")),
        (&["node", "show", "nobody"], &standalone, Some("node \"nobody\" does not exist")),
        (&["logs", "nobody", "--fetch", "latest"], &standalone, Some("node \"nobody\" does not exist")),
    ] {
        let (is_success, said) = conductor.stranger(arguments, variables).ends();
        assert_eq!(is_success, expected.is_none(), "{arguments:?} {variables:?}: {said}");
        assert!(said.contains(expected.unwrap_or_default()), "{expected:?}: {said}");
        assert!(!said.contains("secret") && said.lines().count() <= 1, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn process_a_renewed_certificate_is_shown_without_a_restart() {
    let site = Site::new(Script::default()).await;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let renew = || {
        let key = rcgen::KeyPair::generate().unwrap();
        let parameters = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        fs::write(path("key.pem"), key.serialize_pem()).unwrap();
        fs::write(path("cert.pem"), parameters.self_signed(&key).unwrap().pem()).unwrap();
    };
    renew();
    let (cert, key) = (path("cert.pem"), path("key.pem"));
    let files = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let conductor = site.conductor_with("c1", "127.0.0.1:0", &files);
    let before = client(&cert);
    assert_eq!(send(before.get(format!("{}/v1/nodes", conductor.node_api))).await.status(), 401);
    renew();
    conductor.signal(nix::sys::signal::Signal::SIGHUP);
    let after = client(&cert);
    let end = Instant::now() + PATIENCE;
    while after.get(format!("{}/v1/nodes", conductor.node_api)).send().await.is_err() {
        assert!(Instant::now() < end, "{}", conductor.log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    fs::write(&cert, "garbled").unwrap();
    conductor.signal(nix::sys::signal::Signal::SIGHUP);
    conductor.says("has no certificate in PEM format").await;
    assert_eq!(send(after.get(format!("{}/v1/nodes", conductor.node_api))).await.status(), 401);
    assert!(!conductor.state().join("tls").exists(), "no other certificate was made");
}

/// Who reloads a service does not wait until it has started.
#[test]
fn process_a_conductor_that_starts_is_not_ended_by_a_reload() {
    let folder = tempfile::tempdir().unwrap();
    let conductor = Conductor::begin(folder.path(), "c1", &["--listen", "127.0.0.1:0"]);
    let end = Instant::now() + PATIENCE;
    while !conductor.state().exists() {
        assert!(Instant::now() < end, "{}", conductor.log());
        std::thread::sleep(Duration::from_millis(1));
    }
    conductor.signal(nix::sys::signal::Signal::SIGHUP);
    conductor.listening();
}

#[test]
fn process_a_conductor_that_cannot_be_protected_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path().join(name).to_str().unwrap().to_owned()
    };
    let (garbled, operators) = (file("garbled.pem", "x"), file("operators", "# mine\nadmin:secret\n"));
    for (arguments, expected) in [
        (
            &["--tls-cert", &garbled, "--tls-key", &garbled][..],
            "garbled.pem has no certificate in PEM format",
        ),
        (&["--tls-cert", "/nonexistent", "--tls-key", &garbled], "/nonexistent cannot be read"),
        (&["--ramdisk-tls-cert", &garbled, "--ramdisk-tls-key", &garbled], "garbled.pem has no certificate"),
        (&["--auth-file", &operators], "line 2 of the operators file"),
        (&["--tftp-listen", "192.0.2.1:69"], "--tftp-listen 192.0.2.1:69 cannot be used"),
        (
            &["--database", "/proc/none/db", "--admin-plain-http", "--auth-strategy", "noauth"],
            "/proc/none/db",
        ),
        (&["--enabled-network-interfaces", "neutron"], "needs --provisioning-network"),
        (
            &["--admin-listen", "0.0.0.0:0", "--admin-plain-http"],
            "would send passwords over the network in clear",
        ),
        (
            &["--admin-listen", "0.0.0.0:0", "--auth-strategy", "noauth"],
            "would let every host on the network",
        ),
        (
            &["--admin-plain-http", "--auth-strategy", "noauth", "--enabled-hardware-types", "manual,qemu"],
            "would let machines of the hardware type qemu operate the conductor",
        ),
    ] {
        let mut command = farrier();
        command.args(["serve", "--listen", "127.0.0.1:0", "--state-dir"]).arg(folder.path());
        let output = command.args(arguments).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(expected), "{expected}: {said}");
        assert!(has_code(&said), "{said}");
        assert!(!said.contains("secret") && said.lines().count() == 1, "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn process_without_tls_and_operators_every_user_of_this_host_may_do_everything() {
    let site = Site::new(Script::default()).await;
    let conductor = site.conductor_with(
        "c1",
        "127.0.0.1:0",
        &[&NOAUTH[..], &["--enabled-hardware-types", "manual"]].concat(),
    );
    assert!(conductor.node_api.starts_with("http://"));
    let (is_success, said) = conductor.stranger(&["node", "list"], &[]).ends();
    assert!(is_success, "{said}");
    assert!(!conductor.state().join("token").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn process_ramdisks_are_served_over_tls_where_that_is_asked_for() {
    let site = Site::new(Script::default()).await;
    let first = site.conductor("c1", "127.0.0.1:0");
    let (cert, key) = (own_certificate(&first), first.state().join("tls/key.pem"));
    let files = ["--ramdisk-tls-cert", cert.to_str().unwrap(), "--ramdisk-tls-key", key.to_str().unwrap()];
    let second = site.conductor_with(
        "c2",
        "127.0.0.1:0",
        &[&files[..], &["--enable-ramdisk-endpoints", "false"]].concat(),
    );
    assert!(second.ramdisk_api.starts_with("https://"));
    let http = client(&cert);
    for (path, status) in [("", 200), ("/v1", 200), ("/v1/lookup?addresses=x", 403)] {
        let reply = send(http.get(format!("{}{path}", second.ramdisk_api))).await;
        assert_eq!(reply.status(), status, "{path}");
    }
    let root: serde_json::Value = send(http.get(&second.ramdisk_api)).await.json().await.unwrap();
    assert!(root["default_version"]["links"][0]["href"].as_str().unwrap().starts_with("https://127.0.0.1:"));
}
