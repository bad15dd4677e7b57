//! What a hardware manager is.

use crate::container::bootc;
use crate::error::StepError;
use crate::inventory::usb::UsbDevice;
use farrier_protocol::error::CommandError;
use farrier_protocol::inventory::{Disk, NetworkInterface};
use farrier_protocol::lookup::Node;
use farrier_protocol::step::{ArgumentInfo, Phase, StepDescription};
use serde_json::{Map, Value};
use std::path::Path;

/// How well a manager knows the machine (section 9.1); the best one is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Support {
    /// Not this machine.
    None,
    /// Any machine.
    Generic,
    /// This kind of machine.
    Mainline,
    /// Exactly this machine; third parties, with a level of 3 and up.
    ServiceProvider(u32),
}

/// One manager.
pub trait HardwareManager: Send + Sync {
    /// Class name, the key of its steps on the wire.
    fn class_name(&self) -> &'static str;

    /// Name, the key of its version on the wire.
    fn name(&self) -> &'static str;

    /// Version; a change between listing and running a step is a mismatch.
    fn version(&self) -> &'static str;

    /// Looks at the machine and says how well the manager fits.
    fn evaluate(&self) -> Support;

    /// Readies what the manager needs, once per process, after those that fit the machine better (section 9.1).
    /// What cannot be readied is a line in the log.
    ///
    /// Devices may still be appearing. What every machine needs is not done here but by the agent, once they
    /// are there: it starts arrays, joins paths, logs in to iSCSI disks and loads the modules of the BMC.
    fn initialize(&self) {}

    /// What it changes of devices, and which it hides, if any (section 9.2). A hidden disk is also left alone, as
    /// one of the node's `skip_block_devices` is.
    fn device_filter(&self) -> Option<&dyn DeviceFilter> {
        None
    }

    /// Steps of all phases, each name once.
    fn steps(&self) -> &'static [StepDeclaration];

    /// The file of an outside manager. Its steps must not have reserved names (S07).
    fn origin(&self) -> Option<&Path> {
        None
    }

    /// The reason for unknown steps. As long as one says so, no step of any manager is listed or
    /// run.
    fn fault(&self) -> Option<&CommandError> {
        None
    }
}

/// A device as conductors see it.
#[derive(Debug)]
pub enum Device<'a> {
    /// A network interface.
    Interface(&'a mut NetworkInterface),
    /// A disk.
    Disk(&'a mut Disk),
    /// A USB device.
    Usb(&'a mut UsbDevice),
}

/// What a manager thinks of the machine's devices.
pub trait DeviceFilter {
    /// Changes what conductors see of a device, in place, or hides it by false.
    ///
    /// A changed disk is for display only: root device hints are compared with the kernel's data.
    fn filter(&self, device: &mut Device<'_>) -> bool;
}

/// A step, declared once for listing, validation, documentation and running.
#[derive(Clone, Copy)]
pub struct StepDeclaration {
    /// Name.
    pub step: &'static str,
    /// Interface it belongs to.
    pub interface: &'static str,
    /// The phases it exists in, each with its place in an automatic run there; 0 runs only when
    /// asked for.
    pub priorities: &'static [(Phase, i64)],
    /// Whether the machine must be rebooted afterwards.
    pub reboot_requested: bool,
    /// The phases in which an operator may abort it.
    pub abortable: &'static [Phase],
    /// Arguments.
    pub arguments: &'static [Argument],
    /// What it does.
    pub run: Run,
}

/// The work of a step.
pub type Run = &'static (dyn Fn(&StepCall<'_>) -> Result<Value, StepError> + Send + Sync);

/// An argument of a step.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Name.
    pub name: &'static str,
    /// Help text.
    pub description: &'static str,
    /// Whether the step needs it.
    pub required: bool,
}

/// What a running step is given.
pub struct StepCall<'a> {
    /// Operation the step belongs to.
    pub phase: Phase,
    /// Name of the step.
    pub step: &'a str,
    /// The nonce that the conductor issued for this run of the step; Ironic issues none.
    pub nonce: Option<&'a str>,
    /// Node the machine is.
    pub node: &'a Node,
    /// The node's whole record, as it came.
    pub record: &'a Value,
    /// Its ports, as they came.
    pub ports: &'a Value,
    /// Arguments by name.
    pub arguments: &'a Map<String, Value>,
    /// The agent around the step.
    pub host: &'a dyn StepHost,
}

/// What a step may ask of the agent that runs it.
pub trait StepHost: Sync {
    /// Writes an image and a config drive to the root disk (section 5.2).
    ///
    /// # Errors
    ///
    /// The contract's error object.
    fn prepare_image(&self, image_info: &Value, config_drive: Option<&str>) -> Result<Value, CommandError>;

    /// Has a container image install itself on the root disk, and writes a config drive (section 12.1).
    ///
    /// # Errors
    ///
    /// The contract's error object.
    fn install_bootc(&self, order: &bootc::Order<'_>) -> Result<Value, CommandError>;

    /// Fetches a file of at most so many bytes from where images may come from, as images are fetched. A server
    /// need not prove who it is where `verifies` is false.
    ///
    /// # Errors
    ///
    /// The contract's error object. It names the URL, without a password.
    fn download(&self, url: &str, most: usize, verifies: bool) -> Result<Vec<u8>, CommandError>;

    /// The devices that were waited for and are not there, in words: disks of theirs are not listed.
    fn missing_devices(&self) -> Vec<String>;

    /// Whether to keep disks with shared file systems (section 9.8).
    fn guards_special_filesystems(&self) -> bool;

    /// Whether boot areas of eMMC devices, from which firmware may start, are erased with the disks.
    fn erases_emmc_boot_areas(&self) -> bool;

    /// Signs a statement about what was done with the agent's key, and keeps both with the logs. Returns
    /// the signed statement as one text (RFC 7515, compact serialisation).
    ///
    /// # Errors
    ///
    /// The contract's error object, when the agent has no key yet.
    fn certify(&self, statement: &Value) -> Result<String, CommandError>;

    /// Whether the agent is about to end: long steps give up then.
    fn is_ending(&self) -> bool;

    /// Posts JSON to a server, and gives its answer.
    ///
    /// # Errors
    ///
    /// The contract's error object, when there is no answer, or none of success.
    fn post_json(&self, url: &str, body: &Value) -> Result<Value, CommandError>;
}

impl StepDeclaration {
    /// Its place in an automatic run of a phase; nothing when it does not exist there.
    pub fn priority(&self, phase: Phase) -> Option<i64> {
        self.priorities.iter().find(|(one, _)| *one == phase).map(|(_, priority)| *priority)
    }

    /// The step as the wire shows it in a phase; nothing when it does not exist there.
    pub fn describe(&self, phase: Phase) -> Option<StepDescription> {
        let argsinfo = self.arguments.iter().map(|argument| {
            let info =
                ArgumentInfo { description: argument.description.to_owned(), required: argument.required };
            (argument.name.to_owned(), info)
        });
        Some(StepDescription {
            step: self.step.to_owned(),
            interface: self.interface.to_owned(),
            priority: self.priority(phase)?,
            reboot_requested: self.reboot_requested,
            abortable: self.abortable.contains(&phase).then_some(true),
            argsinfo: Some(argsinfo.collect()),
        })
    }

    /// Runs the step after checking that what it needs was given.
    ///
    /// # Errors
    ///
    /// [`StepError::MissingArgument`], or the step's own failure.
    pub fn execute(&self, call: &StepCall<'_>) -> Result<Value, StepError> {
        let is_missing = |name: &str| call.arguments.get(name).is_none_or(Value::is_null);
        if let Some(argument) = self.arguments.iter().find(|one| one.required && is_missing(one.name)) {
            return Err(StepError::MissingArgument { step: self.step, argument: argument.name });
        }
        (self.run)(call)
    }
}
