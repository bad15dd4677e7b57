//! Checksum files, credentials and proxies.

use crate::deployment::{Deployment, image, serve};
use farrier_imaging::Error;
use farrier_imaging::access::proxies;
use farrier_imaging::pipeline::{ImageRequest, Report, Settings};
use farrier_protocol::image_info::ImageInfo;
use farrier_tests::images::server::{ImageServer, Reply};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// `Basic` with user `ann` and password `secret`.
const BASIC: &str = "authorization: Basic YW5uOnNlY3JldA==\n";

fn digest() -> String {
    hex::encode(Sha256::digest(&*image()))
}

fn text(content: &str) -> Reply {
    Reply::Body(Arc::new(content.as_bytes().to_vec()))
}

/// Deploys the image of a server, with these fields beside its URL.
fn deploy(server: &ImageServer, fields: Value) -> (Deployment, Result<Report, Error>) {
    deploy_from(&server.url(), fields)
}

/// Deploys the image of a URL, with these fields beside it.
fn deploy_from(url: &str, fields: Value) -> (Deployment, Result<Report, Error>) {
    let mut info = fields;
    info["id"] = json!("image.raw");
    info["disk_format"] = json!("raw");
    info["urls"] = json!([url]);
    let info = ImageInfo::from_params(&info).unwrap();
    let deployment = Deployment::new();
    let outcome = ImageRequest::new(&info, Settings::default())
        .and_then(|request| deployment.write_through(&request, proxies(&info).unwrap()));
    (deployment, outcome)
}

#[test]
fn loop_f04_the_digest_is_fetched_from_a_checksum_file() {
    let server = serve(vec![Reply::Body(image())]);
    let listing = format!("{}  other.raw\n{}  ./image.raw\n", "0".repeat(64), digest());
    for content in [digest(), listing] {
        let sums = serve(vec![Reply::Status(503), text(&content)]);
        let fields =
            [json!({"checksum": sums.url()}), json!({"os_hash_algo": "sha256", "os_hash_value": sums.url()})];
        for fields in fields {
            let (deployment, report) = deploy(&server, fields);
            report.unwrap();
            assert!(deployment.content()[..image().len()] == **image());
        }
        assert_eq!(sums.requests(), 3);
    }
}

#[test]
fn loop_f04_d10_a_useless_checksum_file_touches_nothing_and_is_explained() {
    let server = serve(vec![Reply::Body(image())]);
    let foreign = format!("{}  other.raw\n", digest());
    for (reply, expected) in [
        (text(&foreign), "only of other.raw"),
        (text(""), "no line of it"),
        (text("<html>please log in</html>"), "no line of it"),
        (Reply::Body(Arc::new(vec![b'a'; (1 << 20) + 1])), "more than 1048576 bytes"),
        (Reply::Status(404), "404"),
    ] {
        let sums = serve(vec![reply]);
        let (deployment, outcome) = deploy(&server, json!({"checksum": sums.url()}));
        let error = outcome.unwrap_err();
        assert_eq!(error.kind().name(), "ImageDownloadError");
        assert!(error.to_string().contains(expected) && error.to_string().contains(&sums.url()), "{error}");
        deployment.assert_untouched();
    }
    assert_eq!(server.requests(), 0);
}

#[test]
fn loop_s17_s23_image_and_checksum_file_get_the_same_credentials() {
    let server = serve(vec![Reply::Body(image())]);
    let sums = serve(vec![text(&digest())]);
    let basic = json!({"checksum": sums.url(), "image_server_auth_strategy": "http_basic",
        "image_server_user": "ann", "image_server_password": "secret"});
    let supplied = json!({"checksum": sums.url(), "image_request_authorization": "QmVhcmVyIHRva2Vu"});
    for (fields, header) in [(basic, BASIC), (supplied, "authorization: Bearer token\n")] {
        deploy(&server, fields).1.unwrap();
        for asked in [&server, &sums] {
            assert!(asked.heads().last().unwrap().contains(header));
        }
    }
}

#[test]
fn loop_s50_s51_credentials_do_not_follow_a_redirect_to_another_host() {
    let elsewhere = serve(vec![Reply::Body(image())]);
    let server = serve(vec![Reply::Redirect(elsewhere.url())]);
    let fields = json!({"checksum": digest(), "image_server_auth_strategy": "http_basic",
        "image_server_user": "ann", "image_server_password": "secret"});
    deploy(&server, fields.clone()).1.unwrap();
    assert!(server.heads()[0].contains(BASIC));
    assert!(!elsewhere.heads()[0].contains("authorization"), "{}", elsewhere.heads()[0]);

    let mut wrong = (*image()).clone();
    wrong[7] ^= 1;
    let server = serve(vec![Reply::Redirect(serve(vec![Reply::Body(Arc::new(wrong))]).url())]);
    let (deployment, outcome) = deploy(&server, fields);
    let error = outcome.unwrap_err();
    assert_eq!(error.kind().name(), "ImageChecksumError");
    assert!(!error.to_string().contains("secret"), "{error}");
    deployment.assert_unbootable(&error);
}

#[test]
fn loop_the_proxy_is_asked_unless_the_host_is_excepted() {
    let proxy = serve(vec![Reply::Body(image())]);
    let server = serve(vec![Reply::Body(image())]);
    for (no_proxy, expected) in [("192.0.2.0/24", (1, 0)), ("192.0.2.0/24,127.0.0.1", (1, 1))] {
        let fields = json!({"checksum": digest(), "proxies": {"http": proxy.proxy()}, "no_proxy": no_proxy});
        deploy(&server, fields).1.unwrap();
        assert_eq!((proxy.requests(), server.requests()), expected);
    }
    assert!(proxy.heads()[0].starts_with(&format!("GET {} HTTP", server.url())), "{}", proxy.heads()[0]);
}

#[test]
fn loop_a11_an_exception_has_a_port_or_none() {
    let proxy = serve(vec![Reply::Body(image())]);
    let server = serve(vec![Reply::Body(image())]);
    let (port, other) = (server.port(), server.port() ^ 1);
    let by_name = server.url().replace("127.0.0.1", "localhost");
    let mut asked = (0, 0);
    for (no_proxy, url, is_direct) in [
        (format!("127.0.0.1:{port}"), server.url(), true),
        (format!("127.0.0.1:{other}"), server.url(), false),
        (format!("x, LOCALHOST.:{port}"), by_name.clone(), true),
        (format!("localhost:{other}"), by_name.clone(), false),
        (format!("127.0.0.0/8:{port}"), server.url(), true),
        ("*".to_owned(), server.url(), true),
        ("http://127.0.0.1,[::1]".to_owned(), server.url(), false),
    ] {
        let fields = json!({"checksum": digest(), "proxies": {"http": proxy.proxy()}, "no_proxy": no_proxy});
        deploy_from(&url, fields).1.unwrap();
        if is_direct {
            asked.1 += 1
        } else {
            asked.0 += 1
        }
        assert_eq!((proxy.requests(), server.requests()), asked, "{no_proxy} {url}");
    }
}

#[test]
fn loop_a11_a_proxy_is_told_who_asks_and_the_server_is_not() {
    let proxy = serve(vec![Reply::Body(image())]);
    let server = serve(vec![Reply::Body(image())]);
    for (who, header) in [
        ("ann:p%40s%3As%25@", "proxy-authorization: Basic YW5uOnBAczpzJQ==\n"),
        ("ann:p@ss@", "proxy-authorization: Basic YW5uOnBAc3M=\n"),
    ] {
        for scheme in ["http://", ""] {
            let url = format!("{scheme}{who}127.0.0.1:{}", proxy.port());
            deploy(&server, json!({"checksum": digest(), "proxies": {"http": url}})).1.unwrap();
            let head = proxy.heads().pop().unwrap();
            assert!(head.contains(header), "{head}");
        }
    }
    let head = proxy.heads().remove(0);
    assert!(!head.contains("\nauthorization"), "{head}");
    assert_eq!(server.requests(), 0);
}

#[test]
fn loop_a11_users_and_passwords_in_a_url_may_have_any_letter() {
    let server = serve(vec![Reply::Body(image())]);
    for (who, header) in [
        ("ann:p%40s%3As%25@", "authorization: Basic YW5uOnBAczpzJQ==\n"),
        ("ann:p@ss@", "authorization: Basic YW5uOnBAc3M=\n"),
    ] {
        let url = server.url().replace("http://", &format!("http://{who}"));
        deploy_from(&url, json!({"checksum": digest().to_uppercase()})).1.unwrap();
        let head = server.heads().pop().unwrap();
        assert!(head.contains(header), "{head}");
    }
}
