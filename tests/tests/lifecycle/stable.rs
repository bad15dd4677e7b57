//! A conductor, an image, and the parts of a machine with a root disk and another one.

use crate::disks;
use crate::horse::Horse;
use crate::leader::{Leader, Led};
use crate::system::System;
use farrier_tests::bmc::redfish::Bmc;
use farrier_tests::conductor::ironic::Cleaning;
use farrier_tests::conductor::node_api::{Control, Enrolment, Node};
use farrier_tests::environment;
use farrier_tests::machine::monitor::Monitor;
use farrier_tests::machine::{self, Hardware, free_port};
use farrier_tests::ramdisk::killer;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const MIB: usize = 1 << 20;
const ROOT_BYTES: u64 = 4 << 30;
const OTHER_BYTES: usize = 64 * MIB;
const MAC: &str = "52:54:00:fa:00:03";

pub struct Stable {
    pub leader: Leader,
    pub system: System,
    pub dist: PathBuf,
    pub hardware: Hardware,
    /// How its firmware boots, in the inventory's word.
    pub boot_mode: &'static str,
    /// Further disks, and the arguments of QEMU that bring them into the machine.
    pub further: Vec<PathBuf>,
    pub arguments: Vec<String>,
    _folder: TempDir,
}

impl Stable {
    pub fn new(led: Led) -> Self {
        Self::with_ramdisk(led, "FARRIER_DIST")
    }

    /// One whose ramdisk has the Python agent, which needs more memory, and a system that it can make bootable.
    pub fn with_python_agent(led: Led) -> Self {
        let mut stable = Self::with_ramdisk(led, "FARRIER_DIST_PYTHON_AGENT");
        stable.system = System::debian();
        stable.arguments.extend(["-m".into(), "3072".into()]);
        stable
    }

    fn with_ramdisk(led: Led, dist: &str) -> Self {
        Self::with_disks(
            led,
            Cleaning::Metadata,
            |_| environment::path(dist),
            |root, other| {
                File::create(root).unwrap().set_len(ROOT_BYTES).unwrap();
                fs::write(other, vec![0xaa; OTHER_BYTES]).unwrap();
            },
        )
    }

    /// One with empty disks of equal size, for a system that boots from any of them.
    pub fn with_equal_disks(led: Led, serials: &[&'static str], bytes: u64) -> Self {
        let mut stable = Self::new(led);
        stable.system = System::debian();
        stable.hardware.disks = serials
            .iter()
            .map(|serial| {
                let file = stable.hardware.folder.join(serial);
                File::create(&file).unwrap().set_len(bytes).unwrap();
                (file, *serial)
            })
            .collect();
        stable
    }

    /// One with an asset tag, whose ramdisk brings a manager that checks it.
    pub fn with_asset_tag(tag: &str) -> Self {
        let mut stable = Self::with_ramdisk(Led::ByIronic, "FARRIER_DIST_PYTHON");
        // Python does not fit where Farrier does.
        let arguments = ["-m".into(), "512".into(), "-smbios".into(), format!("type=3,asset={tag}")];
        stable.arguments.extend(arguments);
        stable
    }

    /// One with four full disks of three kinds, under a conductor that has all of a disk erased.
    pub fn with_full_disks(led: Led) -> Self {
        let fill = |disk: &Path| disks::fill(disk, OTHER_BYTES);
        let mut stable = Self::with_disks(
            led,
            Cleaning::Devices,
            |_| environment::path("FARRIER_DIST"),
            |root, other| {
                fill(root);
                fill(other);
            },
        );
        for (serial, device) in [("NVME", "nvme"), ("SATA", "ide-hd")] {
            let file = stable.hardware.folder.join(format!("{serial}.img"));
            fill(&file);
            let drive = machine::drive(serial, &file);
            let device = format!("{device},drive={serial},serial={serial}");
            stable.arguments.extend(["-drive".into(), drive, "-device".into(), device]);
            stable.further.push(file);
        }
        stable
    }

    /// One with two full disks whose writes can be held up, and with a manager in its ramdisk that kills the agent.
    pub fn with_killer() -> Self {
        let ramdisk = |folder: &Path| killer::ramdisk(folder).unwrap();
        let mut stable = Self::with_disks(Led::ByIronic, Cleaning::Metadata, ramdisk, |root, other| {
            // Room for the image, and for the partition of the config drive behind it.
            disks::fill(root, 2 * OTHER_BYTES);
            disks::fill(other, OTHER_BYTES);
        });
        stable.arguments.extend(["-m".into(), "512".into()]);
        stable.arguments.extend(Monitor::arguments(&stable.monitor_socket()));
        stable
    }

    /// Where QEMU listens, if it does.
    pub fn monitor_socket(&self) -> PathBuf {
        self.hardware.folder.join("monitor")
    }

    fn with_disks(
        led: Led,
        cleaning: Cleaning,
        dist: impl FnOnce(&Path) -> PathBuf,
        make: impl FnOnce(&Path, &Path),
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let dist = dist(folder.path());
        let (root, other) = (folder.path().join("root.img"), folder.path().join("other.img"));
        make(&root, &other);
        let agent_port = free_port().unwrap();
        let machine = folder.path().join("machine");
        fs::create_dir(&machine).unwrap();
        let disks = vec![(other, "OTHER"), (root, "ROOT")];
        let keyboard_port = free_port().unwrap();
        let hardware = Hardware {
            mac: MAC.into(),
            agent_port,
            keyboard_port,
            disks,
            media: Vec::new(),
            folder: machine,
        };
        let system = System::small();
        let leader = Leader::start(led, folder.path(), &dist, &system.server, &hardware, cleaning);
        let (further, arguments) = (Vec::new(), leader.network_arguments());
        Self { leader, system, dist, hardware, boot_mode: "uefi", further, arguments, _folder: folder }
    }

    /// A BMC for the machine, which asks for `network_boot` when it boots from the network.
    pub fn bmc(&self, network_boot: Option<&str>) -> Bmc {
        Bmc::start(&environment::path("FARRIER_REDFISH"), &self.hardware, network_boot).unwrap()
    }

    /// A node that boots what its conductor hands over, without a BMC.
    pub fn enrol(&self, fast_track: bool) -> Horse<'_> {
        self.enrol_under(self.leader.control(&self.hardware, &self.arguments), fast_track)
    }

    pub fn enrol_under(&self, control: Control<'_>, fast_track: bool) -> Horse<'_> {
        let parameters = self.leader.parameters(&self.hardware);
        let (dist, parameters) = (&self.dist, parameters.as_str());
        let enrolment = Enrolment { mac: MAC, dist, parameters, fast_track, control };
        let node = Node::enrol(self.leader.conductor(), &enrolment).unwrap();
        Horse::new(self, node, self.leader.hand(control, fast_track))
    }

    pub fn root(&self) -> &Path {
        &self.hardware.disks[1].0
    }

    pub fn other(&self) -> &Path {
        &self.hardware.disks[0].0
    }
}
