//! Who leads the machine, and all that is different for a test under each.

use crate::horse::Hand;
use farrier_tests::conductor::farrier::Farrier;
use farrier_tests::conductor::ironic::{Cleaning, Ironic};
use farrier_tests::conductor::node_api::{Conductor, Control};
use farrier_tests::environment;
use farrier_tests::images::server::{ImageServer, Reply};
use farrier_tests::machine::console::Typist;
use farrier_tests::machine::console_record::ConsoleRecord;
use farrier_tests::machine::{EMULATED, Hardware};
use std::path::{Path, PathBuf};

/// Whom a test is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Led {
    ByIronic,
    /// By one that writes to the disk which the agent exports.
    ByIronicWithIscsi,
    /// On a machine that it runs itself.
    ByFarrier,
    /// By `farrier`, which knows the machine by its BMC.
    ThroughBmc,
}

/// A conductor that has begun.
pub enum Leader {
    Ironic(Ironic),
    /// `farrier`, and the console of the machine where it runs that itself.
    Farrier(Farrier, Option<OwnConsole>),
}

/// The console of a machine that `farrier` runs itself.
pub struct OwnConsole {
    /// That of the last power-on.
    file: PathBuf,
    _record: ConsoleRecord,
}

/// No disk comes late.
const QUICK: &str = "ipa-disk-wait-attempts=1";

/// Parameters of a ramdisk whose conductor knows neither where the console is, nor where the agent is reached.
fn parameters_by_hand(hardware: &Hardware) -> String {
    let port = hardware.agent_port;
    format!("{QUICK} console=ttyS0 ipa-advertise-host=127.0.0.1 ipa-advertise-port={port}")
}

impl Leader {
    /// Starts the conductor with its state in `folder`, for the ramdisk in `dist` and images of `server`.
    pub fn start(
        led: Led,
        folder: &Path,
        dist: &Path,
        server: &ImageServer,
        hardware: &Hardware,
        cleaning: Cleaning,
    ) -> Self {
        match led {
            Led::ByIronic => {
                let installed = environment::path("FARRIER_IRONIC");
                println!("with {}", installed.display());
                // Ironic looks whether the image exists, but only the machine reaches 10.0.2.2.
                Self::Ironic(Ironic::start(&installed, folder, dist, &server.proxy(), cleaning).unwrap())
            }
            Led::ByIronicWithIscsi => {
                let installed = environment::path("FARRIER_IRONIC_WITH_ISCSI");
                // It fetches the image itself, from an address that only the machine reaches.
                let (proxy, parameters) = (server.proxy(), parameters_by_hand(hardware));
                Self::Ironic(Ironic::start_with_iscsi(&installed, folder, dist, &proxy, &parameters).unwrap())
            }
            Led::ByFarrier => {
                let farrier = Farrier::start(&environment::path("FARRIER_BIN"), folder, cleaning).unwrap();
                let file = hardware.folder.join("console-of-this-boot.log");
                let record = ConsoleRecord::of(&file, hardware.console().file()).unwrap();
                Self::Farrier(farrier, Some(OwnConsole { file, _record: record }))
            }
            Led::ThroughBmc => {
                let program = environment::path("FARRIER_BIN");
                let loaders = environment::path("FARRIER_BOOT_LOADERS");
                let farrier = Farrier::start_with_bmcs(&program, folder, dist, &loaders, cleaning).unwrap();
                Self::Farrier(farrier, None)
            }
        }
    }

    pub fn conductor(&self) -> &dyn Conductor {
        match self {
            Self::Ironic(ironic) => ironic,
            Self::Farrier(farrier, _) => farrier,
        }
    }

    /// The script with which a machine begins to boot by iPXE.
    pub fn ipxe_script(&self) -> String {
        match self {
            Self::Ironic(ironic) => ironic.ipxe_script(),
            Self::Farrier(farrier, _) => farrier.ipxe_script(),
        }
    }

    /// A server of the ISO in a folder with a ramdisk, for a conductor that reads media of servers in parts. It makes one of
    /// kernel and ramdisk for rescues.
    pub fn iso(&self, dist: &Path) -> Option<ImageServer> {
        let serve = || ImageServer::start(vec![Reply::File(dist.join("farrier.iso"))]).unwrap();
        matches!(self, Self::Farrier(..)).then(serve)
    }

    /// Whether a rescued machine stays on that was booted by virtual media.
    pub fn rescues_by_virtual_media(&self) -> bool {
        match self {
            Self::Ironic(ironic) => ironic.rescues_by_virtual_media(),
            Self::Farrier(..) => true,
        }
    }

    /// How the machine is controlled where no BMC is.
    pub fn control<'a>(&'a self, hardware: &'a Hardware, arguments: &'a [String]) -> Control<'a> {
        match self {
            Self::Farrier(_, Some(console)) => Control::Qemu { hardware, arguments, console: &console.file },
            Self::Ironic(_) | Self::Farrier(_, None) => Control::Hand,
        }
    }

    /// Who boots what a conductor says that is not able to.
    pub fn hand(&self, control: Control<'_>, fast_track: bool) -> Option<Hand<'_>> {
        match (self, control) {
            (Self::Ironic(ironic), Control::Hand) => Some(Hand { ironic, machine: None, fast_track }),
            _ => None,
        }
    }

    /// Kernel parameters of the ramdisk, besides those of the conductor.
    pub fn parameters(&self, hardware: &Hardware) -> String {
        match self {
            Self::Ironic(_) => parameters_by_hand(hardware),
            // The driver says where the console is, and where the agent is reached.
            Self::Farrier(_, Some(_)) => format!("{QUICK} {EMULATED}"),
            Self::Farrier(_, None) => format!("{} {EMULATED}", parameters_by_hand(hardware)),
        }
    }

    /// Arguments of QEMU for what its conductor needs to reach of the machine besides the agent.
    pub fn network_arguments(&self) -> Vec<String> {
        match self {
            Self::Ironic(ironic) => ironic.network_arguments(),
            Self::Farrier(..) => Vec::new(),
        }
    }

    /// Whether this is where the agent of the machine is called.
    pub fn calls(&self, hardware: &Hardware, url: &str) -> bool {
        match self {
            // The driver takes a free port at each power-on.
            Self::Farrier(_, Some(_)) => url.starts_with("https://127.0.0.1:"),
            Self::Ironic(_) | Self::Farrier(_, None) => {
                url == format!("https://127.0.0.1:{}", hardware.agent_port)
            }
        }
    }

    /// Somebody at the console of a node's machine, which is on.
    pub fn typist(&self, hardware: &Hardware, node: &str) -> Typist {
        let console = hardware.console();
        match self {
            Self::Farrier(farrier, Some(_)) => console.typist_by(&farrier.console_socket(node)).unwrap(),
            Self::Ironic(_) | Self::Farrier(_, None) => console.typist(hardware.keyboard_port).unwrap(),
        }
    }

    /// Whether services need fast track: Ironic 26.1.6 answers the lookup of an agent in this state only with it.
    pub fn services_by_fast_track(&self) -> bool {
        matches!(self, Self::Ironic(_))
    }
}
