//! One wrong datagram between ipmitool and the simulator of OpenIPMI.

use crate::cells::{Operation, WrongAnswer, one_answer_is_wrong as one_is_wrong};
use crate::simulator::Simulator;
use crate::{info, node, settings};
use farrier_conductor::interfaces::{InterfaceError, ManagementInterface, PowerInterface};
use farrier_conductor::model::{BootDevice, Node, PowerState};
use farrier_drivers::ipmitool::{Bmcs, IpmiManagement, IpmiPower, IpmiSettings};
use serde_json::json;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

/// Twice the time after which ipmitool asks again.
const LATE: Duration = Duration::from_secs(2);

/// What an answer is in place of what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// None.
    Lost,
    /// The right one with another last byte, which is one of a sum or of a signature.
    Spoilt,
    /// One half of the right one.
    Half,
    /// A datagram without content.
    Empty,
    /// The right one, too late.
    Late,
    /// The right one, and the same again.
    Twice,
}

impl WrongAnswer for Wrong {
    fn all() -> Vec<Self> {
        vec![Self::Lost, Self::Spoilt, Self::Half, Self::Empty, Self::Late, Self::Twice]
    }

    fn name(self) -> String {
        format!("datagram {self:?}").to_lowercase()
    }

    /// ipmitool waits for most of them.
    fn waits(self) -> bool {
        true
    }
}

/// What stands between ipmitool and its BMC. Dropping it takes it away.
struct Between {
    port: u16,
    state: Arc<Mutex<State>>,
    _forwarding: JoinSet<()>,
}

/// The answers so far, and the number of the one that is wrong; the first is 1.
#[derive(Debug, Default)]
struct State {
    answers: Vec<String>,
    wrong: Option<(usize, Wrong)>,
}

impl Between {
    async fn start(bmc: u16) -> Self {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let port = socket.local_addr().unwrap().port();
        let (state, mut forwarding) = (Arc::<Mutex<State>>::default(), JoinSet::new());
        forwarding.spawn(forward(socket, bmc, Arc::clone(&state)));
        Self { port, state, _forwarding: forwarding }
    }
}

/// Passes on what clients ask, each of which has a socket of its own to the BMC.
async fn forward(socket: Arc<UdpSocket>, bmc: u16, state: Arc<Mutex<State>>) {
    let (mut clients, mut answering) = (HashMap::<SocketAddr, Arc<UdpSocket>>::new(), JoinSet::<()>::new());
    let mut datagram = vec![0; 2048];
    loop {
        let Ok((length, client)) = socket.recv_from(&mut datagram).await else { continue };
        let own = match clients.get(&client) {
            Some(own) => Arc::clone(own),
            None => {
                let own = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
                own.connect(("127.0.0.1", bmc)).await.unwrap();
                answering.spawn(answer(Arc::clone(&own), Arc::clone(&socket), client, Arc::clone(&state)));
                clients.insert(client, Arc::clone(&own));
                own
            }
        };
        own.send(&datagram[..length]).await.ok();
    }
}

/// Passes on what the BMC answers to a client.
async fn answer(bmc: Arc<UdpSocket>, socket: Arc<UdpSocket>, client: SocketAddr, state: Arc<Mutex<State>>) {
    let mut datagram = vec![0; 2048];
    loop {
        let Ok(length) = bmc.recv(&mut datagram).await else { continue };
        let mut right = datagram[..length].to_vec();
        let wrong = {
            let mut state = state.lock().unwrap();
            state.answers.push(kind(&right).to_owned());
            let number = state.answers.len();
            state.wrong.filter(|(at, _)| *at == number).map(|(_, wrong)| wrong)
        };
        match wrong {
            Some(Wrong::Lost) => continue,
            Some(Wrong::Spoilt) => *right.last_mut().unwrap() ^= 0x5a,
            Some(Wrong::Half) => right.truncate(length / 2),
            Some(Wrong::Empty) => right.clear(),
            Some(Wrong::Late) => tokio::time::sleep(LATE).await,
            Some(Wrong::Twice) => drop(socket.send_to(&right, client).await),
            None => {}
        }
        socket.send_to(&right, client).await.ok();
    }
}

/// What a datagram is (IPMI 2.0, table 13-16).
fn kind(datagram: &[u8]) -> &'static str {
    match datagram {
        [_, _, _, _, 0x06, 0x11, ..] => "session opened",
        [_, _, _, _, 0x06, 0x13, ..] => "RAKP 2",
        [_, _, _, _, 0x06, 0x15, ..] => "RAKP 4",
        [_, _, _, _, 0x06, ..] => "answer in the session",
        _ => "answer before the session",
    }
}

/// The machine, and what leads it.
struct Stage {
    simulator: Simulator,
    between: Between,
    bmcs: Bmcs,
    node: Node,
}

/// What is done to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    PowerState,
    PowerOn,
    BootFromNetwork,
}

impl Operation for Done {
    type Stage = Stage;
    type Wrong = Wrong;

    fn subject(self) -> &'static str {
        "OpenIPMI's simulator"
    }

    fn name(self) -> &'static str {
        match self {
            Self::PowerState => "power state",
            Self::PowerOn => "power on",
            Self::BootFromNetwork => "boot from the network once",
        }
    }

    async fn prepare(self) -> Result<Stage, InterfaceError> {
        let simulator = tokio::task::spawn_blocking(Simulator::start).await.unwrap();
        let between = Between::start(simulator.port).await;
        let mut info = info(&simulator);
        info["ipmi_port"] = json!(between.port);
        // What ipmitool itself asks again for is not cut off.
        let bmcs = Bmcs::new(IpmiSettings { command_timeout: Duration::from_secs(20), ..settings() });
        Ok(Stage { simulator, between, bmcs, node: node(&info, "uefi") })
    }

    async fn run(self, stage: &mut Stage) -> Result<(), InterfaceError> {
        let (power, node) = (IpmiPower::new(stage.bmcs.clone()), &stage.node);
        match self {
            Self::PowerState => power.power_state(node).await.map(drop),
            Self::PowerOn => power.power_on(node).await,
            Self::BootFromNetwork => {
                let management = IpmiManagement::new(stage.bmcs.clone());
                management.set_boot_device(node, BootDevice::Pxe, false).await
            }
        }
    }

    fn asked(stage: &Stage) -> Vec<String> {
        stage.between.state.lock().unwrap().answers.clone()
    }

    fn spoil(stage: &Stage, wrong: Option<(usize, Wrong)>) {
        let mut state = stage.between.state.lock().unwrap();
        let number = state.answers.len() + 1;
        state.wrong = wrong.map(|(before, wrong)| (number + before, wrong));
    }

    /// A datagram fails nothing.
    fn names(_: Wrong, _: &str, _: &str) -> bool {
        false
    }

    async fn check(self, stage: &mut Stage, _: bool) -> Result<(), String> {
        let power = IpmiPower::new(stage.bmcs.clone()).power_state(&stage.node).await;
        match (self, power) {
            (Self::PowerOn, Ok(PowerState::On)) if stage.simulator.power() == "1" => Ok(()),
            (Self::PowerState | Self::BootFromNetwork, Ok(PowerState::Off)) => Ok(()),
            (_, power) => Err(format!("the machine is {power:?}")),
        }
    }

    async fn left(self, _: Stage, _: Wrong, _: &str) -> Result<(), String> {
        Ok(())
    }
}

#[tokio::test]
async fn process_one_answer_is_wrong() {
    let all = vec![Done::PowerState, Done::PowerOn, Done::BootFromNetwork];
    one_is_wrong(all, vec![Done::PowerState]).await;
}
