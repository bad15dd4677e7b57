//! Who leads the machine, and all that is different for a test under each.

use crate::horse::Hand;
use farrier_tests::console::Typist;
use farrier_tests::console_record::ConsoleRecord;
use farrier_tests::environment;
use farrier_tests::farrier::Farrier;
use farrier_tests::image_server::ImageServer;
use farrier_tests::ironic::{Cleaning, Ironic};
use farrier_tests::machine::{EMULATED, Hardware};
use farrier_tests::node_api::{Conductor, Control};
use std::path::{Path, PathBuf};

/// Whom a test is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Led {
    ByIronic,
    ByFarrier,
}

/// A conductor that has begun.
pub enum Leader {
    Ironic(Ironic),
    Farrier(Machines),
}

/// `farrier`, which runs the machine itself.
pub struct Machines {
    farrier: Farrier,
    /// The serial console of the last power-on.
    console: PathBuf,
    _record: ConsoleRecord,
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
            Led::ByFarrier => {
                let farrier = Farrier::start(&environment::path("FARRIER_BIN"), folder, cleaning).unwrap();
                let console = hardware.folder.join("console-of-this-boot.log");
                let record = ConsoleRecord::of(&console, hardware.console().file()).unwrap();
                Self::Farrier(Machines { farrier, console, _record: record })
            }
        }
    }

    pub fn conductor(&self) -> &dyn Conductor {
        match self {
            Self::Ironic(ironic) => ironic,
            Self::Farrier(machines) => &machines.farrier,
        }
    }

    /// The real Ironic.
    pub fn ironic(&self) -> &Ironic {
        match self {
            Self::Ironic(ironic) => ironic,
            Self::Farrier(_) => panic!("this test is about Ironic"),
        }
    }

    /// How the machine is controlled where no BMC is.
    pub fn control<'a>(&'a self, hardware: &'a Hardware, arguments: &'a [String]) -> Control<'a> {
        match self {
            Self::Ironic(_) => Control::Hand,
            Self::Farrier(machines) => Control::Qemu { hardware, arguments, console: &machines.console },
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
        const QUICK: &str = "ipa-disk-wait-attempts=1";
        match self {
            Self::Ironic(_) => {
                let port = hardware.agent_port;
                format!("console=ttyS0 {QUICK} ipa-advertise-host=127.0.0.1 ipa-advertise-port={port}")
            }
            // Its driver says where the console is, and where the agent is reached.
            Self::Farrier(_) => format!("{QUICK} {EMULATED}"),
        }
    }

    /// Whether this is where the agent of the machine is called.
    pub fn calls(&self, hardware: &Hardware, url: &str) -> bool {
        match self {
            Self::Ironic(_) => url == format!("https://127.0.0.1:{}", hardware.agent_port),
            // Its driver takes a free port at each power-on.
            Self::Farrier(_) => url.starts_with("https://127.0.0.1:"),
        }
    }

    /// Somebody at the console of a node's machine, which is on.
    pub fn typist(&self, hardware: &Hardware, node: &str) -> Typist {
        let console = hardware.console();
        match self {
            Self::Ironic(_) => console.typist(hardware.keyboard_port).unwrap(),
            Self::Farrier(machines) => console.typist_by(&machines.farrier.console_socket(node)).unwrap(),
        }
    }

    /// Whether services need fast track: Ironic 26.1.6 answers the lookup of an agent in this state only with it.
    pub fn services_by_fast_track(&self) -> bool {
        matches!(self, Self::Ironic(_))
    }
}
