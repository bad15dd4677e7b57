//! `baremetal`, of python-ironicclient.

use crate::page;
use farrier_tests::conductor::baremetal_life;
use farrier_tests::environment;
use std::collections::BTreeSet;

/// What it prints under Ironic 39.
const RECORDING: &str = include_str!("../../client/life-under-ironic-39.0.0.txt");

/// Commands that are a whole life at least.
const LEAST: usize = 60;

#[test]
fn client_baremetal_prints_through_a_whole_life_what_it_prints_with_ironic() {
    let (conductor, _folder) = crate::conductor();
    let printed = baremetal_life::live(&environment::path("FARRIER_CLIENTS"), &conductor).unwrap();
    let (mut recorded, told) = (baremetal_life::comparable(RECORDING), baremetal_life::comparable(&printed));
    for [ironic, farrier, _] in page::rows("baremetal") {
        let lines = recorded.iter_mut().flat_map(|(_, lines)| lines).filter(|line| **line == ironic);
        let changed = lines.map(|line| line.clone_from(&farrier)).count();
        assert!(changed > 0, "Ironic says nowhere {ironic:?}");
    }
    assert!(told.len() >= LEAST, "{} commands are no whole life", told.len());
    let commands =
        |life: &[(String, Vec<String>)]| life.iter().map(|(command, _)| command.clone()).collect::<Vec<_>>();
    assert_eq!(commands(&told), commands(&recorded), "record anew: cargo xtask record --clients");
    // Of what is told otherwise, the order is another one too.
    let lines = |lines: &[String]| lines.iter().cloned().collect::<BTreeSet<_>>();
    let pairs = told
        .iter()
        .zip(&recorded)
        .map(|((command, told), (_, recorded))| (command, lines(told), lines(recorded)));
    let differences: Vec<_> = pairs
        .filter(|(_, told, recorded)| told != recorded)
        .map(|(command, told, recorded)| {
            let only = |these: &BTreeSet<String>, those: &BTreeSet<String>| {
                (these - those).into_iter().collect::<Vec<_>>()
            };
            format!(
                "{command}\n  Ironic: {:#?}\n  farrier: {:#?}",
                only(&recorded, &told),
                only(&told, &recorded)
            )
        })
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
