//! Plans that hold together, and those that do not.

use super::*;

fn card(name: &str) -> PlannedLink {
    PlannedLink::new(name, Kind::Card(Which::Name(name.to_owned())))
}

fn vlan(name: &str, parent: &str, number: u16) -> PlannedLink {
    PlannedLink::new(name, Kind::Vlan { number, parent: parent.to_owned() })
}

fn bond(name: &str, ports: &[&str]) -> PlannedLink {
    let ports = ports.iter().map(|port| (*port).to_owned()).collect();
    PlannedLink::new(name, Kind::Bond(Bond::default(), ports))
}

fn with(mut link: PlannedLink, address: &str) -> PlannedLink {
    link.addresses.push(address.parse().unwrap());
    link
}

fn check(links: &[PlannedLink]) -> Result<Plan, PlanError> {
    Plan { links: links.to_vec(), ..Plan::automatic() }.checked()
}

#[test]
fn links_come_after_what_they_stand_on() {
    let links = [vlan("v", "b", 5), bond("b", &["x", "y"]), card("x"), card("y")];
    let names: Vec<_> = check(&links).unwrap().links.into_iter().map(|link| link.name).collect();
    assert_eq!(names, ["x", "y", "b", "v"]);
}

#[test]
fn large_packets_fit_through_everything_below() {
    let big = PlannedLink { mtu: Some(9000), ..vlan("v", "b", 5) };
    let small = PlannedLink { mtu: Some(1500), ..card("x") };
    let plan = check(&[big, bond("b", &["x", "y"]), small, card("y"), card("z")]).unwrap();
    for (name, expected) in [("x", Some(9000)), ("y", Some(9000)), ("b", Some(9000)), ("z", None)] {
        assert_eq!(plan.link(name).unwrap().mtu, expected, "{name}");
    }
}

#[test]
fn what_contradicts_itself_is_refused_by_name() {
    let same = PlannedLink::new("q", Kind::Card(Which::Name("x".into())));
    for (links, words) in [
        (vec![card("x"), card("x")], vec!["x", "twice"]),
        (vec![card("x"), same], vec!["x", "q", "same network card"]),
        (vec![with(card("x"), "192.0.2.1/24"), with(card("y"), "192.0.2.1/25")], vec!["192.0.2.1", "y"]),
        (vec![with(with(card("x"), "2001:db8::1/64"), "2001:db8::1/64")], vec!["2001:db8::1"]),
        (vec![card("x"), bond("b", &["x", "y"])], vec!["b needs y"]),
        (vec![vlan("v", "w", 5)], vec!["v needs w"]),
        (vec![card("x"), vlan("v", "x", 4095)], vec!["v", "4095"]),
        (vec![card("x"), vlan("v", "x", 0)], vec!["v", "0"]),
        (vec![card("x"), bond("a", &["x"]), bond("b", &["x"])], vec!["x", "two others"]),
        (vec![vlan("v", "w", 5), vlan("w", "v", 6)], vec!["stands on itself"]),
    ] {
        let text = check(&links).unwrap_err().to_string();
        assert!(words.iter().all(|word| text.contains(word)), "{text}: {words:?}");
    }
}
