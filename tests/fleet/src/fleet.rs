//! A fleet: its machines, the listener of their BMCs, and the agents that run in them.

use crate::agent::{self, AnswerSummary, AnswerTimes, IdentityError, Keys, Surroundings};
use crate::bmc::{Bmc, Served, Withheld};
use crate::file::FleetFile;
use crate::http;
use crate::journal::{Journal, JournalError};
use crate::machine::{Boot, Machine};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};

/// A fleet does not start.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The port of the BMCs cannot be had.
    #[error("port {port} of the BMCs: {source}; give another one as network.bmc-port, or 0 for any")]
    Port {
        /// The port.
        port: u16,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// No certificate can be made.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

/// Machines that can be reached. Dropping it takes them away.
#[derive(Debug)]
pub struct Fleet {
    file: Arc<FleetFile>,
    journal: Arc<Journal>,
    bmcs: Arc<[Arc<Bmc>]>,
    port: u16,
    answer_times: Arc<AnswerTimes>,
    withheld: Arc<Withheld>,
    serving: [JoinHandle<()>; 2],
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.serving.iter().for_each(JoinHandle::abort);
    }
}

impl Fleet {
    /// Starts one, whose agents that boot from the network call the conductor at `api_url`.
    ///
    /// # Errors
    ///
    /// [`FleetError`].
    pub async fn start(
        file: FleetFile,
        api_url: Option<String>,
        journal: Option<&Path>,
    ) -> Result<Self, FleetError> {
        // It fails where one was chosen before, which is as good.
        rustls::crypto::ring::default_provider().install_default().ok();
        let file = Arc::new(file);
        let journal = Arc::new(Journal::new(file.machines, journal)?);
        let keys = Keys::new(file.agents.certificates)?;
        let (sender, boots) = mpsc::unbounded_channel();
        let machine = |number| Arc::new(Machine::new(number, &file, &journal, sender.clone()));
        let withheld = Arc::<Withheld>::default();
        let bmc = |number| Arc::new(Bmc::new(machine(number), Arc::clone(&withheld)));
        let bmcs: Arc<[_]> = (0..file.machines).map(bmc).collect();
        let port = file.network.bmc_port;
        let listener = listen(file.network.first_address, port).await;
        let (listener, port) = listener.map_err(|source| FleetError::Port { port, source })?;
        let answer_times = Arc::<AnswerTimes>::default();
        let surroundings = Arc::new(Surroundings { keys, api_url, answer_times: Arc::clone(&answer_times) });
        let serving = [
            tokio::spawn(serve(listener, Arc::clone(&bmcs), file.network.first_address)),
            tokio::spawn(run(boots, Arc::clone(&bmcs), surroundings)),
        ];
        Ok(Self { file, journal, bmcs, port, answer_times, withheld, serving })
    }

    /// What it was started with.
    pub fn file(&self) -> &FleetFile {
        &self.file
    }

    /// What its machines were asked and did.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Which answers its BMCs withhold.
    pub fn withheld(&self) -> &Withheld {
        &self.withheld
    }

    /// How long the heartbeats of its agents waited for their answers.
    pub fn answer_times(&self) -> AnswerSummary {
        self.answer_times.summary()
    }

    /// A machine, where it has so many.
    pub fn machine(&self, number: u32) -> Option<&Arc<Machine>> {
        self.bmcs.get(number as usize).map(|bmc| bmc.machine())
    }

    /// URL of the BMC of a machine.
    pub fn bmc_url(&self, machine: &Machine) -> String {
        format!("http://{}:{}", machine.identity.address, self.port)
    }

    /// URL of a file that it serves.
    pub fn served(&self, file: Served) -> String {
        format!("http://{}:{}{}", self.file.network.first_address, self.port, file.path())
    }
}

/// Opens the port of the BMCs at all addresses: each machine has one of its own. Loopback addresses need no interface; others
/// are local ones of this host.
async fn listen(first: Ipv4Addr, port: u16) -> io::Result<(TcpListener, u16)> {
    if first.is_loopback() && port != 0 {
        // Somebody who listens at one of the addresses would get what is meant for a machine.
        drop(TcpListener::bind((first, port)).await?);
    }
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

/// Serves BMCs, each to who calls its address, and nobody else.
async fn serve(listener: TcpListener, bmcs: Arc<[Arc<Bmc>]>, first: Ipv4Addr) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = connections.join_next() => {}
            Ok((stream, peer)) = listener.accept() => {
                let called = stream.local_addr().ok().as_ref().and_then(|called| number(called, first));
                if let Some(bmc) = called.and_then(|number| bmcs.get(number)).cloned() {
                    connections.spawn(async move { http::serve(stream, peer, |asked| bmc.answer(asked)).await });
                }
            }
        }
    }
}

/// The number of the machine with an address.
fn number(address: &SocketAddr, first: Ipv4Addr) -> Option<usize> {
    let IpAddr::V4(address) = address.ip() else { return None };
    u32::from(address).checked_sub(u32::from(first)).map(|number| number as usize)
}

/// Runs an agent for each boot that leads to the ramdisk.
async fn run(
    mut boots: mpsc::UnboundedReceiver<Boot>,
    bmcs: Arc<[Arc<Bmc>]>,
    surroundings: Arc<Surroundings>,
) {
    let mut agents = JoinSet::new();
    loop {
        tokio::select! {
            Some(_) = agents.join_next() => {}
            Some(boot) = boots.recv() => {
                if let Some(bmc) = bmcs.get(boot.machine as usize) {
                    agents.spawn(agent::live(boot, Arc::clone(bmc.machine()), Arc::clone(&surroundings)));
                }
            }
        }
    }
}
