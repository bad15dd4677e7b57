//! A network of the conductor's own, with neighbours: hosts in namespaces of theirs, so that strangers and honest clients
//! have addresses of their own, and as many as they like.

use anyhow::{Context, Result, anyhow, bail, ensure};
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time for a namespace to be there.
const START: Duration = Duration::from_secs(10);

/// Puts the calling thread, and what it starts from then on, into an empty network, which ends with them.
///
/// # Errors
///
/// The thread has no right to it.
pub fn enter_own() -> Result<()> {
    unshare(CloneFlags::CLONE_NEWNET).context("there is no network of its own; this needs root")?;
    ip("link set lo up")
}

/// A host at a cable of its own to the calling thread's network. Dropping it ends it.
#[derive(Debug)]
pub struct Neighbour {
    holder: Child,
    number: u8,
}

impl Neighbour {
    /// Connects one, with a number that no other has.
    ///
    /// # Errors
    ///
    /// The thread is in no network of its own, or `ip` and `unshare` are missing.
    pub fn connect(number: u8) -> Result<Self> {
        let holder =
            Command::new("unshare").args(["--net", "sleep", "infinity"]).stdin(Stdio::null()).spawn();
        let neighbour = Self { holder: holder.context("cannot start unshare")?, number };
        neighbour.wait()?;
        let (cable, process) = (format!("cable{number}"), neighbour.holder.id());
        ip(&format!("link add {cable} type veth peer name cable netns {process}"))?;
        ip(&format!("addr add {}/24 dev {cable}", neighbour.gateway()))?;
        ip(&format!("addr add {}/64 dev {cable} nodad", neighbour.gateway_v6()))?;
        ip(&format!("link set {cable} up"))?;
        ip(&format!("route add {} via {}", neighbour.many(), neighbour.address()))?;
        ip(&format!("route add {} via {}", neighbour.many_v6(), neighbour.address_v6()))?;
        let within = |words: String| neighbour.ip(&words);
        within("link set lo up".to_owned())?;
        within(format!("addr add {}/24 dev cable", neighbour.address()))?;
        within(format!("addr add {}/64 dev cable nodad", neighbour.address_v6()))?;
        within("link set cable up".to_owned())?;
        within(format!("route add default via {}", neighbour.gateway()))?;
        within(format!("route add default via {}", neighbour.gateway_v6()))?;
        // Every address of these networks is its own.
        within(format!("route add local {} dev lo", neighbour.many()))?;
        within(format!("route add local {} dev lo", neighbour.many_v6()))?;
        // By IPv6, a route alone does not let anybody send from them.
        let nonlocal = neighbour.run(|| Ok(fs::write("/proc/sys/net/ipv6/ip_nonlocal_bind", "1")?));
        nonlocal.join().map_err(|_| anyhow!("the thread of a neighbour panicked"))??;
        Ok(neighbour)
    }

    /// Where it finds the conductor.
    pub fn gateway(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.number, 1)
    }

    /// Where it finds the conductor by IPv6.
    pub fn gateway_v6(&self) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0x77, self.number.into(), 0, 0, 0, 1)
    }

    /// Its address.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.number, 2)
    }

    /// One of 60,000 other addresses, in whose names it sends.
    pub fn other(&self, number: u16) -> IpAddr {
        let [high, low] = (number % 60_000).to_be_bytes();
        Ipv4Addr::new(10, 100 + self.number, high, low).into()
    }

    /// An address of the /64 network that it has.
    pub fn of_network(&self, number: u16) -> IpAddr {
        Ipv6Addr::new(0x2001, 0xdb8, 0xbad, self.number.into(), 0, 0, 1, number).into()
    }

    /// Runs something there, in a thread.
    pub fn run<T: Send + 'static>(
        &self,
        run: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> JoinHandle<Result<T>> {
        let network = format!("/proc/{}/ns/net", self.holder.id());
        thread::spawn(move || {
            setns(File::open(&network)?, CloneFlags::CLONE_NEWNET).context(network)?;
            run()
        })
    }

    fn address_v6(&self) -> Ipv6Addr {
        Ipv6Addr::new(0x2001, 0xdb8, 0x77, self.number.into(), 0, 0, 0, 2)
    }

    fn many(&self) -> String {
        format!("10.{}.0.0/16", 100 + self.number)
    }

    fn many_v6(&self) -> String {
        format!("2001:db8:bad:{:x}::/64", self.number)
    }

    /// Waits until its network is another than ours.
    fn wait(&self) -> Result<()> {
        let begin = Instant::now();
        let own = fs::read_link("/proc/thread-self/ns/net")?;
        while fs::read_link(format!("/proc/{}/ns/net", self.holder.id())).is_ok_and(|network| network == own)
        {
            ensure!(begin.elapsed() < START, "unshare made no network");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// The process that holds its network.
    pub fn process_id(&self) -> u32 {
        self.holder.id()
    }

    /// Has `ip` do something there.
    fn ip(&self, words: &str) -> Result<()> {
        let process = self.holder.id().to_string();
        let mut command = Command::new("nsenter");
        run(command.args(["--net", "--target", &process, "ip"]).args(words.split(' ')), words)
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        self.holder.kill().ok();
        self.holder.wait().ok();
    }
}

fn ip(words: &str) -> Result<()> {
    run(Command::new("ip").args(words.split(' ')), words)
}

fn run(command: &mut Command, words: &str) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().context("cannot start ip; install iproute2")?;
    match output.status.success() {
        true => Ok(()),
        false => bail!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim()),
    }
}
