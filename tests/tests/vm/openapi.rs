//! The agent in a machine against its own OpenAPI document, by schemathesis.
//!
//! The machine is emulated and has an empty disk: whatever is ordered harms nobody. Commands that end
//! the agent are taken out of the document first, because the others could not be tried after them.

use farrier_tests::agent::commanded::CommandedAgent;
use farrier_tests::agent::stub_conductor::TOKEN;
use farrier_tests::environment;
use farrier_tests::machine::{Hardware, free_port};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Commands after which nobody answers any more.
const ENDS: &[&str] =
    &["standby.run_image", "standby.power_off", "rescue.finalize_rescue", "system.lockdown"];

/// What is checked of every answer. Whether bad data is rejected is not among it: unknown and missing
/// parameters get a failed result with status 200, as the contract has it.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,unsupported_method,ignored_auth";

/// The document without the commands of [`ENDS`].
fn document(folder: &Path) -> PathBuf {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let mut document: Value = serde_json::from_slice(&fs::read(committed).unwrap()).unwrap();
    let requests = document["components"]["schemas"]["CommandRequest"]["anyOf"].as_array_mut().unwrap();
    let before = requests.len();
    requests.retain(|request| !ENDS.iter().any(|name| request["title"] == *name));
    assert_eq!(before - requests.len(), ENDS.len(), "a command that ends the agent has another name");
    let file = folder.join("openapi.json");
    fs::write(&file, document.to_string()).unwrap();
    file
}

#[test]
fn vm_the_agent_answers_as_its_openapi_document_says() {
    let folder = TempDir::new().unwrap();
    let disk = folder.path().join("disk.raw");
    fs::File::create(&disk).unwrap().set_len(5 << 30).unwrap();
    let hardware = Hardware {
        mac: "52:54:00:fa:00:21".into(),
        agent_port: free_port().unwrap(),
        keyboard_port: free_port().unwrap(),
        disks: vec![(disk, "ROOT")],
        media: vec![],
        folder: folder.path().into(),
    };
    // What cannot be fetched is not to keep the agent busy.
    let quick = "ipa-image-download-connection-retries=0 ipa-image-download-connection-timeout=1 ipa-disk-wait-attempts=1";
    let mut agent = CommandedAgent::boot(&hardware, &[], &environment::path("FARRIER_DIST"), quick).unwrap();
    let settings = folder.path().join("schemathesis.toml");
    fs::write(&settings, format!("[auth.openapi.token]\napi_key = \"{TOKEN}\"\n")).unwrap();
    let output = Command::new(environment::path("FARRIER_SCHEMATHESIS").join("bin/st"))
        .args(["--config-file".as_ref(), settings.as_os_str(), "run".as_ref()])
        .arg(document(folder.path()))
        .args(["--url", agent.url(), "--tls-verify", "false", "--checks", CHECKS])
        .args(["--phases", "examples,coverage,fuzzing", "--max-examples", "25", "--seed", "1"])
        .args(["--generation-deterministic", "--request-timeout", "60", "--suppress-health-check", "all"])
        .args(["--warnings", "off"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", hardware.console().tail());
    assert!(agent.is_on().unwrap() && agent.last_command().is_ok(), "the agent is gone:\n{text}");
    println!("{text}");
}
