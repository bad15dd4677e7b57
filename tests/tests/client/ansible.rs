//! Ansible, by plays with the modules of its collection `openstack.cloud`.

use crate::openstacksdk;
use farrier_tests::conductor::node_api::Conductor;
use farrier_tests::environment;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Where the plays are.
const PLAYS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/client");

/// Names of the tasks that changed something in a run of a play, which succeeds.
fn changes(play: &str, clouds: &Path) -> Vec<String> {
    let folder = clouds.parent().unwrap();
    let programs = environment::path("FARRIER_ANSIBLE").join("bin");
    let output = Command::new(programs.join("ansible-playbook"))
        .args(["--inventory", "localhost,", "--connection", "local"])
        .arg("--extra-vars")
        .arg(format!("ansible_python_interpreter={}", programs.join("python").display()))
        .arg(Path::new(PLAYS).join(play))
        .current_dir(folder)
        .env("ANSIBLE_HOME", folder.join("ansible"))
        .env("ANSIBLE_STDOUT_CALLBACK", "ansible.posix.json")
        .env("OS_CLIENT_CONFIG_FILE", clouds)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let (printed, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{play}: {printed}\n{complained}");
    let report: Value = serde_json::from_str(&printed).unwrap_or_else(|_| panic!("no report: {printed}"));
    let tasks = report["plays"][0]["tasks"].as_array().unwrap();
    let changed = tasks.iter().filter(|task| task["hosts"]["localhost"]["changed"] == true);
    let names: Vec<_> = changed.map(|task| task["task"]["name"].as_str().unwrap().to_owned()).collect();
    assert_eq!(report["stats"]["localhost"]["changed"], names.len(), "{printed}");
    names
}

#[test]
fn client_ansible_enrols_deploys_and_deletes_a_machine_and_changes_nothing_the_second_time() {
    let (conductor, folder) = crate::conductor();
    let clouds = openstacksdk::configure(conductor.api().port(), folder.path());
    for (play, tasks) in [
        (
            "deploy.yml",
            &[
                "Have a deploy template",
                "Enrol the node",
                "Add a port",
                "Deploy the node",
                "Power the node on",
            ][..],
        ),
        (
            "delete.yml",
            &[
                "Remove the instance",
                "Inspect the machine",
                "Set maintenance",
                "Remove a port",
                "Delete the node",
                "Remove the deploy template",
            ],
        ),
    ] {
        assert_eq!(changes(play, &clouds), tasks, "{play}");
        assert_eq!(changes(play, &clouds), Vec::<String>::new(), "{play}, a second time");
    }
    let nodes = conductor.api().request("GET", "/v1/nodes", None).unwrap();
    assert_eq!(nodes["nodes"], serde_json::json!([]), "{}", conductor.log_tail());
}
