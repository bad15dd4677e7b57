//! What real conductors and real agents said to each other (`tests/golden/`), for replays.

use serde_json::Value;
use std::fs;
use std::path::Path;

/// Sender and receiver.
pub const TO_AGENT: &str = "conductor->agent";
/// The other way round.
pub const TO_CONDUCTOR: &str = "agent->conductor";

/// Every one of them has to be there.
const NAMES: &[&str] = &[
    "ironic-26.1.6",
    "ironic-39.0.0",
    "ironic-39.0.0-python-agent-13.0.0-inspect",
    "ironic-39.0.0-python-agent-13.0.0-clean",
    "ironic-39.0.0-python-agent-13.0.0-deploy",
];

/// Exchanges in order of time.
pub struct Recording {
    /// Name of its file without the ending.
    pub name: &'static str,
    exchanges: Vec<Value>,
}

impl Recording {
    /// All of them.
    pub fn all() -> Vec<Self> {
        NAMES.iter().map(|name| Self::read(name)).collect()
    }

    fn read(name: &'static str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
        let text = fs::read_to_string(folder.join(format!("{name}.jsonl"))).unwrap();
        Self { name, exchanges: text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() }
    }

    /// The exchanges of each boot in one direction. An agent says nothing about its machine and asks for no
    /// version any more once it has sent a heartbeat.
    pub fn boots(&self, direction: &str) -> Vec<Vec<Value>> {
        let mut boots = vec![Vec::new()];
        let mut is_known = false;
        for exchange in &self.exchanges {
            let path = path(exchange);
            if is_known && (path == "/" || path.starts_with("/v1/continue_inspection")) {
                boots.push(Vec::new());
                is_known = false;
            }
            is_known |= path.starts_with("/v1/heartbeat");
            if exchange["direction"] == direction
                && let Some(boot) = boots.last_mut()
            {
                boot.push(exchange.clone());
            }
        }
        boots
    }
}

/// Every request of the Python agent in the recordings, with its answer.
pub fn python_agent() -> Vec<Value> {
    let recordings = Recording::all().into_iter().filter(|recording| recording.name.contains("python-agent"));
    recordings.flat_map(|recording| recording.boots(TO_CONDUCTOR)).flatten().collect()
}

/// Path of an exchange's request, with its query.
pub fn path(exchange: &Value) -> &str {
    exchange["path"].as_str().unwrap()
}
