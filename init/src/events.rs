//! What the threads of PID 1 tell each other.

use nix::sys::wait::WaitStatus;

/// What happens to PID 1.
pub enum Event {
    /// A child ended.
    Exited(i32, WaitStatus),
    /// Virtual media were read, or there are none: the agent may start.
    MediaRead,
    /// A link wants a DHCP client.
    Dhcp(String),
    /// A link wants none any more.
    NoDhcp(String),
}

/// What happens to the network.
pub enum Change {
    /// A wired link of this name is there.
    Appeared(String),
    /// The machine is its user's.
    Rescued,
}
