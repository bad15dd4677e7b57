//! What agents do that is out of the ordinary, and what they did.

use super::is_execute;
use super::signing::Proof;
use serde_json::{Value, json};
use std::time::Duration;

/// What an agent does that is out of the ordinary.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// How long its BMC takes to say, each time it is asked, that a step still runs.
    pub poll_takes: Duration,
    /// It never calls the conductor.
    pub silent: bool,
    /// It calls, and never answers commands.
    pub deaf: bool,
    /// Whoever asks it is never answered again once it has taken a step.
    pub vanishes: bool,
    /// Steps fail with this text.
    pub write_fails: Option<String>,
    /// The steps that it offers, of any kind; else those that erase, for cleaning.
    pub offers: Option<Vec<Value>>,
    /// What its steps produce.
    pub produces: Value,
    /// What its erase steps prove.
    pub proof: Proof,
    /// Its steps do not end before this ends.
    pub blocked: bool,
    /// How often it says that its hardware managers have changed when a step is sent, and whether they have.
    pub mismatches: u32,
    pub mismatches_in_vain: bool,
    /// Version of its hardware manager, less one.
    pub version: u32,
    /// `install_bootloader` fails with this text.
    pub bootloader_fails: Option<String>,
    /// It forgets its commands while it writes, as after a restart.
    pub restarts: bool,
    /// It answers everything with 100 MiB.
    pub floods: bool,
    /// To how many requests of commands it answers that it cannot serve.
    pub sick: u32,
    /// How often it is busy with something else when a step is sent.
    pub busy: u32,
    /// It answers the first POST of a step with a cut connection, after it took the step.
    pub loses_answer: bool,
    /// The same, of a step that ends before the conductor asks again.
    pub loses_late_answer: bool,
    /// Orders to go off that fail once a clean step was accepted.
    pub power_off_fails: u32,
    /// How often the BMC says that the machine is off, and errs.
    pub misreads: u32,
    /// Whether the conductor serves its medium.
    pub serves_medium: bool,
    /// The BMC does not tell whether the machine is on once a step has begun.
    pub bmc_hangs: bool,
    /// It says of every step that another one is done.
    pub lies: bool,
    /// It takes its time for every answer.
    pub slow: Option<Duration>,
    /// The machine's driver panics once when it is powered on.
    pub panics: bool,
    /// It calls once.
    pub calls_once: bool,
    /// It keeps whoever asks for its commands waiting once a step has ended, and how many it has kept so.
    pub holds: bool,
    pub held: u32,
    /// It does nothing once it has posted its inventory.
    pub hesitates: bool,
    /// It offers nothing that Ironic's contract does not have.
    pub offers_no_progress: bool,
    /// Whether somebody watches: it writes until its progress was asked for.
    pub is_watched: bool,
    /// How often its progress was asked for.
    pub progress_asked: u32,
    /// How often its commands were listed while it ran a step.
    pub listed_at_work: u32,
    /// The hash of the password by which the rescue system that runs can be entered.
    pub rescue_password: Option<String>,
    /// `finalize_rescue` fails with this text.
    pub rescue_fails: Option<String>,
    /// How often it takes the password of a rescue and ends before it can say so.
    pub loses_rescue_answers: u32,
    /// Whether it exports its disk, and with which text it fails when it is to begin or end that.
    pub exports: bool,
    pub export_fails: Option<String>,
    /// What it sends as its logs, where it can.
    pub logs: Option<String>,
    /// It ignores `power_off`.
    pub stays_on: bool,
    /// It ends before it can say that it goes off, and its machine is on for a while after that.
    pub ends_before_its_machine: bool,
    /// Nobody but an operator switches its machine or sees its power, and it ends before it can say that it goes off.
    pub is_switched_by_hand: bool,
    /// What it posts of its machine; else [`report`].
    pub report: Option<Value>,
    /// Steps that the BMC was given, and how often it was asked whether one has ended, and whether it then fails.
    pub driven: Vec<String>,
    pub polls: u32,
    pub bmc_fails: bool,
    /// Names and parameters of the commands it accepted.
    pub accepted: Vec<(String, Value)>,
    /// The token it goes by, and what the conductor told it when it looked its node up.
    pub token: Option<String>,
    pub looked_up: Option<String>,
    /// Whether nobody but its machine gets the kernel parameters of a boot.
    pub has_own_media: bool,
}

impl Script {
    pub fn versions(&self) -> Value {
        json!({"generic_hardware_manager": (self.version + 1).to_string()})
    }

    /// The steps that were begun, as `kind interface.step`.
    pub fn steps(&self) -> Vec<String> {
        let executed = self.accepted.iter().filter(|(name, _)| is_execute(name));
        executed
            .map(|(name, params)| {
                let (kind, step) = (name.split_once('.').unwrap().0, &params["step"]);
                format!("{kind} {}.{}", step["interface"].as_str().unwrap(), step["step"].as_str().unwrap())
            })
            .collect()
    }
}

/// What an agent posts of a machine with two network cards, the first of which has this address.
pub fn report(address: &str) -> Value {
    json!({
        "inventory": {
            "interfaces": [
                {"name": "eth0", "mac_address": address, "ipv4_address": "192.0.2.20", "has_carrier": true},
                {"name": "eth1", "mac_address": SECOND_CARD, "ipv4_address": "192.0.2.21", "has_carrier": true},
            ],
            "cpu": {"architecture": "x86_64", "count": 2, "model_name": "Example", "flags": ["vmx"]},
            "disks": [{"name": "/dev/vda", "size": 10_u64 << 30, "rotational": false, "serial": "A1"}],
            "memory": {"total": 2_u64 << 30, "physical_mb": 2048},
            "bmc_address": null, "bmc_v6address": "::/0",
            "boot": {"current_boot_mode": "uefi", "pxe_interface": null},
        },
        "boot_interface": null, "error": null, "logs": "H4sIAAAA",
    })
}

/// Address of the second network card of a machine.
pub const SECOND_CARD: &str = "52:54:00:00:00:a2";
