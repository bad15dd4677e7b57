//! DHCP over IPv4 on InfiniBand (RFC 4390). The client that PID 1 starts for other links knows Ethernet alone;
//! here a thread for each link asks, and keeps what it got.

use super::dhcp_event::{self, Lease};
use farrier_hardware::inventory::nics::client_identifier;
use farrier_linux::dhcp::{self, Answer, Client, Question, Request};
use farrier_linux::netlink::Netlink;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How long servers are asked at a time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause after a server has refused, or while the link is down.
const PAUSE: Duration = Duration::from_secs(5);
/// How often a thread that waits looks whether its work is over.
const LOOK: Duration = Duration::from_secs(1);
/// A lease of which the server does not say how long it lasts.
const UNSAID: Duration = Duration::from_secs(3600);

/// The client of one link.
pub struct Link {
    interface: String,
    identifier: Vec<u8>,
    /// Whether nothing found out is to be used any more.
    over: Arc<AtomicBool>,
}

/// Why a conversation ended.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("the link cannot be used: {0}")]
    Link(#[from] io::Error),
    #[error("{0:#}")]
    Lease(#[from] anyhow::Error),
}

impl Link {
    /// The client of an InfiniBand link; nothing for other links.
    pub fn of(interface: &str, over: Arc<AtomicBool>) -> Option<Self> {
        let links = Netlink::open().and_then(|netlink| netlink.links()).unwrap_or_default();
        let link = links.into_iter().find(|link| link.name == interface)?;
        let identifier = client_identifier(&link.hardware_address)?;
        Some(Self { interface: interface.to_owned(), identifier, over })
    }

    /// Asks in a thread of its own.
    pub fn start(self) {
        thread::spawn(move || {
            while !self.is_over() {
                if let Err(fault) = self.get_and_keep() {
                    tracing::debug!(interface = self.interface, "DHCP: {fault}");
                    self.wait(PAUSE);
                }
            }
        });
    }

    /// Gets an address, and keeps it as long as servers agree.
    fn get_and_keep(&self) -> Result<(), Fault> {
        let Some(mut lease) = self.get()? else { return Ok(()) };
        loop {
            Lease::granted(&self.interface, &lease)?.apply(Path::new("/"))?;
            let time = lease.seconds.map_or(UNSAID, |seconds| Duration::from_secs(seconds.into()));
            self.wait(time / 2);
            if self.is_over() {
                return Ok(());
            }
            // A while is left to find another address before this one is somebody else's.
            match self.ask(Request::Keep(lease.address), time / 4)? {
                Some(Answer::Given(renewed)) => lease = renewed,
                _ => return Ok(dhcp_event::deconfigure(&self.interface)?),
            }
        }
    }

    /// Asks all servers and takes what the first one offers; nothing when none does.
    fn get(&self) -> Result<Option<dhcp::Lease>, Fault> {
        let Some(Answer::Given(offer)) = self.ask(Request::Discover, PATIENCE)? else { return Ok(None) };
        match self.ask(Request::Take(offer), PATIENCE)? {
            Some(Answer::Given(lease)) if !self.is_over() => Ok(Some(lease)),
            Some(Answer::Refused { server }) => {
                tracing::warn!(interface = self.interface, %server, "the DHCP server refuses what it offered");
                self.wait(PAUSE);
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn ask(&self, request: Request, patience: Duration) -> io::Result<Option<Answer>> {
        let question = Question {
            interface: &self.interface,
            client: Client::Infiniband(self.identifier.clone()),
            transaction: rand::random(),
            request,
            host_name: None,
        };
        dhcp::ask(&question, patience)
    }

    fn wait(&self, time: Duration) {
        let started = Instant::now();
        while !self.is_over() && started.elapsed() < time {
            thread::sleep(LOOK.min(time));
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::netlink::addresses;
    use nix::sched::{CloneFlags, unshare};
    use nix::unistd::gettid;
    use std::process::{Child, Command, Stdio};
    use std::sync::mpsc::channel;

    /// A real server in a network of its own, at the other end of the link `ib0`.
    struct Server(Child);

    impl Drop for Server {
        fn drop(&mut self) {
            self.0.kill().ok();
            self.0.wait().ok();
        }
    }

    fn ip(words: &str) {
        assert!(Command::new("ip").args(words.split(' ')).status().unwrap().success(), "ip {words}");
    }

    fn start_server(lease_seconds: u32) -> Server {
        ip("link add ib0 type veth peer name server");
        let (told, number) = channel();
        let (ready, go) = channel::<()>();
        let server = thread::spawn(move || {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            told.send(gettid()).unwrap();
            go.recv().unwrap();
            ip("addr add 192.0.2.1/24 dev server");
            ip("link set server up");
            let range = format!("192.0.2.50,192.0.2.50,{lease_seconds}");
            let mut dnsmasq = Command::new("dnsmasq");
            dnsmasq.args(["--conf-file=/dev/null", "--no-daemon", "--port=0", "--leasefile-ro", "--no-ping"]);
            dnsmasq.args(["--interface=server", "--dhcp-range", &range, "--user=root"]);
            dnsmasq.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        });
        ip(&format!("link set server netns {}", number.recv().unwrap()));
        ready.send(()).unwrap();
        ip("link set ib0 up");
        Server(server.join().unwrap())
    }

    fn own_addresses() -> Vec<String> {
        let found = addresses().unwrap().into_iter().filter(|one| one.address.is_ipv4());
        found.map(|one| format!("{} {}/{}", one.interface, one.address, one.prefix)).collect()
    }

    /// The client speaks as on InfiniBand, which nothing emulates, to a server over Ethernet.
    #[test]
    fn loop_a_real_server_gives_an_address_and_lets_it_be_kept() {
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS).unwrap();
        // The shortest lease that the server gives.
        let _server = start_server(120);
        let identifier = client_identifier(&[0x42; 20]).unwrap();
        let link = Link { interface: "ib0".into(), identifier, over: Arc::default() };
        let Some(lease) = link.get().unwrap() else { panic!("no server answers") };
        assert_eq!((lease.server, lease.seconds), ([192, 0, 2, 1].into(), Some(120)));
        assert_eq!(lease.routers, [lease.server]);
        // The name servers of the machine that runs the test are its own.
        let root = tempfile::tempdir().unwrap();
        Lease::granted("ib0", &lease).unwrap().apply(root.path()).unwrap();
        assert_eq!(own_addresses(), ["ib0 192.0.2.50/24"]);
        let renewed = link.ask(Request::Keep(lease.address), PATIENCE).unwrap();
        assert!(matches!(renewed, Some(Answer::Given(same)) if same.address == lease.address));
        dhcp_event::deconfigure("ib0").unwrap();
        assert_eq!(own_addresses(), Vec::<String>::new());
    }
}
