//! The machine of the stand-in: its power, what it is told to start from, and what it started from.

use super::Manner;
use farrier_drivers::redfish::quirks::Quirk;
use std::collections::BTreeSet;

/// The override of its boot device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    pub target: String,
    pub enabled: String,
    pub mode: String,
    /// Where it boots from by HTTP.
    pub http_url: Option<String>,
}

/// The machine.
#[derive(Debug)]
pub struct Machine {
    pub maker: &'static str,
    pub model: &'static str,
    /// Who made its BMC, where that tells.
    pub bmc_maker: Option<&'static str>,
    pub power: &'static str,
    pub boot: Boot,
    pub secure_boot: bool,
    /// The boot mode that its firmware will have, where it was told one.
    pub pending_mode: Option<String>,
    /// What the light of its enclosure does, and whether its own is lit.
    pub led: String,
    pub is_located: bool,
    /// What it started from, each time.
    pub started_from: Vec<String>,
    /// Its version, as told to clients.
    pub version: u32,
    /// Whether the virtual CD is a USB drive.
    has_usb_cd: bool,
    recovers: bool,
}

impl Machine {
    pub(super) fn new(manners: &BTreeSet<Manner>) -> Self {
        let [has_usb_cd, recovers] =
            [Quirk::UsbCd, Quirk::FirmwareOrder].map(|quirk| manners.contains(&Manner::Odd(quirk)));
        let maker = match (has_usb_cd, recovers) {
            (true, _) => "Supermicro",
            (false, true) => "Lenovo",
            (false, false) => "Farm",
        };
        let boot =
            Boot { target: "None".into(), enabled: "Disabled".into(), mode: "UEFI".into(), http_url: None };
        let (secure_boot, pending_mode, started_from, is_located) = Default::default();
        let led = "Off".to_owned();
        let power = "Off";
        let version = 1;
        Self {
            maker,
            model: "Horse 1",
            bmc_maker: None,
            power,
            boot,
            secure_boot,
            pending_mode,
            led,
            is_located,
            started_from,
            version,
            has_usb_cd,
            recovers,
        }
    }

    /// One reading of its power: it gets on meanwhile.
    pub(super) fn read_power(&mut self) -> &'static str {
        let said = self.power;
        match said {
            "PoweringOn" => {
                self.power = "On";
                self.start();
            }
            "PoweringOff" => self.power = "Off",
            _ => {}
        }
        said
    }

    /// Obeys a reset; false where there is none of this kind.
    pub(super) fn reset(&mut self, kind: &str) -> bool {
        match kind {
            "On" if self.power == "Off" => self.power = "PoweringOn",
            "ForceOff" if self.power == "On" => self.power = "PoweringOff",
            "GracefulShutdown" if self.power == "On" => self.power = "PoweringOff",
            "ForceRestart" if self.power == "On" => self.start(),
            "Nmi" if self.power == "On" => self.started_from.push("NMI".into()),
            "On" | "ForceOff" | "GracefulShutdown" => {}
            _ => return false,
        }
        true
    }

    fn start(&mut self) {
        let Boot { target, enabled, .. } = &mut self.boot;
        let from = match (enabled.as_str(), target.as_str()) {
            ("Disabled", _) => "its own order",
            ("Continuous", "Hdd") if self.recovers => "recovery",
            (_, "Cd") if self.has_usb_cd => "a drive that is not there",
            (_, "UsbCd") => "Cd",
            (_, target) => target,
        };
        self.started_from.push(from.to_owned());
        if enabled == "Once" {
            (*enabled, *target) = ("Disabled".into(), "None".into());
        }
    }
}
