//! Section 1.6 of the contract, row by row.

use super::contract_tests::assert_fault;
use super::test_server::{DEADLINE, Server, TOKEN};
use serde_json::{Value, json};

#[tokio::test]
async fn while_an_asynchronous_command_runs_others_are_refused_and_reads_answer() {
    let server = Server::start();
    let release = server.hold();
    let running = server.command("test.hold", json!({}), "false").await.body;
    assert_eq!((&running["command_status"], &running["command_result"]), (&json!("RUNNING"), &Value::Null));
    for (command, status, text) in [
        ("test.say", 409, "Agent is busy: executing command hold"),
        ("test.count", 409, "Agent is busy: executing command hold"),
        // Busy is asked before the extension is looked up, and after the name is split.
        ("nosuch.command", 409, "Agent is busy: executing command hold"),
        ("nodot", 400, "Invalid command: "),
    ] {
        assert_fault(&server.command(command, json!({}), "false").await, status, text);
    }
    let list = server.get(&format!("/v1/commands/?agent_token={TOKEN}")).await.body;
    assert_eq!(list, json!({"commands": [running]}));
    let one = format!("/v1/commands/{}?agent_token={TOKEN}", running["id"].as_str().unwrap());
    assert_eq!(server.get(&one).await.body, running);
    let waiting = async { server.get(&format!("{one}&wait=true")).await.body };
    let (finished, ()) = tokio::join!(waiting, async { release.send(()).unwrap() });
    assert_eq!(finished["command_status"], "SUCCEEDED");
    assert_eq!(finished["command_result"], json!({"result": "hold: released"}));
    assert_eq!(server.command("test.count", json!({}), "true").await.status, 200);
}

#[tokio::test]
async fn only_true_means_wait() {
    let server = Server::start();
    for word in ["1", "yes", "false", "", "tru"] {
        let release = server.hold();
        let reply = server.command("test.hold", json!({}), word).await.body;
        assert_eq!(reply["command_status"], "RUNNING", "wait={word}");
        release.send(()).unwrap();
        let one = format!("/v1/commands/{}?wait=TRUE&agent_token={TOKEN}", reply["id"].as_str().unwrap());
        assert_eq!(server.get(&one).await.body["command_status"], "SUCCEEDED");
    }
    for word in ["true", "True", "TRUE"] {
        let reply = server.command("test.say", json!({}), word).await.body;
        assert_eq!(reply["command_status"], "SUCCEEDED", "wait={word}");
    }
}

#[tokio::test]
async fn a_second_command_waits_for_a_synchronous_one() {
    let server = Server::start();
    let release = server.hold();
    let held = server.command("test.hold_sync", json!({}), "false");
    let second = async {
        server.wait_until_running().await;
        let second = server.command("test.count", json!({}), "false");
        tokio::pin!(second);
        tokio::select! {
            reply = &mut second => panic!("answered too early: {reply:?}"),
            () = until_answered(&server) => {}
        }
        release.send(()).unwrap();
        second.await
    };
    let (held, second) = tokio::join!(held, second);
    assert_eq!(held.body["command_result"], json!({"result": "released"}));
    assert_eq!((second.status, &second.body["command_result"]), (200, &json!([1, 2])));
}

#[tokio::test]
async fn the_end_of_an_asynchronous_command_forces_a_heartbeat_and_of_a_synchronous_one_does_not() {
    let server = Server::start();
    for (command, expected) in [
        ("test.count", false),
        ("test.fail_sync", false),
        ("test.say", true),
        ("test.fail", true),
        ("test.defect", true),
    ] {
        server.command(command, json!({}), "true").await;
        let wanted = server.agent.heartbeat_wanted.notified();
        let is_wanted = match expected {
            true => tokio::time::timeout(DEADLINE, wanted).await.is_ok(),
            // The reply of a synchronous command is sent when everything about it is over.
            false => futures_util::FutureExt::now_or_never(wanted).is_some(),
        };
        assert_eq!(is_wanted, expected, "{command}");
    }
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_cut_a_command_short() {
    let server = Server::start();
    let release = server.hold();
    {
        let held = server.command("test.hold_sync", json!({}), "true");
        tokio::select! {
            reply = held => panic!("answered too early: {reply:?}"),
            () = server.wait_until_running() => {}
        }
    }
    release.send(()).unwrap();
    let next = server.command("test.count", json!({}), "true").await;
    assert_eq!(next.status, 200);
    let list = server.get(&format!("/v1/commands/?agent_token={TOKEN}")).await.body;
    assert_eq!(list["commands"][0]["command_status"], "SUCCEEDED");
}

/// Time in which a command that does not wait would have been answered: some further requests are.
async fn until_answered(server: &Server) {
    for _ in 0..20 {
        assert_eq!(server.get("/v1/status").await.status, 200);
    }
}
