//! Services that the conductor asks, in the hands of a stranger: BMCs, Keystone, Neutron.

use super::conductor::{Victim, request_as};
use super::peer::{Peer, Reply};
use super::shape::Shape;
use super::{Row, WITH_A_TOKEN, agent};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest answer of a BMC, of Keystone as it gives a token, and of Neutron, in bytes.
const ANSWER: usize = 4 << 20;
/// The longest answer of Keystone about an operator's token, in bytes.
const TOKEN: usize = 256 << 10;

/// One row for each service and shape.
///
/// # Errors
///
/// A conductor did not start.
pub fn rows(program: &Path, folder: &Path, shapes: &[Shape]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for shape in shapes {
        let folder = folder.join(shape.name().replace(' ', "-"));
        rows.push(bmc(program, &folder.join("bmc"), *shape)?);
        rows.push(operators(program, &folder.join("operators"), *shape)?);
        rows.push(networks(program, &folder.join("keystone"), *shape, "Keystone")?);
        rows.push(networks(program, &folder.join("neutron"), *shape, "Neutron")?);
    }
    Ok(rows)
}

/// A service that answers with little, and then with what a stranger likes.
struct Changing {
    peer: Peer,
    has_changed: Arc<AtomicBool>,
}

impl Changing {
    fn start(answer: impl Fn(bool, &str) -> Reply + Send + Sync + 'static) -> Result<Self> {
        let has_changed = Arc::<AtomicBool>::default();
        let changed = Arc::clone(&has_changed);
        let peer =
            Peer::start(Ipv4Addr::LOCALHOST, move |_, path| answer(changed.load(Ordering::Relaxed), path))?;
        Ok(Self { peer, has_changed })
    }

    /// Has something ask the service, which has changed, and sees that it does.
    fn asked<T>(&self, ask: impl FnOnce() -> Result<T>) -> Result<T> {
        self.has_changed.store(true, Ordering::Relaxed);
        let before = self.peer.asked();
        let asked = ask()?;
        if self.peer.asked() == before {
            bail!("the service was not asked");
        }
        Ok(asked)
    }
}

/// Begins with `beginning`, an object that is not closed, and has a value of a shape.
fn with(beginning: &str, shape: Shape, bytes: usize) -> Arc<String> {
    Arc::new(format!("{beginning}\"x\":{}}}", shape.value(bytes - 400)))
}

/// The BMC of a node that is to be managed.
fn bmc(program: &Path, folder: &Path, shape: Shape) -> Result<Row> {
    let victim = Victim::start(program, folder, &["--enabled-hardware-types", "redfish"])?;
    let (little, much) = (Arc::new("{}".to_owned()), with("{", shape, ANSWER));
    let service =
        Changing::start(move |has_changed, _| Reply::new(200, if has_changed { &much } else { &little }))?;
    let manage = |name: &str| {
        let info = json!({
            "redfish_address": service.peer.url(), "redfish_username": "u", "redfish_password": "p",
        });
        let node = json!({"name": name, "driver": "redfish", "driver_info": info});
        let created = victim.operators().request("POST", "/v1/nodes", Some(&node))?;
        // Machines are known by their addresses, and no two have the same.
        let address = format!("52:54:00:00:02:{:02x}", name.bytes().map(u32::from).sum::<u32>() % 256);
        let port = json!({"node_uuid": created["uuid"], "address": address});
        victim.operators().request("POST", "/v1/ports", Some(&port))?;
        let provision = format!("/v1/nodes/{name}/states/provision");
        victim.operators().request("PUT", &provision, Some(&json!({"target": "manage"})))?;
        let node = agent::until(&victim, name, "enroll")?;
        Ok(node["last_error"].as_str().unwrap_or_default().to_owned())
    };
    manage("n0")?;
    let stranger = format!("BMC's answer of 4 MiB: {}", shape.name());
    victim.subject().meets(&stranger, WITH_A_TOKEN, || service.asked(|| manage("n1")))
}

/// The Keystone of operators.
fn operators(program: &Path, folder: &Path, shape: Shape) -> Result<Row> {
    let (little, much) = (Arc::new("{}".to_owned()), with("{\"token\":{},", shape, TOKEN));
    let service =
        Changing::start(move |has_changed, _| Reply::new(200, if has_changed { &much } else { &little }))?;
    let url = service.peer.url();
    let options = ["--enabled-hardware-types", "fake-hardware", "--auth-strategy", "keystone"];
    let options = [&options[..], &["--keystone-url", &url]].concat();
    let victim = Victim::start(program, folder, &options)?;
    let ask = |token| request_as(token, victim.operators_address(), "GET", "/v1/nodes", "");
    ask("t0")?;
    let stranger = format!("Keystone's answer of 256 KiB about an operator: {}", shape.name());
    victim.subject().meets(&stranger, WITH_A_TOKEN, || {
        let answer = service.asked(|| ask("t1"))?;
        Ok(answer.chars().take(3).collect())
    })
}

/// Keystone or Neutron, of nodes that Neutron connects.
fn networks(program: &Path, folder: &Path, shape: Shape, who: &'static str) -> Result<Row> {
    let (is_keystone, little) = (who == "Keystone", Arc::new("{\"networks\":[]}".to_owned()));
    let token = "{\"token\":{\"issued_at\":\"2026-01-01T00:00:00Z\",\"expires_at\":\"2026-01-02T00:00:00Z\",\"catalog\":[]}";
    let granted = Arc::new(format!("{token}}}"));
    let (much, many) = (with(&format!("{token},"), shape, ANSWER), with("{\"networks\":[],", shape, ANSWER));
    let service = Changing::start(move |has_changed, path| {
        if path.contains("/auth/tokens") {
            let body = if has_changed && is_keystone { &much } else { &granted };
            return Reply { headers: "X-Subject-Token: t\r\n".to_owned(), ..Reply::new(201, body) };
        }
        // A token that is refused is asked for again.
        let status = if has_changed && is_keystone { 401 } else { 200 };
        Reply::new(status, if has_changed { &many } else { &little })
    })?;
    fs::create_dir_all(folder)?;
    let (file, url) = (folder.join("clouds.yaml"), service.peer.url());
    let auth = json!({"auth_url": url, "username": "u", "password": "p", "project_name": "service"});
    let cloud = json!({"auth": auth, "network_endpoint_override": url});
    fs::write(&file, json!({"clouds": {"horses": cloud}}).to_string())?;
    let file = file.display().to_string();
    let options = ["--enabled-hardware-types", "fake-hardware", "--enabled-network-interfaces", "neutron"];
    let networks = ["--provisioning-network", "stable", "--cleaning-network", "stable"];
    let options = [&options[..], &networks, &["--os-client-config-file", &file]].concat();
    let victim = Victim::start(program, folder, &options)?;
    let node = json!({"name": "n0", "driver": "fake-hardware"});
    victim.operators().request("POST", "/v1/nodes", Some(&node))?;
    let validate = || {
        let found = victim.operators().request("GET", "/v1/nodes/n0/validate", None)?;
        let said: &Value = &found["network"]["reason"];
        Ok(said.as_str().context("its networks are valid")?.to_owned())
    };
    validate()?;
    let stranger = format!("{who}'s answer of 4 MiB about networks: {}", shape.name());
    victim.subject().meets(&stranger, WITH_A_TOKEN, || service.asked(validate))
}
