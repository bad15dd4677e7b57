//! What an operator sets of PID 1.

use farrier_linux::kernel_line::Parameters;

/// Reads the settings from the parameters of the kernel command line and of virtual media.
pub type Read = fn(&Parameters) -> Settings;

/// The settings (section 3.3 of the agent's contract).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether more is logged.
    pub debug: bool,
    /// The card that firmware booted from: `BOOTIF`.
    pub boot_interface: Option<String>,
    /// A bond: `farrier-net-bond`.
    pub bond: Option<String>,
    /// VLANs by the names of their links: `farrier-net-vlans`.
    pub vlans: Vec<String>,
    /// Name servers: `farrier-net-dns`.
    pub name_servers: Vec<String>,
    /// Routes: `farrier-net-routes`.
    pub routes: Vec<String>,
}
