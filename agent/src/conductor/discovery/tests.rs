//! Answers as data, and from a responder on the loopback network.

use super::*;
use crate::settings::options::{DEFAULT_SECTION, OptionSpec};
use farrier_linux::netlink::{Lifetime, Netlink};
use mdns_sd::ServiceInfo;
use nix::sched::{CloneFlags, unshare};

fn options(settings: &[(&str, &str, &str)]) -> Options {
    let key = |section, name| OptionSpec::find(section, name).unwrap().key();
    let named = settings.iter().map(|(section, name, text)| (key(section, name), (*text).to_owned()));
    let (options, errors) = Options::load(&Default::default(), &named.collect());
    assert_eq!(errors, []);
    options
}

#[test]
fn s05_nobody_is_asked_unless_the_operator_wants_it() {
    for (settings, expected) in [
        (vec![], false),
        (vec![(DEFAULT_SECTION, "api_url", "http://192.0.2.1")], false),
        (vec![("mdns", "use_mdns", "true"), (DEFAULT_SECTION, "api_url", "http://192.0.2.1")], false),
        (vec![("mdns", "use_mdns", "true")], true),
        (vec![(DEFAULT_SECTION, "api_url", "mdns")], true),
        (vec![(DEFAULT_SECTION, "inspection_callback_url", "mdns")], true),
    ] {
        assert_eq!(is_wanted(&options(&settings)), expected, "{settings:?}");
    }
}

fn service(host: &str, addresses: &str, port: u16, properties: &[(&str, &str)]) -> ServiceInfo {
    ServiceInfo::new(DOMAIN, API, host, addresses, port, properties).unwrap()
}

#[test]
fn urls_are_made_as_the_contract_says() {
    for (host, addresses, port, properties, expected) in [
        ("a.local.", "127.0.0.1,192.0.2.9", 6385, &[][..], Some("https://192.0.2.9:6385")),
        ("a.local.", "192.0.2.9", 80, &[], Some("http://192.0.2.9:80")),
        (
            "a.local.",
            "2001:db8::1",
            443,
            &[("path", "/baremetal/")],
            Some("https://[2001:db8::1]:443/baremetal"),
        ),
        ("a.example.", "192.0.2.9", 6385, &[("protocol", "http")], Some("http://a.example:6385")),
        ("a.local.", "192.0.2.9", 6385, &[("protocol", "gopher")], None),
        ("a.local.", "127.0.0.1", 6385, &[], None),
    ] {
        let found = read(&service(host, addresses, port, properties).as_resolved_service());
        assert_eq!(found.map(|answer| answer.url).as_deref(), expected, "{host} {addresses} {port}");
    }
}

#[test]
fn an_address_with_a_route_is_preferred() {
    let addresses = ["192.0.2.1", "198.51.100.1"].map(|text| text.parse().unwrap());
    let route = |address: IpAddr| (address == addresses[1]).then_some(address);
    assert_eq!(host("a.local.", &addresses, route).as_deref(), Some("198.51.100.1"));
    assert_eq!(host("a.local.", &addresses, |_| None).as_deref(), Some("192.0.2.1"));
}

#[test]
fn s05_an_answer_sets_only_what_the_operator_allowed() {
    let answered = || {
        [("ntp_server", "192.0.2.5"), ("insecure", "true"), ("agent_token", "x"), ("no_such", "1")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .to_vec()
    };
    let mut default = options(&[]);
    take_overrides(&mut default, answered());
    assert_eq!(default.ntp_server.as_deref(), Some("192.0.2.5"));
    assert!(!default.insecure && default.agent_token.is_none());
    let mut wider = options(&[("mdns", "allowed_overrides", "insecure,no_such")]);
    take_overrides(&mut wider, answered());
    assert!(wider.insecure && wider.ntp_server.is_none());
}

/// A network of its own for this thread and those it starts, with one address. Needs root.
fn enter_network(address: &str) {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    let netlink = Netlink::open().unwrap();
    netlink.set_up("lo").unwrap();
    netlink.add_address("lo", address.parse().unwrap(), Lifetime::ENDLESS).unwrap();
}

#[test]
fn loop_s05_a_responder_is_found_and_silence_is_fatal_only_when_it_was_asked_for() {
    enter_network("192.0.2.9/24");
    let mut silent =
        options(&[("mdns", "lookup_attempts", "1"), (DEFAULT_SECTION, "inspection_callback_url", "mdns")]);
    let error = resolve(&mut silent).unwrap_err().to_string();
    assert!(error.contains("baremetal-introspection._openstack._tcp.local."), "{error}");

    let responder = ServiceDaemon::new().unwrap();
    let properties = [("protocol", "http"), ("ipa_ntp_server", "192.0.2.5"), ("ipa_insecure", "true")];
    responder.register(service("conductor.local.", "192.0.2.9", 6385, &properties)).unwrap();
    let mut found = options(&[("mdns", "use_mdns", "true"), ("mdns", "interfaces", "lo")]);
    resolve(&mut found).unwrap();
    assert_eq!(found.api_url.0, ["http://192.0.2.9:6385"]);
    assert_eq!(found.ntp_server.as_deref(), Some("192.0.2.5"));
    assert!(!found.insecure);
    responder.shutdown().unwrap().recv().unwrap();
}
