//! The one HTTP client against a server of a private authority (S17).

use crate::agent::Agent;
use crate::api::server;
use crate::commands::allowance::Allowance;
use crate::conductor::client::ConductorClient;
use crate::network::http;
use crate::settings::options::{Options, TlsVersion};
use axum::Router;
use axum::routing::get;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use serde_json::json;
use std::future::pending;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority() -> Authority {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate of the authority and its key.
fn issue(authority: &Authority, name: &str) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.signed_by(&key, authority).unwrap(), key)
}

type Versions = &'static [&'static SupportedProtocolVersion];

/// A server that shows a certificate for `name` and, if asked to, wants one of its clients.
fn serve(authority: &Authority, name: &str, wants_certificate: bool, versions: Versions) -> SocketAddr {
    let (certificate, key) = issue(authority, name);
    serve_certificate(certificate, &key, wants_certificate.then_some(authority), versions)
}

/// A server that shows this certificate and wants one of `clients`, if that is given.
fn serve_certificate(
    certificate: rcgen::Certificate,
    key: &KeyPair,
    clients: Option<&Authority>,
    versions: Versions,
) -> SocketAddr {
    http::install_tls_provider();
    let builder = ServerConfig::builder_with_protocol_versions(versions);
    let builder = if let Some(authority) = clients {
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).unwrap();
        builder.with_client_cert_verifier(WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let config = builder
        .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().unwrap())
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(async || "here"));
    tokio::spawn(server::serve(listener, Some(config), router, Allowance::of_machine(), pending()));
    address
}

async fn reaches(options: &Options, address: SocketAddr) -> bool {
    let reply = http::client(options).unwrap().get(format!("https://{address}/")).send().await;
    reply.is_ok_and(|reply| reply.status() == 200)
}

#[tokio::test]
async fn s17_servers_are_verified_with_the_authority_of_cafile() {
    let (known, stranger) = (authority(), authority());
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("known.pem"), known.pem()).unwrap();
    std::fs::write(path("damaged.pem"), "no certificate").unwrap();
    for (authority, name, cafile, insecure, expected) in [
        (&known, "127.0.0.1", Some("known.pem"), false, true),
        (&known, "192.0.2.1", Some("known.pem"), false, false),
        (&stranger, "127.0.0.1", Some("known.pem"), false, false),
        (&known, "127.0.0.1", None, false, false),
        (&known, "127.0.0.1", Some("damaged.pem"), false, false),
        (&known, "127.0.0.1", Some("absent.pem"), false, false),
        (&stranger, "192.0.2.1", None, true, true),
    ] {
        let address = serve(authority, name, false, super::versions(TlsVersion::V1_2));
        let options = Options { cafile: cafile.map(path), insecure, ..Options::default() };
        assert_eq!(reaches(&options, address).await, expected, "{name} {cafile:?} insecure={insecure}");
    }
}

#[tokio::test]
async fn a11_a_bundle_of_authorities_may_have_comments_and_a_damaged_certificate() {
    let (known, other) = (authority(), authority());
    let directory = tempfile::tempdir().unwrap();
    let damaged = "-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n";
    let foreign = "-----BEGIN TRUSTED CERTIFICATE-----\nAAAA\n-----END TRUSTED CERTIFICATE-----\n";
    let (own, before) = (known.pem(), other.pem());
    for (number, bundle) in [
        format!("\u{feff}# Authorit\u{e9}s\nsubject=CN = known\n{before}\n\n# known\n{own}"),
        own.replace('\n', "\r\n"),
        format!("{damaged}{own}"),
        format!("{foreign}{own}{damaged}"),
        format!("{own}-----BEGIN CERTIFICATE-----\nAAAA\n"),
    ]
    .into_iter()
    .enumerate()
    {
        let file = directory.path().join(format!("{number}.pem"));
        std::fs::write(&file, bundle).unwrap();
        let address = serve(&known, "127.0.0.1", false, super::versions(TlsVersion::V1_2));
        let options = Options { cafile: Some(file.to_str().unwrap().to_owned()), ..Options::default() };
        assert!(reaches(&options, address).await, "bundle {number}");
    }
}

#[tokio::test]
async fn s17_the_client_shows_its_certificate() {
    let authority = authority();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (certificate, key) = issue(&authority, "agent");
    std::fs::write(path("ca.pem"), authority.pem()).unwrap();
    std::fs::write(path("agent.pem"), certificate.pem()).unwrap();
    std::fs::write(path("agent.key"), key.serialize_pem()).unwrap();
    let address = serve(&authority, "127.0.0.1", true, super::versions(TlsVersion::V1_3));
    for (certfile, keyfile, expected) in [
        (Some("agent.pem"), Some("agent.key"), true),
        (Some("agent.pem"), None, false),
        (Some("agent.pem"), Some("absent.key"), false),
        (None, None, false),
    ] {
        let (certfile, keyfile) = (certfile.map(path), keyfile.map(path));
        let options = Options { cafile: Some(path("ca.pem")), certfile, keyfile, ..Options::default() };
        assert_eq!(
            reaches(&options, address).await,
            expected,
            "{:?} {:?}",
            options.certfile,
            options.keyfile
        );
    }
}

#[tokio::test]
async fn s15_clients_follow_the_tls_settings_of_the_lookup() {
    let authority = authority();
    let root = tempfile::tempdir().unwrap();
    let cafile = root.path().join("ca.pem");
    std::fs::write(&cafile, authority.pem()).unwrap();
    static OLD: [&SupportedProtocolVersion; 1] = [&version::TLS12];
    static NEW: [&SupportedProtocolVersion; 1] = [&version::TLS13];
    let old = serve(&authority, "127.0.0.1", false, &OLD);
    let new = serve(&authority, "127.0.0.1", false, &NEW);
    let kernel = [("ipa-api-url".to_owned(), format!("https://{old}"))].into();
    let (options, _) = Options::load(&kernel, &Default::default());
    let options = Options { cafile: cafile.to_str().map(str::to_owned), ..options };
    let agent = Agent::new(options, root.path(), tokio::runtime::Handle::current()).unwrap();
    let client = agent.conductor.as_ref().unwrap();
    let get = async |address| agent.http.get(format!("https://{address}/")).send().await.is_ok();
    assert!(get(old).await && get(new).await);
    let lookup = async || client.lookup(&[], None).await.unwrap_err().to_string();
    assert!(lookup().await.contains("404"), "{}", lookup().await);
    let config = json!({"heartbeat_timeout": 300, "tls_min_version": "1.3"});
    assert!(agent.accept(&serde_json::from_value(config).unwrap()));
    assert!(!get(old).await && get(new).await);
    assert!(lookup().await.contains("cannot be reached"), "{}", lookup().await);
}

/// A server whose certificate is valid for two hours that begin so many hours from now.
fn serve_from(authority: &Authority, hours: i64) -> SocketAddr {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.not_before = time::OffsetDateTime::now_utc() + time::Duration::hours(hours);
    params.not_after = params.not_before + time::Duration::hours(2);
    let certificate = params.signed_by(&key, authority).unwrap();
    serve_certificate(certificate, &key, None, super::versions(TlsVersion::V1_2))
}

#[tokio::test]
async fn s16_a_certificate_that_does_not_match_says_what_to_do() {
    let (known, stranger) = (authority(), authority());
    let root = tempfile::tempdir().unwrap();
    let cafile = root.path().join("ca.pem");
    std::fs::write(&cafile, known.pem()).unwrap();
    let versions = super::versions(TlsVersion::V1_2);
    for (address, todo) in [
        (serve_from(&known, 1), "ipa-ntp-server"),
        (serve_from(&known, -3), "ipa-ntp-server"),
        (serve(&stranger, "127.0.0.1", false, versions), "give cafile"),
        (serve(&known, "192.0.2.1", false, versions), "another name"),
        (serve(&known, "127.0.0.1", true, versions), "client certificates"),
    ] {
        let url = format!("https://{address}");
        let kernel = [("ipa-api-url".to_owned(), url.clone())].into();
        let (options, _) = Options::load(&kernel, &Default::default());
        let options = Options { cafile: cafile.to_str().map(str::to_owned), ..options };
        let client = ConductorClient::new(&options, http::client(&options).unwrap()).unwrap();
        let text = client.lookup(&[], None).await.unwrap_err().to_string();
        assert!(text.contains(todo) && text.contains(&url), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}
