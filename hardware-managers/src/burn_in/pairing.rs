//! Finding a partner for the burn-in of the network, by a coordination service.
//!
//! Machines meet in a group in etcd. A lock lets one in at a time; the first one waits in the group without
//! it, the second one keeps it until the first one has left, so that there never are three. Keys are laid out
//! as the OpenStack library tooz does it: lock `/tooz/locks<name>`, group `tooz/groups/<group>/` and members
//! below it. Each machine is a member by the address that etcd sees, so that its partner needs no DNS.

use super::BurnInError;
use super::etcd::{Etcd, Lease};
use super::network::{Pairing, Role, is_host};
use crate::error::StepError;
use crate::manager::{StepCall, StepHost};
use crate::setting::Section;
use std::net::{ToSocketAddrs, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

const URL: &str = "agent_burnin_fio_network_pairing_backend_url";
const GROUP: &str = "ironic.network-burnin";
const LOCK: &str = "/tooz/locksgroup_lock";
const TIMEOUT: Duration = Duration::from_secs(900);
const PORT: u16 = 2379;
/// How long etcd keeps what a machine that has died put there, in seconds.
const LEASE: u64 = 30;
const POLL: Duration = Duration::from_secs(1);
/// A member's capabilities, none, as msgpack.
const NO_CAPABILITIES: &[u8] = &[0xc4, 0x00];

/// Finds a partner for this machine, and its role.
///
/// # Errors
///
/// [`StepError::InvalidSetting`], or [`BurnInError::Unprepared`] when no partner came in time, or etcd does
/// not answer.
pub fn find_partner(call: &StepCall<'_>, section: Section<'_>) -> Result<Pairing, StepError> {
    let Some(backend) = section.read(URL, "etcd3+http://HOST[:PORT] or etcd3+https://…", Backend::parse)?
    else {
        let text = format!(
            "neither agent_burnin_fio_network_config nor {URL} is set in driver_info: set one of them"
        );
        return Err(BurnInError::Unprepared(text).into());
    };
    let group = section.text("agent_burnin_fio_network_pairing_group_name")?.unwrap_or(GROUP);
    let timeout = section.duration("agent_burnin_fio_network_pairing_timeout", TIMEOUT)?;
    let member = backend.own_address()?;
    Ok(pair(call.host, &backend.url, group, &member, timeout)?)
}

/// A coordination service.
#[derive(Debug, PartialEq, Eq)]
struct Backend {
    url: String,
    host: String,
    port: u16,
}

impl Backend {
    /// Reads a URL as tooz writes it; options behind a question mark tell of times, and are left out.
    fn parse(value: &serde_json::Value) -> Option<Self> {
        let (scheme, rest) = value.as_str()?.split_once("://")?;
        let scheme = match scheme {
            "etcd3+http" => "http",
            "etcd3+https" => "https",
            _ => return None,
        };
        let authority = rest.split(['/', '?']).next()?;
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
            _ => (authority, PORT),
        };
        let plain = host.trim_start_matches('[').trim_end_matches(']');
        is_host(plain).then(|| Self {
            url: format!("{scheme}://{host}:{port}"),
            host: plain.to_owned(),
            port,
        })
    }

    /// The address from which this machine reaches the service. Nothing is sent.
    fn own_address(&self) -> Result<String, BurnInError> {
        let connect = || {
            let mut addresses = (self.host.as_str(), self.port).to_socket_addrs()?;
            let address = addresses.next().ok_or(std::io::ErrorKind::NotFound)?;
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect(address)?;
            socket.local_addr()
        };
        connect().map(|address| address.ip().to_string()).map_err(|error| {
            BurnInError::Unprepared(format!("there is no way to {} ({error}): correct {URL}", self.url))
        })
    }
}

/// One machine on its way to a partner. All it put into etcd goes when it is dropped.
struct Candidate<'a> {
    etcd: Etcd<'a>,
    host: &'a dyn StepHost,
    lease: Lease,
    group: String,
    member: &'a str,
    deadline: Instant,
    kept_alive: Instant,
}

/// Joins the group, and leaves it with a partner.
fn pair(
    host: &dyn StepHost,
    url: &str,
    group: &str,
    member: &str,
    timeout: Duration,
) -> Result<Pairing, BurnInError> {
    let etcd = Etcd::new(host, url.to_owned());
    let lease = etcd.lease(LEASE)?;
    let group = format!("tooz/groups/{group}/");
    let (deadline, kept_alive) = (Instant::now() + timeout, Instant::now());
    let mut candidate = Candidate { etcd, host, lease, group, member, deadline, kept_alive };
    candidate.insist(|one| one.etcd.create(&one.group, one.group.as_bytes(), None))?;
    candidate
        .ask_until(|one| Ok(one.etcd.create(LOCK, one.member.as_bytes(), Some(&one.lease))?.then_some(())))?;
    let waiting = candidate.insist(Candidate::others)?;
    // An earlier try of this machine may have left its key behind.
    candidate.insist(Candidate::leave)?;
    candidate.insist(Candidate::join)?;
    match waiting.into_iter().next() {
        None => candidate.wait_for_second(),
        Some(partner) => candidate.follow(partner),
    }
}

impl Candidate<'_> {
    /// As the first one in the group: lets others in, and leaves when one has come.
    fn wait_for_second(&mut self) -> Result<Pairing, BurnInError> {
        self.insist(|one| one.etcd.release(LOCK, &one.lease))?;
        let partner = self.ask_until(|one| Ok(one.others()?.into_iter().next()))?;
        self.insist(Candidate::leave)?;
        Ok(Pairing { role: Role::Writer, partner })
    }

    /// As the second one: waits until the first one has seen it and left, so that no other machine joins them.
    fn follow(&mut self, partner: String) -> Result<Pairing, BurnInError> {
        self.ask_until(|one| Ok((!one.others()?.contains(&partner)).then_some(())))?;
        self.insist(Candidate::leave)?;
        self.insist(|one| one.etcd.release(LOCK, &one.lease))?;
        Ok(Pairing { role: Role::Reader, partner })
    }

    fn join(&self) -> Result<bool, BurnInError> {
        self.etcd.create(&self.key(), NO_CAPABILITIES, Some(&self.lease))
    }

    fn leave(&self) -> Result<(), BurnInError> {
        self.etcd.delete(&self.key())
    }

    /// What stands for this machine in the group.
    fn key(&self) -> String {
        format!("{}{}", self.group, self.member)
    }

    fn others(&self) -> Result<Vec<String>, BurnInError> {
        let mut members = self.etcd.below(&self.group)?;
        members.retain(|member| member != self.member);
        Ok(members)
    }

    /// Does something that may be done twice, as often as it takes.
    fn insist<T>(&mut self, act: impl Fn(&Self) -> Result<T, BurnInError>) -> Result<T, BurnInError> {
        self.ask_until(|one| act(one).map(Some))
    }

    /// Asks again and again until there is an answer, and keeps what this machine put into etcd alive meanwhile.
    /// A question that fails may succeed in a moment: a server is restarted, a switch forgets a route.
    fn ask_until<T>(
        &mut self,
        ask: impl Fn(&Self) -> Result<Option<T>, BurnInError>,
    ) -> Result<T, BurnInError> {
        loop {
            let failure = match ask(self) {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => self.keep_alive()?,
                Err(failure) => Some(failure),
            };
            if Instant::now() >= self.deadline || self.host.is_ending() {
                return Err(self.alone(failure));
            }
            if let Some(failure) = failure {
                tracing::warn!("asking again: {failure}");
            }
            thread::sleep(POLL);
        }
    }

    /// Once in a while; the answer is a failure that may pass.
    ///
    /// # Errors
    ///
    /// The lease ran out, and all is gone that this machine put into etcd.
    fn keep_alive(&mut self) -> Result<Option<BurnInError>, BurnInError> {
        if self.kept_alive.elapsed().as_secs() < LEASE / 3 {
            return Ok(None);
        }
        match self.etcd.keep_alive(&self.lease) {
            Ok(true) => {
                self.kept_alive = Instant::now();
                Ok(None)
            }
            Ok(false) => Err(BurnInError::Unprepared(format!(
                "etcd was not heard of for {LEASE} s, and has forgotten this machine: keep the connection to it \
                 steady"
            ))),
            Err(failure) => Ok(Some(failure)),
        }
    }

    fn alone(&self, failure: Option<BurnInError>) -> BurnInError {
        let last = failure.map(|failure| format!("; the last failure was: {failure}")).unwrap_or_default();
        BurnInError::Unprepared(format!(
            "no partner came to the group {} in time: clean an even number of machines at once, or raise \
             agent_burnin_fio_network_pairing_timeout{last}",
            self.group
        ))
    }
}

impl Drop for Candidate<'_> {
    fn drop(&mut self) {
        // Otherwise it runs out by itself.
        if let Err(error) = self.etcd.revoke(&self.lease) {
            tracing::warn!("{error}");
        }
    }
}

#[cfg(test)]
#[path = "pairing_tests.rs"]
mod tests;
