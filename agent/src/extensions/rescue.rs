//! Handing the machine to its user (sections 1.7 and 11.2).

use crate::agent::Agent;
use crate::commands::{Command, JsonType, Kind, Parameter, Params};
use crate::deployment::export;
use crate::extensions::rescue_password;
use farrier_init::lockdown::Stopped;
use farrier_protocol::error::CommandError;
use serde_json::Value;
use std::sync::Arc;

/// Commands of the `rescue` extension.
pub const COMMANDS: &[Command] = &[Command {
    name: "finalize_rescue",
    help: "Sets the password of the rescue user and stops listener and heartbeats",
    kind: Kind::Sync,
    parameters: &[
        Parameter::optional("rescue_password", &[JsonType::String], "Password, or its hash"),
        Parameter::optional("hashed", &[JsonType::Boolean, JsonType::Null], "True if it is a hash"),
    ],
    validate: Some(|params| rescue_password::validate_password(password(params))),
    run: finalize_rescue,
}];

fn password(params: &Params) -> &str {
    params.get("rescue_password").and_then(Value::as_str).unwrap_or_default()
}

fn finalize_rescue(agent: &Arc<Agent>, params: &Params) -> Result<Value, CommandError> {
    let is_hashed = params.get("hashed").and_then(Value::as_bool).unwrap_or(false);
    let hash = rescue_password::password_hash(password(params), is_hashed)?;
    rescue_password::store(&agent.root, &hash)?;
    export::stop_for_good(agent);
    agent.stop_serving(Stopped::Rescued);
    Ok(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::http;
    use crate::settings::options::Options;
    use serde_json::json;
    use std::fs;
    use std::time::{Duration, Instant};

    #[tokio::test]
    async fn x15_rescue_is_answered_while_drivers_are_still_being_loaded() {
        http::install_tls_provider();
        let root = tempfile::tempdir().unwrap();
        let module = root.path().join("sys/module/mpt3sas");
        for folder in [&module, &root.path().join("etc/ipa-rescue-config")] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(module.join("initstate"), "coming").unwrap();
        let handle = tokio::runtime::Handle::current();
        let agent = Agent::new(Options::default(), root.path(), handle).unwrap();
        let params = serde_json::from_value(json!({"rescue_password": "oats"})).unwrap();
        let started = Instant::now();
        let answered = tokio::task::spawn_blocking({
            let agent = Arc::clone(&agent);
            move || finalize_rescue(&agent, &params)
        });
        answered.await.unwrap().unwrap();
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        assert_eq!(agent.until_stopped().await, Stopped::Rescued);
    }
}
