//! Section 1.7 of the contract: how the interface ends.

use super::test_server::{DEADLINE, Server, TOKEN};
use farrier_init::lockdown::Stopped;
use serde_json::{Value, json};
use std::fs;
use tokio::net::TcpStream;

/// The reply arrives, then nobody is served any more.
async fn assert_ends(server: Server, how: Stopped) {
    assert_eq!(tokio::time::timeout(DEADLINE, server.agent.until_stopped()).await.unwrap(), how);
    tokio::time::timeout(DEADLINE, server.ended).await.unwrap().unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
    assert_eq!(Stopped::marked(&server.agent.root), Some(how), "the next process of this boot knows it");
}

#[tokio::test]
async fn s20_a_lockdown_ends_the_interface_after_its_reply() {
    let server = Server::start();
    let reply = server.command("system.lockdown", json!({}), "false").await;
    assert_eq!((reply.status, &reply.body["command_status"]), (200, &json!("SUCCEEDED")));
    assert_eq!(reply.body["command_result"], Value::Null);
    assert_ends(server, Stopped::LockedDown).await;
}

#[tokio::test]
async fn s20_a_rescue_ends_the_interface_after_its_reply() {
    let server = Server::start();
    let directory = server.root.path().join("etc/ipa-rescue-config");
    let hash = format!("$6$salt${}", "a".repeat(86));
    for (prepared, password, status) in
        [(false, hash.as_str(), "FAILED"), (true, "$1$old$hash", "FAILED"), (true, &hash, "SUCCEEDED")]
    {
        if prepared {
            fs::create_dir_all(&directory).unwrap();
        }
        let params = json!({"rescue_password": password, "hashed": true});
        let reply = server.command("rescue.finalize_rescue", params, "false").await;
        assert_eq!((reply.status, &reply.body["command_status"]), (200, &json!(status)), "{password}");
        assert_eq!(reply.body["command_name"], "finalize_rescue");
        let is_rescued = server.root.path().join("etc/.rescued").exists();
        assert_eq!(is_rescued, status == "SUCCEEDED", "{password}");
    }
    assert_eq!(fs::read_to_string(directory.join("ipa-rescue-password")).unwrap(), hash);
    assert_ends(server, Stopped::Rescued).await;
}

#[tokio::test]
async fn x46_a_password_that_takes_long_to_hash_is_refused_at_once() {
    let server = Server::start();
    for hashed in [true, false] {
        let params = json!({"rescue_password": "x".repeat(100 << 10), "hashed": hashed});
        let reply = server.command("rescue.finalize_rescue", params, "false").await;
        assert_eq!(reply.status, 400);
        let text = reply.body["faultstring"].as_str().unwrap();
        assert!(text.starts_with("Invalid command parameters: ") && text.contains("at most 511"), "{text}");
    }
    let list = server.get(&format!("/v1/commands/?agent_token={TOKEN}")).await.body;
    assert_eq!(list, json!({"commands": []}), "nothing was begun");
}

#[tokio::test]
async fn s20_a_running_reply_is_finished_before_the_interface_ends() {
    let server = Server::start();
    let release = server.hold();
    let held = server.command("test.hold", json!({}), "true");
    let stopping = async {
        server.wait_until_running().await;
        // Another way to stop than by a command, which would be refused as busy.
        server.agent.stop_serving(Stopped::Rescued);
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        release.send(()).unwrap();
    };
    let (reply, ()) = tokio::join!(held, stopping);
    assert_eq!(reply.body["command_result"], json!({"result": "hold: released"}));
    assert_ends(server, Stopped::Rescued).await;
}
