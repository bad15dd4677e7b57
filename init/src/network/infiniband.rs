//! DHCP over IPv4 on InfiniBand (RFC 4390). The client that PID 1 starts for other links knows Ethernet alone;
//! here a thread for each link asks, and keeps what it got.

use super::lease::{self, Lease};
use farrier_linux::dhcp::{self, Answer, Client, Question, Request};
use farrier_linux::infiniband::client_identifier;
use farrier_linux::netlink::Netlink;
use std::io;
use std::net::Ipv4Addr;
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
/// A lease that would last shorter would be nothing but questions.
const SHORTEST: Duration = Duration::from_secs(10);

/// The client of one link.
pub struct Link {
    interface: String,
    identifier: Vec<u8>,
    /// Whether nothing found out is to be used any more.
    over: Arc<AtomicBool>,
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
                if let Err(error) = self.get_and_keep() {
                    tracing::debug!(interface = self.interface, "the link cannot be used: {error}");
                    self.wait(PAUSE);
                }
            }
        });
    }

    /// Gets an address, and keeps it as long as servers agree.
    fn get_and_keep(&self) -> io::Result<()> {
        match self.get()? {
            Some(lease) => self.keep(lease, Path::new("/")),
            None => Ok(()),
        }
    }

    /// Uses a lease, with what concerns the whole system below `root`, until servers do not agree any more.
    fn keep(&self, mut lease: dhcp::Lease, root: &Path) -> io::Result<()> {
        loop {
            let (begun, time) = (Instant::now(), time_of(&lease));
            Lease::granted(&self.interface, &lease).apply(root);
            self.wait(time / 2);
            // A while is left to find another address before this one is somebody else's.
            let renewed = self.renew(lease.address, begun + time * 3 / 4);
            if self.is_over() {
                return Ok(());
            }
            match renewed {
                Some(renewed) => lease = renewed,
                None => return lease::deconfigure(root, &self.interface),
            }
        }
    }

    /// Asks to hold an address longer; nothing when no server agrees until the deadline.
    fn renew(&self, address: Ipv4Addr, deadline: Instant) -> Option<dhcp::Lease> {
        while !self.is_over() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match self.ask(Request::Keep(address), left.min(PATIENCE)) {
                Ok(Some(Answer::Given(lease))) => {
                    return Some(lease).filter(|lease| lease.address == address);
                }
                Ok(Some(Answer::Refused { .. })) => break,
                Ok(None) => {}
                Err(error) => {
                    // The link may come back in time.
                    tracing::debug!(interface = self.interface, "DHCP: {error}");
                    self.wait(LOOK);
                }
            }
        }
        None
    }

    /// Asks all servers and takes what the first one offers; nothing when none does.
    fn get(&self) -> io::Result<Option<dhcp::Lease>> {
        let Some(Answer::Given(offer)) = self.ask(Request::Discover, PATIENCE)? else { return Ok(None) };
        match self.ask(Request::Take(offer), PATIENCE)? {
            Some(Answer::Given(lease)) if !self.is_over() => Ok(Some(lease)),
            Some(Answer::Refused { server }) => {
                tracing::warn!(interface = self.interface, %server, "the DHCP server refuses its own offer");
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

/// How long a lease lasts.
fn time_of(lease: &dhcp::Lease) -> Duration {
    lease.seconds.map_or(UNSAID, |seconds| Duration::from_secs(seconds.into()).max(SHORTEST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::netlink::addresses;
    use nix::sched::{CloneFlags, unshare};
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::{Pid, gettid};
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
        Lease::granted("ib0", &lease).apply(root.path());
        assert_eq!(own_addresses(), ["ib0 192.0.2.50/24"]);
        let renewed = link.ask(Request::Keep(lease.address), PATIENCE).unwrap();
        assert!(matches!(renewed, Some(Answer::Given(same)) if same.address == lease.address));
        lease::deconfigure(root.path(), "ib0").unwrap();
        assert_eq!(own_addresses(), Vec::<String>::new());
    }

    #[test]
    fn loop_an_address_goes_with_its_lease_and_stays_with_whoever_comes_after() {
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS).unwrap();
        let server = start_server(120);
        let identifier = client_identifier(&[0x42; 20]).unwrap();
        let link = Link { interface: "ib0".into(), identifier, over: Arc::default() };
        let lease = link.get().unwrap().expect("no server answers");
        let lease = dhcp::Lease { seconds: Some(0), ..lease };
        let root = tempfile::tempdir().unwrap();
        // Killed it would take its network with it, and that the link.
        kill(Pid::from_raw(server.0.id().cast_signed()), Signal::SIGSTOP).unwrap();
        for is_down in [false, true] {
            thread::scope(|scope| {
                let kept = scope.spawn(|| link.keep(lease.clone(), root.path()));
                while own_addresses() != ["ib0 192.0.2.50/24"] {
                    assert!(!kept.is_finished(), "the lease was not used");
                    thread::sleep(Duration::from_millis(10));
                }
                if is_down {
                    ip("link set ib0 down");
                }
                kept.join().unwrap().unwrap();
            });
            assert_eq!(own_addresses(), [""; 0], "is down: {is_down}");
        }
        // Others configure the link once this is over, even with the same address.
        ip("link set ib0 up");
        link.over.store(true, Ordering::Relaxed);
        link.keep(lease, root.path()).unwrap();
        assert_eq!(own_addresses(), ["ib0 192.0.2.50/24"]);
    }

    #[test]
    fn a_lease_lasts_long_enough_to_be_used() {
        for (seconds, expected) in
            [(None, 3600), (Some(0), 10), (Some(9), 10), (Some(120), 120), (Some(u32::MAX), 4_294_967_295)]
        {
            let lease = dhcp::Lease {
                server: Ipv4Addr::LOCALHOST,
                address: Ipv4Addr::LOCALHOST,
                mask: None,
                routers: Vec::new(),
                routes: Vec::new(),
                mtu: None,
                name_servers: Vec::new(),
                domains: Vec::new(),
                host_name: None,
                seconds,
            };
            assert_eq!(time_of(&lease).as_secs(), expected);
        }
    }
}
