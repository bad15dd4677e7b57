//! One wrong answer of a BMC that speaks IPMI, which is what ipmitool says of it, whatever it is asked for.

use crate::cells::{Operation, WrongAnswer, one_answer_is_wrong as one_is_wrong};
use crate::lost::{LOST, SPOILT, bmcs, machine};
use crate::stand_in::{StandIn, Wrong};
use farrier_conductor::interfaces::{
    ConsoleInterface, InterfaceError, ManagementInterface, PowerInterface, VendorInterface,
};
use farrier_conductor::model::{BootDevice, Node};
use farrier_drivers::ipmitool::{Bmcs, IpmiConsole, IpmiManagement, IpmiPower, IpmiVendor};
use serde_json::json;
use std::io::{Error, ErrorKind};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longest time until a console shows what the machine says.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the machine says at its console.
const SAID: &str = "horse login: ";

/// What ipmitool says, and what the page of the book calls it, in the order of what it would be by HTTP, from 401 to 503; then what
/// may be lost on the way.
const WRONGS: [(Wrong, &str); 17] = [
    (Wrong::Before(SPOILT), "RAKP 2 is wrong"),
    (Wrong::Before("Set Session Privilege Level to ADMINISTRATOR failed"), "no such privilege level"),
    (Wrong::Before("Unable to send RAW command (rsp=0xd4): Insufficient privilege level"), "0xd4"),
    (Wrong::Before("Get Device ID command failed: Requested sensor, data, or record not found"), "0xcb"),
    (Wrong::Before("Set Chassis Power Control failed: Command not supported in present state"), "0xd5"),
    (Wrong::Before("Unable to send RAW command (rsp=0xcc): Invalid data field in request"), "0xcc"),
    (Wrong::Before("Set Boot Device failed: Node busy"), "0xc0"),
    (
        Wrong::Before("Error in open session response message : no matching cipher suite"),
        "no such cipher suite",
    ),
    (Wrong::Before("Get Device ID command failed: Unspecified error"), "0xff"),
    (
        Wrong::Before("Error in open session response message : insufficient resources for session"),
        "no session free",
    ),
    (Wrong::Silence, "silence"),
    (Wrong::Before(LOST[0]), "RAKP 1 is lost"),
    (Wrong::After("Unable to get the answer"), "answer lost"),
    (Wrong::Garbage("<html>log in</html>"), "HTML"),
    (Wrong::Half, "half"),
    (Wrong::Empty, "empty"),
    (Wrong::Late, "late"),
];

impl WrongAnswer for Wrong {
    fn all() -> Vec<Self> {
        WRONGS.iter().map(|(wrong, _)| *wrong).collect()
    }

    fn name(self) -> String {
        WRONGS
            .iter()
            .find(|(wrong, _)| *wrong == self)
            .map_or_else(String::new, |(_, name)| (*name).to_owned())
    }

    fn waits(self) -> bool {
        matches!(self, Self::Silence | Self::Late)
    }
}

/// The machine, and what leads it.
struct Stage {
    program: StandIn,
    bmcs: Bmcs,
    node: Node,
    /// Where its console is kept.
    console: (IpmiConsole, TempDir),
    /// How often the machine was reset, or the like, before.
    done: usize,
}

/// What is done to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    PowerState,
    PowerOn,
    PowerOff,
    Reboot,
    Reset,
    SoftPowerOff,
    Nmi,
    BootFromDisk,
    BootFromDiskOfSupermicro,
    BootFromNetworkByBios,
    BootDevice,
    Vendor,
    EventLog,
    Raw,
    Console,
}

const ALL: [Done; 15] = [
    Done::PowerState,
    Done::PowerOn,
    Done::PowerOff,
    Done::Reboot,
    Done::Reset,
    Done::SoftPowerOff,
    Done::Nmi,
    Done::BootFromDisk,
    Done::BootFromDiskOfSupermicro,
    Done::BootFromNetworkByBios,
    Done::BootDevice,
    Done::Vendor,
    Done::EventLog,
    Done::Raw,
    Done::Console,
];

/// Those that are tried each time.
const USUAL: [Done; 2] = [Done::PowerOn, Done::BootFromDisk];

impl Operation for Done {
    type Stage = Stage;
    type Wrong = Wrong;

    fn subject(self) -> &'static str {
        "IPMI"
    }

    fn name(self) -> &'static str {
        match self {
            Self::PowerState => "power state",
            Self::PowerOn => "power on",
            Self::PowerOff => "power off",
            Self::Reboot => "reboot",
            Self::Reset => "reset",
            Self::SoftPowerOff => "soft power off",
            Self::Nmi => "NMI",
            Self::BootFromDisk => "boot from disk always",
            Self::BootFromDiskOfSupermicro => "boot from disk always, Supermicro",
            Self::BootFromNetworkByBios => "boot from the network once, BIOS",
            Self::BootDevice => "boot device",
            Self::Vendor => "vendor",
            Self::EventLog => "event log",
            Self::Raw => "raw bytes",
            Self::Console => "console",
        }
    }

    async fn prepare(self) -> Result<Stage, InterfaceError> {
        let maker = if self == Self::BootFromDiskOfSupermicro { "Supermicro" } else { "Farm" };
        let program = StandIn::new(maker);
        let node = machine(if self == Self::BootFromNetworkByBios { "bios" } else { "uefi" });
        if !matches!(self, Self::PowerOn | Self::PowerState) {
            program.switch_on();
        }
        let (bmcs, folder) = (bmcs(&program), tempfile::tempdir().unwrap());
        let console = (IpmiConsole::new(bmcs.clone(), folder.path()), folder);
        Ok(Stage { program, bmcs, node, console, done: 0 })
    }

    async fn run(self, stage: &mut Stage) -> Result<(), InterfaceError> {
        let power = IpmiPower::new(stage.bmcs.clone());
        let management = IpmiManagement::new(stage.bmcs.clone());
        stage.done = stage.program.done().len();
        let node = &stage.node;
        match self {
            Self::PowerState => power.power_state(node).await.map(drop),
            Self::PowerOn => power.power_on(node).await,
            Self::PowerOff => power.power_off(node).await,
            Self::Reboot => power.reboot(node).await,
            Self::Reset => power.reset(node).await,
            Self::SoftPowerOff => power.soft_power_off(node).await,
            Self::Nmi => management.inject_nmi(node).await,
            Self::BootFromDisk | Self::BootFromDiskOfSupermicro => {
                management.set_boot_device(node, BootDevice::Disk, true).await
            }
            Self::BootFromNetworkByBios => management.set_boot_device(node, BootDevice::Pxe, false).await,
            Self::BootDevice => management.get_boot_device(node).await.map(drop),
            Self::Vendor => management.detect_vendor(node).await.map(drop),
            Self::EventLog => {
                management.get_event_log(node, time::OffsetDateTime::UNIX_EPOCH).await.map(drop)
            }
            Self::Raw => {
                let (vendor, bytes) = (IpmiVendor::new(stage.bmcs.clone()), json!({"raw_bytes": "6 1"}));
                vendor.passthru(node, "send_raw", &bytes).await.map(drop)
            }
            Self::Console => stage.watch().await,
        }
    }

    fn why_left_out(self, request: &str, wrong: Wrong) -> Option<&'static str> {
        let is_mute = request == "sol activate" && wrong == Wrong::Silence;
        is_mute.then_some(
            "an ipmitool that says nothing has the console of a machine that says nothing; it ends by itself where the BMC does not \
             answer",
        )
    }

    fn asked(stage: &Stage) -> Vec<String> {
        stage.program.asked()
    }

    fn spoil(stage: &Stage, wrong: Option<(usize, Wrong)>) {
        match wrong {
            None => stage.program.is_right(),
            Some((before, wrong)) => {
                let number = stage.program.asked().len() + before + 1;
                stage.program.is_wrong(number, number, wrong);
            }
        }
    }

    fn names(wrong: Wrong, request: &str, error: &str) -> bool {
        let text = |text: &str| {
            let lines = text.lines().map(|line| line.trim_start_matches("> "));
            lines.collect::<Vec<_>>().join("; ")
        };
        let named = match wrong {
            Wrong::Before(said) | Wrong::After(said) | Wrong::Garbage(said) => text(said),
            Wrong::Silence | Wrong::Late => "not within".to_owned(),
            Wrong::Half => "answers".to_owned(),
            Wrong::Empty => "\"\"".to_owned(),
        };
        error.contains(request) && error.contains(&named)
    }

    async fn check(self, stage: &mut Stage, has_succeeded: bool) -> Result<(), String> {
        let Stage { program, done, .. } = stage;
        // It is begun once, whatever is told of it.
        let begun = program.done().len() - *done;
        let is_right = match self {
            Self::Reset | Self::SoftPowerOff | Self::Nmi => begun == 1 || begun == 0 && !has_succeeded,
            _ if !has_succeeded => true,
            Self::PowerOn | Self::Reboot => program.power() == "on",
            Self::PowerOff => program.power() == "off",
            Self::BootFromDisk => program.flags() == "Force Boot from default Hard-Drive",
            Self::BootFromDiskOfSupermicro => program.flags() == "Force Boot from primary remote media",
            Self::BootFromNetworkByBios => program.flags() == "Force PXE",
            Self::PowerState
            | Self::BootDevice
            | Self::Vendor
            | Self::EventLog
            | Self::Raw
            | Self::Console => true,
        };
        match is_right {
            true => Ok(()),
            false => Err(format!(
                "power {}, boot flags {:?}, {begun} times begun",
                program.power(),
                program.flags()
            )),
        }
    }

    async fn left(self, stage: Stage, _: Wrong, _: &str) -> Result<(), String> {
        stage.console.0.shut_down().await;
        Ok(())
    }
}

impl Stage {
    /// Opens the console, waits until it shows what the machine says, and closes it.
    async fn watch(&self) -> Result<(), InterfaceError> {
        let (console, _) = &self.console;
        let log = || {
            let log = console.log_file(&self.node).map(|log| std::fs::read_to_string(log).unwrap());
            log.unwrap_or_default()
        };
        let count = |log: &str| log.matches(SAID).count();
        let (before, end) = (count(&log()), Instant::now() + PATIENCE);
        console.start_console(&self.node).await?;
        while count(&log()) == before && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        console.stop_console(&self.node).await?;
        match count(&log()) > before {
            true => Ok(()),
            false => Err(InterfaceError::driver(Error::new(ErrorKind::TimedOut, log()))),
        }
    }
}

#[tokio::test]
async fn process_one_answer_is_wrong() {
    one_is_wrong(ALL.to_vec(), USUAL.to_vec()).await;
}
