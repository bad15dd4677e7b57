//! What changed of a node while a task had it.

use crate::model::{AgentSession, InspectionData, Node};

/// What a task changed of its node, to be saved.
#[derive(Debug, Clone, Copy)]
pub struct Change<'a> {
    /// The record after the change.
    pub node: &'a Node,
    /// What changed of its agent's session.
    pub session: SessionChange<'a>,
    /// What changed of its inspection.
    pub inspection: InspectionChange<'a>,
    /// What changed of how far its machine came.
    pub boot_trace: BootTraceChange,
}

/// What changed of an agent's session.
#[derive(Debug, Clone, Copy)]
pub enum SessionChange<'a> {
    /// Nothing.
    Keep,
    /// The conductor asked the agent, and learned this. What the agent said itself meanwhile stays.
    Learned(&'a AgentSession),
    /// All of it: another session begins.
    Replace(&'a AgentSession),
}

/// What changed of an inspection.
#[derive(Debug, Clone, Copy)]
pub enum InspectionChange<'a> {
    /// Nothing.
    Keep,
    /// The ramdisk has posted this; the data of the last inspection stays.
    Receive(&'a InspectionData),
    /// The data of the inspection.
    Put(&'a InspectionData),
}

/// What changed of the trace of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootTraceChange {
    /// Nothing.
    Keep,
    /// The machine should boot from the network or from a medium that the conductor serves, and has loaded nothing yet.
    Begin,
    /// It should boot in another way.
    End,
}
