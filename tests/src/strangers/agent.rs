//! An agent in the hands of a stranger: it has the token of its node, and answers the conductor with what it likes.

use super::conductor::{Victim, request};
use anyhow::{Context, Result, bail};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Longest time for a node to reach a state.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// Options of `farrier serve` for nodes whose machine nobody has to switch.
pub fn options(folder: &str) -> [&str; 4] {
    ["--enabled-hardware-types", "manual", "--file-url-allowed-paths", folder]
}

/// Has the node of a number wait for the agent of its cleaning, which calls and answers every request with `result`, the
/// value of a command as JSON. Returns what the node's failure says.
///
/// # Errors
///
/// The node does not get so far.
pub fn answer(victim: &Victim, folder: &Path, number: usize, result: &str) -> Result<String> {
    let (name, mac) = (format!("n{number}"), format!("52:54:00:00:01:{number:02x}"));
    let node = waiting(victim, folder, &name, &mac)?;
    let found = request(victim.ramdisk, "GET", &format!("/v1/lookup?addresses={mac}"), "")?;
    let (_, found) = found.split_once(' ').context("no answer to a lookup")?;
    let found: Value = serde_json::from_str(found).with_context(|| format!("no lookup: {found}"))?;
    let token = found["config"]["agent_token"].as_str().context("no token")?;
    let (url, certificate) = serve(result)?;
    let heartbeat = json!({
        "callback_url": url, "agent_token": token, "agent_version": "1", "agent_verify_ca": certificate,
    });
    let heard = request(victim.ramdisk, "POST", &format!("/v1/heartbeat/{node}"), &heartbeat.to_string())?;
    if !heard.starts_with("202") {
        bail!("the heartbeat is refused: {heard}");
    }
    let node = until(victim, &name, "clean failed")?;
    Ok(node["last_error"].as_str().unwrap_or_default().to_owned())
}

/// The identity of a node that waits for the agent of its cleaning.
fn waiting(victim: &Victim, folder: &Path, name: &str, mac: &str) -> Result<String> {
    let (kernel, ramdisk) = (folder.join("kernel"), folder.join("ramdisk"));
    fs::write(&kernel, "kernel")?;
    fs::write(&ramdisk, "ramdisk")?;
    let url = |file: &Path| format!("file://{}", file.display());
    let new = json!({
        "name": name, "driver": "manual",
        "driver_info": {"deploy_kernel": url(&kernel), "deploy_ramdisk": url(&ramdisk)},
    });
    let created = victim.operators().request("POST", "/v1/nodes", Some(&new))?;
    let node = created["uuid"].as_str().context("no uuid")?.to_owned();
    let port = json!({"node_uuid": node, "address": mac});
    victim.operators().request("POST", "/v1/ports", Some(&port))?;
    let provision = format!("/v1/nodes/{name}/states/provision");
    victim.operators().request("PUT", &provision, Some(&json!({"target": "manage"})))?;
    until(victim, name, "manageable")?;
    let steps = json!([{"interface": "deploy", "step": "erase_devices"}]);
    let clean = json!({"target": "clean", "clean_steps": steps});
    victim.operators().request("PUT", &provision, Some(&clean))?;
    until(victim, name, "clean wait")?;
    Ok(node)
}

pub(super) fn until(victim: &Victim, name: &str, state: &str) -> Result<Value> {
    let start = Instant::now();
    loop {
        let node = victim.operators().request("GET", &format!("/v1/nodes/{name}"), None)?;
        if node["provision_state"] == state && node["reservation"].is_null() {
            return Ok(node);
        }
        if start.elapsed() > PATIENCE {
            bail!("waited for {state:?}, but: {} {}", node["provision_state"], node["last_error"]);
        }
        thread::sleep(POLL);
    }
}

/// Serves an agent, until this process ends, and tells its URL and its certificate.
fn serve(result: &str) -> Result<(String, String)> {
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)?;
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("https://{}", listener.local_addr()?);
    let command = format!(
        "{{\"id\":\"00000000-0000-0000-0000-000000000001\",\"command_name\":\"get_clean_steps\",\
         \"command_status\":\"SUCCEEDED\",\"command_error\":null,\"command_result\":{result}}}"
    );
    let answers = Arc::new((command.clone(), format!("{{\"commands\":[{command}]}}")));
    thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            let (config, answers) = (Arc::clone(&config), Arc::clone(&answers));
            // What the conductor has had enough of ends with the connection.
            thread::spawn(move || speak(connection, config, &answers).ok());
        }
    });
    Ok((url, certified.cert.pem()))
}

fn speak(connection: TcpStream, config: Arc<ServerConfig>, answers: &(String, String)) -> Result<()> {
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, connection);
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut part = [0; 4096];
        match stream.read(&mut part)? {
            0 => return Ok(()),
            count => head.extend_from_slice(&part[..count]),
        }
    }
    let body = if head.starts_with(b"POST") { &answers.0 } else { &answers.1 };
    let reply = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(reply.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.flush()?;
    stream.conn.send_close_notify();
    stream.flush()?;
    Ok(())
}
