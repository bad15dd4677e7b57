//! Finding the conductor by multicast DNS (section 2.8).
//!
//! Every host on the network can answer. No query is sent unless the operator wants it, and an answer
//! sets nothing but the URL and the options that the operator allowed (S05).

use crate::identity::advertise;
use crate::settings::options::Options;
use mdns_sd::{IfKind, ResolvedService, ServiceDaemon, ServiceEvent};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Domain of OpenStack's services.
const DOMAIN: &str = "_openstack._tcp.local.";
/// The service of a conductor's API.
const API: &str = "baremetal";
/// The service that takes inspection data.
const INSPECTION: &str = "baremetal-introspection";
/// Path of that service.
const INSPECTION_PATH: &str = "/v1/continue";
/// How long one attempt waits.
const PATIENCE: Duration = Duration::from_secs(3);
/// Beginning of the keys that set options.
const OVERRIDE: &str = "ipa_";

/// No service was found.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The network does not carry multicast.
    #[error("multicast DNS cannot be used ({0}): give ipa-api-url=http://… instead")]
    Unusable(#[from] mdns_sd::Error),
    /// There was no answer.
    #[error(
        "no service answered for {service}.{DOMAIN} in {seconds} s: check that the conductor announces itself on \
         this network, or give its URL"
    )]
    NoAnswer {
        /// Name of the service.
        service: &'static str,
        /// Time spent.
        seconds: u64,
    },
}

/// What a service says about itself.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    url: String,
    /// Texts by option name.
    overrides: Vec<(String, String)>,
}

/// Whether to send queries.
pub fn is_wanted(options: &Options) -> bool {
    asks_for_api(options) || options.inspection_callback_url.is_mdns()
}

fn asks_for_api(options: &Options) -> bool {
    options.api_url.is_mdns() || (options.use_mdns && options.api_url.0.is_empty())
}

/// Puts the URLs that are found into the options. Blocks while it waits for answers.
///
/// # Errors
///
/// [`DiscoveryError`] when `mdns` was given as a URL; without that the agent continues with its settings.
pub fn resolve(options: &mut Options) -> Result<(), DiscoveryError> {
    if asks_for_api(options) {
        match find(API, options) {
            Ok(answer) => {
                options.api_url.0 = vec![answer.url];
                take_overrides(options, answer.overrides);
            }
            Err(error) if options.api_url.is_mdns() => return Err(error),
            Err(error) => tracing::warn!("{error}"),
        }
    }
    // An answer may have set it.
    if options.inspection_callback_url.is_mdns() {
        let answer = find(INSPECTION, options)?;
        options.inspection_callback_url.0 = vec![format!("{}{INSPECTION_PATH}", answer.url)];
        take_overrides(options, answer.overrides);
    }
    Ok(())
}

fn find(service: &'static str, options: &Options) -> Result<Answer, DiscoveryError> {
    let daemon = ServiceDaemon::new()?;
    let answer = ask(&daemon, service, options);
    daemon.shutdown().ok();
    let answer = answer?;
    tracing::info!(service, url = answer.url, "found by multicast DNS");
    Ok(answer)
}

fn ask(daemon: &ServiceDaemon, service: &'static str, options: &Options) -> Result<Answer, DiscoveryError> {
    if let Some(interfaces) = &options.mdns_interfaces {
        daemon.disable_interface(IfKind::All)?;
        for name in &interfaces.0 {
            let kind = name.parse().map_or_else(|_| IfKind::Name(name.clone()), IfKind::Addr);
            daemon.enable_interface(kind)?;
        }
    }
    let full_name = format!("{service}.{DOMAIN}");
    let budget = PATIENCE * options.mdns_lookup_attempts.max(1);
    let deadline = Instant::now() + budget;
    let events = daemon.browse(DOMAIN)?;
    // What is in the queue is taken after the deadline too, and a network can fill it for ever.
    while Instant::now() < deadline
        && let Ok(event) = events.recv_deadline(deadline)
    {
        if let ServiceEvent::ServiceResolved(found) = event
            && found.get_fullname().eq_ignore_ascii_case(&full_name)
            && let Some(answer) = read(&found)
        {
            return Ok(answer);
        }
    }
    Err(DiscoveryError::NoAnswer { service, seconds: budget.as_secs() })
}

fn read(service: &ResolvedService) -> Option<Answer> {
    let text = |key: &str| service.get_property_val_str(key).filter(|text| !text.is_empty());
    let mut addresses: Vec<_> = service.get_addresses().iter().map(|one| one.to_ip_addr()).collect();
    addresses.sort();
    let host = host(service.get_hostname(), &addresses, advertise::source_towards)?;
    let port = service.get_port();
    let scheme = text("protocol").unwrap_or(if port == 80 { "http" } else { "https" });
    let path = text("path").unwrap_or_default().trim_matches('/');
    let url = format!("{scheme}://{host}:{port}/{path}").trim_end_matches('/').to_owned();
    if scheme != "http" && scheme != "https" {
        tracing::warn!(scheme, "an answer by multicast DNS has an unknown protocol; it is ignored");
        return None;
    }
    let overrides = service.get_properties().iter().filter_map(|property| {
        let name = property.key().strip_prefix(OVERRIDE)?;
        Some((name.to_owned(), property.val_str().to_owned()))
    });
    Some(Answer { url, overrides: overrides.collect() })
}

/// The name of the server if others can resolve it, else the address that can be reached best.
fn host(name: &str, addresses: &[IpAddr], route: impl Fn(IpAddr) -> Option<IpAddr>) -> Option<String> {
    if !name.ends_with(".local.") {
        return Some(name.trim_end_matches('.').to_owned());
    }
    let outside = || addresses.iter().copied().filter(|address| !address.is_loopback());
    let address = outside().find(|address| route(*address).is_some()).or_else(|| outside().next())?;
    Some(advertise::Host::from(address).url_form())
}

/// Sets the options that may be set so, and names the others.
fn take_overrides(options: &mut Options, overrides: Vec<(String, String)>) {
    for (name, text) in overrides {
        if !options.mdns_allowed_overrides.0.contains(&name) {
            tracing::warn!(
                option = name,
                "an answer by multicast DNS sets an option that [mdns]allowed_overrides does not name; the agent ignores it"
            );
        } else if let Err(error) = options.set_by_name(&name, &text) {
            tracing::warn!("multicast DNS: {error}");
        }
    }
}

#[cfg(test)]
mod tests;
