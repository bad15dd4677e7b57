//! Agents that mean no good. What their answers and those of others may take as values is looked at in `strangers`.

use crate::agent::Script;
use crate::site::Site;
use farrier_conductor::model::{PowerState, ProvisionState};

/// What the conductor may take of memory, in KiB, whatever an agent answers.
const MOST_KIB: u64 = 192 << 10;

#[tokio::test(flavor = "multi_thread")]
async fn process_n02_an_answer_of_100_mib_fails_the_deployment_and_is_not_kept() {
    let site = Site::new(Script { floods: true, ..Script::default() }).await;
    let conductor = site.conductor("c1", "127.0.0.1:0");
    site.enrol(&conductor);
    let (is_success, said) = site.deploy(&conductor).ends();
    assert!(!is_success && said.contains("it has more than") && said.contains(" MiB"), "{said}");
    site.ends(ProvisionState::DeployFailed).await;
    assert_eq!(site.machine.power(), PowerState::Off);
    let peak = conductor.peak_kib();
    assert!(peak < MOST_KIB, "{peak} KiB");
    println!("{peak} KiB at most");
}
