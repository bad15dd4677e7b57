use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A client of an agent that answers every request so, and its URL.
async fn answering(head: &'static str, body: Vec<u8>) -> (AgentClient, String) {
    // Another test may have done so.
    rustls::crypto::ring::default_provider().install_default().ok();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            assert_ne!(connection.read(&mut [0; 4096]).await.unwrap(), 0);
            connection
                .write_all(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n").as_bytes())
                .await
                .unwrap();
            connection.write_all(&body).await.ok();
        }
    });
    let session = AgentSession { agent_url: Some(url.clone()), ..AgentSession::default() };
    (AgentClient::new(&session, &AgentSettings::default()).unwrap(), url)
}

async fn listing(client: &AgentClient) -> Result<CommandResult, AgentError> {
    client.execute("clean.get_clean_steps", json!({}), Wait::UntilAccepted).await
}

fn result(value: &str) -> String {
    format!(
        r#"{{"id": "{}", "command_name": "x", "command_status": "SUCCEEDED", "command_error": null, "command_result": {value}}}"#,
        uuid::Uuid::nil()
    )
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_kept() {
    let (client, url) = answering("200 OK", vec![b' '; 2 << 20]).await;
    let expected = format!(
        "the agent at {url} sent an unexpected response to clean.get_clean_steps: it has more than 1 MiB"
    );
    assert_eq!(listing(&client).await.unwrap_err().to_string(), expected);
}

#[tokio::test]
async fn n02_an_answer_is_limited_by_its_values() {
    for (value, said) in [
        (format!("[{}]", vec!["{\"\":0}"; 40_000].join(",")), "bytes of memory"),
        (format!("{}{}", "[".repeat(65), "]".repeat(65)), "levels deep"),
        (format!("{{\"{}\": 0}}", "n".repeat(2000)), "a key in it has more"),
        ("{\"a\": 0, \"a\": 0}".to_owned(), "repeated"),
    ] {
        let (client, _) = answering("200 OK", result(&value).into_bytes()).await;
        let error = listing(&client).await.unwrap_err().to_string();
        assert!(error.contains("unexpected response") && error.contains(said), "{error}");
        let (client, _) =
            answering("200 OK", format!("{{\"commands\": [{}]}}", result(&value)).into_bytes()).await;
        assert!(client.commands().await.unwrap_err().to_string().contains(said), "{said}");
    }
}

#[tokio::test]
async fn e15_a_result_in_the_list_of_commands_is_as_short_as_one_alone() {
    let long = result(&format!("\"{}\"", "x".repeat(1 << 20)));
    let (client, _) = answering("200 OK", format!("{{\"commands\": [{long}]}}").into_bytes()).await;
    let error = client.commands().await.unwrap_err().to_string();
    assert!(error.contains("a command in it has more than 1 MiB"), "{error}");
    // Many short ones may be more than that.
    let short = result(&format!("\"{}\"", "x".repeat(1 << 16)));
    let body = format!("{{\"commands\": [{}]}}", vec![short; 30].join(","));
    let (client, _) = answering("200 OK", body.into_bytes()).await;
    assert_eq!(client.commands().await.unwrap().len(), 30);
}

#[tokio::test]
async fn e15_logs_may_be_long_and_are_no_value() {
    let logs = "AAAA".repeat(1 << 20);
    let (client, _) =
        answering("200 OK", result(&format!("{{\"system_logs\": \"{logs}\"}}")).into_bytes()).await;
    assert_eq!(client.collect_system_logs().await.unwrap().map(|archive| archive.len()), Some(3 << 20));
    // Without a request for them nothing is kept.
    let left = listing(&client).await.unwrap().command_result.unwrap();
    assert_eq!(left, json!({"system_logs": ""}));
}

#[tokio::test]
async fn e15_no_redirect_is_followed() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let head: &'static str =
        format!("307 Temporary Redirect\r\nLocation: http://{}/", elsewhere.local_addr().unwrap()).leak();
    let (client, _) = answering(head, Vec::new()).await;
    let error = listing(&client).await.unwrap_err();
    assert!(matches!(error, AgentError::Refused { status: 307, .. }), "{error}");
    assert!(client.commands().await.is_err());
    let asked = tokio::time::timeout(std::time::Duration::from_millis(100), elsewhere.accept()).await;
    assert!(asked.is_err(), "it was asked elsewhere");
}

#[tokio::test]
async fn f36_an_agent_is_told_which_conductor_asks() {
    rustls::crypto::ring::default_provider().install_default().ok();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let session = AgentSession { agent_url: Some(url), ..AgentSession::default() };
    let settings = AgentSettings {
        user_agent: crate::agent::UserAgent::new("farrier/1", "rack-1"),
        max_command_attempts: 1,
        ..AgentSettings::default()
    };
    let client = AgentClient::new(&session, &settings).unwrap();
    let heard = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut head = vec![0; 4096];
        let count = connection.read(&mut head).await.unwrap();
        String::from_utf8_lossy(&head[..count]).to_lowercase()
    };
    let (_, head) = tokio::join!(client.commands(), heard);
    assert!(head.contains("\r\nuser-agent: farrier/1 (rack-1)\r\n"), "{head}");
}
