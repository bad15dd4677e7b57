//! The process of an agent: it listens, is heard, and runs what it is told, until it crashes or the machine goes off.

use super::commands::Agent;
use super::conductor::{Conductor, Found};
use super::identity::Identity;
use super::interface;
use crate::http;
use crate::journal::Side;
use crate::machine::Machine;
use crate::seed::Seed;
use farrier_protocol::command::CommandResult;
use farrier_protocol::heartbeat::Heartbeat;
use std::future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_rustls::TlsAcceptor;

/// What the agent says of its version.
const VERSION: &str = "0.1.0";
/// Pause after a heartbeat that was not taken (contract, 2.4).
const AFTER_FAILURE: Duration = Duration::from_secs(5);
/// Shortest pause between two heartbeats of which the second is forced.
const FORCED: Duration = Duration::from_secs(5);
/// Longest time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);
/// Pause before the address is asked for again that an earlier process had.
const BIND_PAUSE: Duration = Duration::from_millis(20);

/// What a command has the process do.
#[derive(Debug)]
pub enum Order {
    /// Run this beside everything else.
    Run(CommandResult, serde_json::Map<String, serde_json::Value>),
    /// Crash now.
    Crash,
    /// Answer nobody any more, and call nobody.
    Leave,
}

/// A process.
#[derive(Debug)]
pub struct Process {
    agent: Arc<Agent>,
    orders: mpsc::UnboundedReceiver<Order>,
    forced: watch::Receiver<u64>,
    /// Closed when the machine goes off.
    ends: watch::Receiver<()>,
}

impl Process {
    /// One with the commands that it knows from before.
    pub fn new(
        machine: Arc<Machine>,
        identity: Arc<Identity>,
        found: Found,
        history: Vec<CommandResult>,
        ends: watch::Receiver<()>,
    ) -> Self {
        let (sender, orders) = mpsc::unbounded_channel();
        let (force, forced) = watch::channel(0);
        let agent = Arc::new(Agent::new(machine, identity, found, history, sender, force));
        Self { agent, orders, forced, ends }
    }

    /// Runs until it crashes, and gives what the next process knows.
    pub async fn run(mut self, conductor: &Conductor) -> Vec<CommandResult> {
        let agent = Arc::clone(&self.agent);
        let Some(listener) = self.listen().await else { return Vec::new() };
        // They end with this function.
        let mut tasks = JoinSet::new();
        let heartbeats = heartbeats(&agent, conductor, self.forced.clone());
        tokio::pin!(heartbeats);
        loop {
            tokio::select! {
                () = &mut heartbeats => {}
                Some(_) = tasks.join_next() => {}
                Ok((stream, peer)) = listener.accept() => {
                    tasks.spawn(serve(Arc::clone(&agent), stream, peer));
                }
                Some(order) = self.orders.recv() => match order {
                    Order::Run(command, parameters) => {
                        tasks.spawn(Arc::clone(&agent).run(command, parameters));
                    }
                    Order::Crash => {
                        agent.machine.note(Side::Machine, None, "agent crashes", "");
                        return agent.left_behind();
                    }
                    Order::Leave => break,
                },
            }
        }
        drop(listener);
        // The answer to who had it leave is on its way still.
        while tasks.join_next().await.is_some() {}
        future::pending().await
    }

    /// Opens its port; nothing where the machine goes off before that is free.
    async fn listen(&mut self) -> Option<TcpListener> {
        let machine = &self.agent.machine;
        let address = SocketAddr::from((machine.identity.address, machine.file().network.agent_port));
        loop {
            match TcpListener::bind(address).await {
                Ok(listener) => return Some(listener),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => {
                    machine.note(Side::Machine, None, "listen", format!("{address}: {error}"));
                    return None;
                }
            }
            tokio::select! {
                () = sleep(BIND_PAUSE) => {}
                _ = self.ends.changed() => return None,
            }
        }
    }
}

async fn serve(agent: Arc<Agent>, stream: TcpStream, peer: SocketAddr) {
    let acceptor = TlsAcceptor::from(Arc::clone(&agent.identity.tls));
    match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => http::serve(stream, peer, |asked| interface::answer(&agent, asked)).await,
        Ok(Err(error)) => tracing::debug!("handshake with {peer}: {error}"),
        Err(_) => tracing::debug!("handshake with {peer}: not within {HANDSHAKE:?}"),
    }
}

/// Sends heartbeats for ever: by the clock, and when a command has ended.
async fn heartbeats(agent: &Agent, conductor: &Conductor, mut forced: watch::Receiver<u64>) {
    let (machine, found) = (&agent.machine, &agent.found);
    let heartbeat = Heartbeat {
        callback_url: format!("https://{}:{}", machine.identity.address, machine.file().network.agent_port),
        agent_token: Some(found.token.clone()),
        agent_version: Some(VERSION.to_owned()),
        agent_verify_ca: Some(agent.identity.pem.clone()),
        ..Heartbeat::default()
    };
    let seed = Seed(machine.file().seed.0 ^ u64::from(machine.identity.number));
    for number in 0.. {
        let sent = Instant::now();
        forced.mark_unchanged();
        let chance = seed.draw("heartbeat", number).fraction();
        let pause = match conductor.heartbeat(&found.node, &heartbeat).await {
            true => found.heartbeat_timeout.mul_f64(0.3 + 0.3 * chance),
            false => AFTER_FAILURE.mul_f64(1.0 + chance),
        };
        tokio::select! {
            () = sleep(pause) => {}
            Ok(()) = forced.changed() => sleep_until(sent + machine.file().shortened(FORCED)).await,
        }
    }
}
