//! Inspection: telling the conductor what the machine is made of, before it is known (section 10).

pub mod callback;
mod collectors;
mod dhcp_wait;
mod schedule;

use crate::agent::Agent;
use crate::settings::options::Options;
pub use collectors::COLLECTORS;
use collectors::Collector;
pub use schedule::Inspection;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Collectors that run when none are named.
const DEFAULT_COLLECTORS: &[&str] = &["default", "logs"];

/// Whether this boot has an inspection (section 10.1).
pub fn is_wanted(options: &Options) -> bool {
    !callback_urls(options).is_empty()
}

/// The data of these collectors for the conductor, and the failures.
async fn data_of(agent: &Arc<Agent>, names: &[String]) -> (Map<String, Value>, Option<String>) {
    tracing::info!(collectors = names.join(","), "inspecting the machine");
    let (mut data, error) = match select(names) {
        Ok(selected) => collect(agent, selected).await,
        Err(error) => (Map::new(), Some(error)),
    };
    data.insert("error".to_owned(), json!(error));
    (data, error)
}

/// Runs collectors one after the other; a failing one adds its error, and the others still run (F42).
async fn collect(
    agent: &Arc<Agent>,
    selected: Vec<&'static Collector>,
) -> (Map<String, Value>, Option<String>) {
    let mut data = Map::new();
    let mut errors = Vec::new();
    for collector in selected {
        let shared = Arc::clone(agent);
        let outcome = tokio::task::spawn_blocking(move || (collector.collect)(&shared)).await;
        let failure = match outcome {
            Ok(Ok(keys)) => {
                data.extend(keys);
                continue;
            }
            Ok(Err(error)) => error,
            Err(defect) => format!("a defect of the agent ({defect}); report it with the log"),
        };
        tracing::error!(collector = collector.name, "collector failed: {failure}");
        if !collector.may_fail {
            errors.push(format!("* collector {}: {failure}", collector.name));
        }
    }
    (data, (!errors.is_empty()).then(|| errors.join("\n")))
}

fn select(names: &[String]) -> Result<Vec<&'static Collector>, String> {
    let find = |name: &String| {
        COLLECTORS.iter().find(|collector| collector.name == name).ok_or_else(|| {
            let known: Vec<_> = COLLECTORS.iter().map(|collector| collector.name).collect();
            let known = known.join(", ");
            format!("* no collector {name:?}: correct ipa-inspection-collectors; those known are {known}")
        })
    };
    names.iter().map(find).collect()
}

fn collector_names(options: &Options) -> Vec<String> {
    match &options.inspection_collectors {
        Some(names) => names.0.clone(),
        None => DEFAULT_COLLECTORS.iter().map(|name| (*name).to_owned()).collect(),
    }
}

/// The callback URLs as given, else those of the API when collectors were named (section 10.1).
fn callback_urls(options: &Options) -> Vec<String> {
    let given = &options.inspection_callback_url.0;
    if given.is_empty() && options.inspection_collectors.is_some() {
        return options.api_url.0.iter().map(|url| format!("{url}/v1/continue_inspection")).collect();
    }
    given.clone()
}

#[cfg(test)]
mod tests {
    use super::schedule::{InspectionError, inspect};
    use super::*;
    use crate::network::http;
    use farrier_linux::kernel_line;
    use uuid::Uuid;

    pub fn options(line: &str) -> Options {
        Options::load(&kernel_line::parse(line), &Default::default()).0
    }

    #[test]
    fn rows_of_the_contract() {
        for (line, urls) in [
            ("", &[][..]),
            ("ipa-api-url=http://a:6385", &[]),
            ("ipa-inspection-collectors=default", &[]),
            ("ipa-inspection-callback-url=http://b/x", &["http://b/x"]),
            (
                "ipa-api-url=http://a:6385,http://c ipa-inspection-collectors=default,lldp",
                &["http://a:6385/v1/continue_inspection", "http://c/v1/continue_inspection"],
            ),
            ("ipa-api-url=http://a ipa-inspection-callback-url=http://b/x", &["http://b/x"]),
        ] {
            assert_eq!(callback_urls(&options(line)), urls, "{line}");
        }
    }

    #[test]
    fn collectors_are_found_by_name_and_in_the_given_order() {
        let names = |line: &str| {
            let selected = select(&collector_names(&options(line)));
            selected.map(|selected| selected.iter().map(|one| one.name).collect::<Vec<_>>())
        };
        assert_eq!(names("").unwrap(), ["default", "logs"]);
        assert_eq!(names("ipa-inspection-collectors=logs,pci-devices").unwrap(), ["logs", "pci-devices"]);
        let text = names("ipa-inspection-collectors=default,tea").unwrap_err();
        assert!(text.contains("\"tea\"") && text.contains("numa-topology"), "{text}");
    }

    /// Runs the inspection of this very machine against a conductor that accepts it.
    async fn inspect_here(collectors: &str) -> (Result<Option<Uuid>, InspectionError>, Value) {
        let (url, script) = callback::tests::conductor(&[202]).await;
        let line = format!("ipa-inspection-callback-url={url} ipa-inspection-collectors={collectors}");
        let node = inspect(&agent(options(&line)), vec![url]).await;
        let data = script.lock().unwrap().1.remove(0);
        (node, data)
    }

    pub fn agent(options: Options) -> Arc<Agent> {
        http::install_tls_provider();
        let session = tempfile::tempdir().unwrap().path().join("session");
        Agent::new(options, &session, tokio::runtime::Handle::current()).unwrap()
    }

    #[tokio::test]
    async fn what_was_collected_is_posted_and_the_answer_names_the_node() {
        let (node, data) = inspect_here("default,pci-devices,usb-devices,dmi-decode,logs").await;
        assert_eq!(node.unwrap(), Some(callback::tests::NODE.parse().unwrap()));
        assert_eq!(data["error"], Value::Null);
        let declared: Vec<_> = COLLECTORS.iter().flat_map(|collector| collector.keys).copied().collect();
        for key in data.as_object().unwrap().keys().filter(|key| *key != "error") {
            assert!(declared.contains(&key.as_str()), "{key}");
        }
        assert!(data["inventory"]["cpu"]["count"].as_u64().unwrap() > 0, "{data}");
        assert!(
            data["inventory"]["bmc_v6address"].is_null() || data["inventory"]["bmc_v6address"].is_string()
        );
        assert_eq!(data["boot_interface"], Value::Null);
        let managers = json!([{"name": "generic_hardware_manager", "version": "1.2"}]);
        assert_eq!(data["configuration"]["managers"], managers);
        assert_eq!(data["configuration"]["collectors"][3], "dmi-decode");
        assert!(data["pci_devices"].is_array() && data["usb_devices"].is_array(), "{data}");
        assert!(data["dmi"]["memory"].is_object(), "{data}");
        assert!(data["logs"].as_str().unwrap().starts_with("H4sI"));
    }

    #[tokio::test]
    async fn extra_hardware_holds_rows_and_the_wanted_benchmarks() {
        let (node, data) = inspect_here("extra-hardware ipa-inspection-benchmarks=cpu").await;
        assert!(node.is_ok(), "{data}");
        let rows = data["data"].as_array().unwrap();
        assert!(rows.iter().all(|row| row.as_array().is_some_and(|row| row.len() == 4)), "{data}");
        let count =
            |kind: &str, name: &str| rows.iter().filter(|row| row[0] == kind && row[2] == name).count();
        assert_eq!((count("cpu", "loops_per_sec"), count("memory", "size")), (2, 1), "{data}");
        let (node, data) = inspect_here("extra-hardware,pci-devices ipa-inspection-benchmarks=cpu,tea").await;
        assert!(node.is_err() && data["pci_devices"].is_array(), "{data}");
        let error = data["error"].as_str().unwrap();
        assert!(error.starts_with("* collector extra-hardware: no benchmark \"tea\""), "{error}");
    }

    #[tokio::test]
    async fn an_unknown_collector_is_reported_to_the_conductor_too() {
        let (node, data) = inspect_here("default,tea").await;
        assert!(node.is_err());
        assert_eq!(data.as_object().unwrap().len(), 1);
        assert!(data["error"].as_str().unwrap().contains("\"tea\""), "{data}");
    }

    #[tokio::test]
    async fn f42_a_failing_collector_stops_nobody() {
        const BROKEN: Collector =
            Collector { name: "broken", collect: |_| Err("no sensor".to_owned()), ..COLLECTORS[0] };
        const DEFECT: Collector =
            Collector { name: "defect", collect: |_| panic!("a defect"), ..COLLECTORS[0] };
        const LOGS: Collector = Collector {
            name: "logs",
            may_fail: true,
            collect: |_| Err("no log".to_owned()),
            ..COLLECTORS[0]
        };
        const GOOD: Collector = Collector {
            name: "good",
            collect: |_| Ok(Map::from_iter([("x".to_owned(), json!(1))])),
            ..COLLECTORS[0]
        };
        let agent = agent(Options::default());
        let (data, error) = collect(&agent, vec![&BROKEN, &DEFECT, &LOGS, &GOOD]).await;
        assert_eq!(data["x"], 1);
        let error = error.unwrap();
        let lines: Vec<_> = error.lines().collect();
        assert_eq!(lines.len(), 2, "{error}");
        assert_eq!(lines[0], "* collector broken: no sensor");
        assert!(lines[1].starts_with("* collector defect: "), "{error}");
    }
}
