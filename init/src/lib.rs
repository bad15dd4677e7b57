//! PID 1 of the ramdisk.
//!
//! It mounts the kernel's file systems, loads the modules that devices ask for, brings the [`network`] up,
//! and keeps the agent running. It never exits: a child that ends is
//! started again after a pause, and a defect of this code is logged and survived ([`panic_guard`]).
//!
//! Threads report to the main one through a channel: one reaps children, one brings links up. That one
//! hears of links from the one that hears of devices. The main thread alone starts children.

pub mod agent_end;
mod devices;
mod events;
pub mod hand_over;
pub mod loading;
pub mod lockdown;
pub mod log_file;
pub mod logging;
pub mod mac_address;
pub mod network;
mod panic_guard;
pub mod private_file;
mod settings;
mod shortcomings;
mod supervisor;
pub mod virtual_media;

pub use settings::Settings;

use farrier_linux::modules::{self, ModuleIndex};
use farrier_linux::{console, kernel_line, mount, sysfs};
use std::io;
use std::os::unix::fs::symlink;
use supervisor::Supervisor;

/// The agent in the ramdisk.
const AGENT: &str = "/init";
/// Where kernels and programs look for `modprobe`, which is a role of the agent.
const MODPROBE: &str = "/sbin/modprobe";

/// Runs the ramdisk, as the settings say that `read` finds. Never returns.
pub fn run(read: settings::Read) -> ! {
    let failures: Vec<_> = mount::EARLY.iter().filter_map(|one| one.mount().err()).collect();
    let offered = offer_modprobe();
    let kernel = kernel_line::of_running_kernel();
    let debug = read(&kernel).debug;
    logging::start(logging::Target::Consoles);
    logging::set_debug(debug);
    // Who asks for the kernel's messages gets them.
    if !debug
        && !kernel.contains_key("loglevel")
        && let Err(error) = console::quiet_kernel()
    {
        tracing::warn!(%error, "messages of the kernel stay on the consoles");
    }
    tracing::info!("userland started uptime={:.2}", sysfs::uptime().as_secs_f64());
    for failure in failures {
        tracing::error!("{failure}");
    }
    if let Err(error) = offered {
        tracing::error!(%error, "modules that the kernel or programs ask for are not loaded: build the ramdisk again");
    }
    supervise(read)
}

fn supervise(read: settings::Read) -> ! {
    let (sender, events) = std::sync::mpsc::channel();
    let (changes, of_network) = std::sync::mpsc::channel();
    supervisor::start_reaper(sender.clone());
    network::start(read, of_network, sender.clone());
    devices::start(changes.clone());
    let mut supervisor = Supervisor::new(events, changes);
    // It ends when nobody can send it anything, and `sender` lives.
    loop {
        supervisor.run();
    }
}

/// Puts `modprobe` where it is looked for. It is not packed there: it can do nothing before the kernel's file
/// systems are mounted, and kernels would start it again and again until then.
fn offer_modprobe() -> io::Result<()> {
    match symlink(AGENT, MODPROBE) {
        // One that was packed on request.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        linked => linked?,
    }
    modules::tell_modprobe(MODPROBE)
}

/// The role of [`MODPROBE`]: the kernel asks for a module by an alias such as `net-pf-17`.
///
/// # Errors
///
/// There is no module index, or the kernel refused a module.
pub fn modprobe(arguments: impl Iterator<Item = String>) -> anyhow::Result<()> {
    let index = ModuleIndex::of_running_kernel()?;
    for alias in arguments.filter(|argument| !argument.starts_with('-')) {
        if let Some(error) = index.load_alias(&alias).into_iter().next() {
            return Err(error.into());
        }
    }
    Ok(())
}
