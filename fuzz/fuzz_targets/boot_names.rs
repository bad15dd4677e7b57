//! Names that firmware and boot loaders ask for.

#![no_main]

use farrier_drivers::netboot::names::{Item, Name, Whose};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|name: &str| {
    let Some(read) = Name::parse(name) else { return };
    assert!(name.bytes().all(|byte| byte.is_ascii_graphic()), "{name:?} is no word");
    assert!(!name.contains("..") && !name.contains(['\\', '%']), "{name:?} leads elsewhere");
    // What is asked for is what is written there, and nothing else.
    match (&read.whose, read.item) {
        (Whose::Card(card), Item::Config(Some(dialect))) => {
            let links = Name::links(card, dialect);
            assert!(links.iter().all(|link| Name::parse(link).as_ref() == Some(&read)), "{read:?}: {links:?}");
        }
        (Whose::Node(node), item) if name.trim_start_matches('/').len() > 36 && !name.contains("pxelinux.cfg") => {
            assert_eq!(Name::parse(&Name::of_node(*node, item)), Some(read.clone()));
        }
        _ => {}
    }
});
