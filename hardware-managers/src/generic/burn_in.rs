//! The steps that load a machine for hours before production (section 9.11).

use crate::burn_in;
use crate::manager::StepDeclaration;
use farrier_protocol::step::Phase;

/// Loads the processors.
pub const CPU: StepDeclaration = StepDeclaration {
    step: "burnin_cpu",
    interface: "deploy",
    priorities: &[(Phase::Clean, 0), (Phase::Service, 0)],
    reboot_requested: false,
    abortable: Phase::ALL,
    arguments: &[],
    run: &|call| burn_in::processor(call, &burn_in::CPU),
};

/// Loads the memory.
pub const MEMORY: StepDeclaration =
    StepDeclaration { step: "burnin_memory", run: &|call| burn_in::processor(call, &burn_in::MEMORY), ..CPU };

/// Writes to all disks and reads back: their content is lost, so a machine in service is spared.
pub const DISK: StepDeclaration =
    StepDeclaration { step: "burnin_disk", priorities: &[(Phase::Clean, 0)], run: &burn_in::storage, ..CPU };

/// Loads the network together with another machine.
pub const NETWORK: StepDeclaration =
    StepDeclaration { step: "burnin_network", run: &burn_in::network, ..CPU };

/// Loads graphics processors.
pub const GPU: StepDeclaration = StepDeclaration { step: "burnin_gpu", run: &burn_in::graphics, ..CPU };
