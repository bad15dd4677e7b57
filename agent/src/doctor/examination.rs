//! The chain of checks, from the cable to the conductor's answer.
//!
//! Each check starts as soon as those it rests on have passed, for all interfaces and URLs at once.
//! What rests on a failure is named and not tried.

use super::verdict::{Finding, Report, State, Verdict};
use super::{devices, links, servers, tls};
use crate::settings::options::Options;
use farrier_hardware::inventory::nics;
use farrier_linux::netlink::{self, InterfaceAddress};
use farrier_protocol::inventory::NetworkInterface;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, join_all};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// The name servers that the resolver asks.
const RESOLVER: &str = "/etc/resolv.conf";

/// What the checks look at.
pub struct Host {
    /// Settings.
    pub options: Options,
    /// The interfaces that identify this machine.
    pub nics: Vec<NetworkInterface>,
    /// Addresses that reach further than their link.
    pub addresses: Vec<InterfaceAddress>,
    /// Who is asked for names.
    pub name_servers: Vec<IpAddr>,
}

/// What a check is made for, once for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Interface,
    Machine,
    Url,
}

/// A check.
struct Check {
    name: &'static str,
    each: Scope,
    /// Checks that have to pass before: for the same subject, or for any where subjects differ.
    needs: &'static [&'static str],
    /// Longest time it may take.
    deadline: fn(&Options) -> Duration,
    run: for<'a> fn(&'a Host, &'a str) -> BoxFuture<'a, Finding>,
}

const fn check(
    name: &'static str,
    each: Scope,
    needs: &'static [&'static str],
    run: for<'a> fn(&'a Host, &'a str) -> BoxFuture<'a, Finding>,
) -> Check {
    Check { name, each, needs, deadline: |_| Duration::from_secs(20), run }
}

/// Every check, in the order of the report; each stands behind those it needs.
const CHECKS: &[Check] = &[
    check("link", Scope::Interface, &[], |host, name| links::link(host, name).boxed()),
    Check {
        deadline: |options| options.lldp_timeout.duration() + Duration::from_secs(5),
        ..check("lldp", Scope::Interface, &["link"], |host, name| links::lldp(host, name).boxed())
    },
    check("dhcp", Scope::Interface, &["link"], |host, name| links::dhcp(host, name).boxed()),
    check("address", Scope::Machine, &["link"], |host, _| links::address(host).boxed()),
    check("api", Scope::Url, &[], |host, url| servers::api(host, url).boxed()),
    check("route", Scope::Url, &["address", "api"], |host, url| servers::route(host, url).boxed()),
    check("dns", Scope::Url, &["route"], |host, url| servers::dns(host, url).boxed()),
    check("tcp", Scope::Url, &["dns"], |_, url| servers::tcp(url).boxed()),
    check("tls", Scope::Url, &["tcp"], |host, url| tls::tls(host, url).boxed()),
    check("http", Scope::Url, &["tls"], |host, url| servers::http(host, url).boxed()),
    check(LAST, Scope::Url, &["http"], |host, url| servers::lookup(host, url).boxed()),
    check("devices", Scope::Machine, &[], |_, _| devices::devices(Path::new("/")).boxed()),
];

/// The check that all others lead to.
const LAST: &str = "lookup";

impl Host {
    /// This machine as it is now.
    pub fn here(options: Options) -> Self {
        let resolver = std::fs::read_to_string(RESOLVER).unwrap_or_default();
        Self {
            options,
            nics: nics::network_interfaces().unwrap_or_default(),
            addresses: netlink::addresses().unwrap_or_default(),
            name_servers: name_servers(&resolver),
        }
    }

    /// Makes every check.
    pub async fn examine(&self) -> Report {
        let mut begun: Vec<(&Check, Shared<BoxFuture<'_, Vec<Verdict>>>)> = Vec::new();
        for check in CHECKS {
            let needs = begun.iter().filter(|(one, _)| check.needs.contains(&one.name));
            let needs: Vec<_> = needs.map(|(need, verdicts)| (*need, verdicts.clone())).collect();
            let verdicts = async move {
                let found = needs.into_iter().map(async |(need, verdicts)| (need, verdicts.await));
                self.verdicts(check, &join_all(found).await).await
            };
            begun.push((check, verdicts.boxed().shared()));
        }
        let verdicts = join_all(begun.into_iter().map(|(_, verdicts)| verdicts)).await;
        Report::new(verdicts.concat(), LAST)
    }

    async fn verdicts(&self, check: &Check, needs: &[(&Check, Vec<Verdict>)]) -> Vec<Verdict> {
        let mut tried = Vec::new();
        let mut untried: Vec<(&str, Vec<String>)> = Vec::new();
        for subject in self.subjects(check.each) {
            match obstacle(needs, check.each, &subject) {
                None => tried.push(self.verdict(check, subject)),
                Some((_, State::Unused)) => {}
                Some((need, _)) => match untried.iter_mut().find(|(known, _)| *known == need) {
                    Some((_, subjects)) => subjects.push(subject),
                    None => untried.push((need, vec![subject])),
                },
            }
        }
        let untried = untried.into_iter();
        let untried = untried.map(|(need, names)| Verdict::not_tried(check.name, names.join(", "), need));
        join_all(tried).await.into_iter().chain(untried).collect()
    }

    async fn verdict(&self, check: &Check, subject: String) -> Verdict {
        let deadline = (check.deadline)(&self.options);
        let finding = timeout(deadline, (check.run)(self, &subject)).await.unwrap_or_else(|_| {
            let text = format!("no outcome in {} s", deadline.as_secs());
            Finding::failed(text, "The service accepts the request and does not answer: see its log")
        });
        finding.of(check.name, &subject)
    }

    /// What is checked; one without a name where there is nothing, so that its lack is found.
    fn subjects(&self, scope: Scope) -> Vec<String> {
        let found: Vec<_> = match scope {
            Scope::Interface => self.nics.iter().map(|nic| nic.name.clone()).collect(),
            Scope::Machine => Vec::new(),
            Scope::Url => self.options.api_url.0.clone(),
        };
        if found.is_empty() { vec![String::new()] } else { found }
    }
}

/// The first of the needs that does not hold for a subject, and how it went.
fn obstacle(needs: &[(&Check, Vec<Verdict>)], each: Scope, subject: &str) -> Option<(&'static str, State)> {
    needs.iter().find_map(|(need, verdicts)| {
        let own = |verdict: &&Verdict| need.each != each || verdict.subject == subject;
        if verdicts.iter().filter(own).any(|verdict| verdict.state.passes()) {
            return None;
        }
        let state = match verdicts.iter().find(own) {
            Some(verdict) if need.each == each => verdict.state,
            _ => State::NotTried,
        };
        Some((need.name, state))
    })
}

/// The servers of a resolver's configuration.
fn name_servers(text: &str) -> Vec<IpAddr> {
    let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let servers = words.filter(|words| words.first() == Some(&"nameserver"));
    servers.filter_map(|words| words.get(1)?.parse().ok()).collect()
}

#[cfg(test)]
#[path = "examination_tests.rs"]
mod tests;
