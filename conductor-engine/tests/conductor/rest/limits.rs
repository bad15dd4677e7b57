//! Bodies that nobody takes.

use super::names;
use crate::stand_ins::agent::Script;
use crate::stand_ins::operator::{ask, get};
use crate::stand_ins::stage::{PATIENCE, Stage, fault};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn bodies_that_are_too_long_or_too_deep_are_refused_with_one_clear_error() {
    let stage = Stage::new(Script::default()).await;
    let deep = format!("{}{}", "[".repeat(30), "]".repeat(30));
    let body = json!({"driver": "fake", "extra": {"deep": serde_json::from_str::<Value>(&deep).unwrap()}});
    let reply = ask(&stage, Method::POST, "/v1/nodes", &body).await;
    assert_eq!(reply.status(), 400);
    assert!(fault(reply).await.contains("25 levels"));
    // What is announced is refused before it is sent.
    let address = stage.node_api.strip_prefix("http://").unwrap();
    for (path, length, part) in [
        ("/v1/nodes", (1 << 20) + 1, "1048576 bytes"),
        ("/v1/nodes", 100 << 20, "1048576 bytes"),
        ("/v1/nodes/n1/states/provision", 100 << 20, "100663296 bytes"),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("error_message"), "{answer}");
        assert!(answer.contains(part), "{answer}");
    }
    assert_eq!(names(&get(&stage, "/v1/nodes").await), ["n1"]);
}
