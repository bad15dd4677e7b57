//! The status by which each interface over HTTP answers a request that fails (conductor contract 8.1).

use super::Error;
use crate::records::Forbidden;
use crate::store::StoreError;
use farrier_conductor::Error as TaskError;
use farrier_conductor::interfaces::InterfaceError;

const BAD_REQUEST: u16 = 400;
const FORBIDDEN: u16 = 403;
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
const SERVER_ERROR: u16 = 500;
const UNAVAILABLE: u16 = 503;
const NO_ROOM: u16 = 507;

impl Error {
    /// The status of an answer over HTTP, as Ironic's clients expect it.
    pub fn status(&self) -> u16 {
        match self {
            Self::NodeNotFound(_)
            | Self::PortNotFound(_)
            | Self::AllocationNotFound(_)
            | Self::ResourceNotFound { .. }
            | Self::LookupFailed => NOT_FOUND,
            Self::InUse { .. } => CONFLICT,
            Self::Forbidden(Forbidden::Protected { .. }) => FORBIDDEN,
            Self::Forbidden(_)
            | Self::PoweredOn { .. }
            | Self::NameTaken(_)
            | Self::Unserved { .. }
            | Self::LedElsewhere { .. } => BAD_REQUEST,
            Self::Stopping(_) => UNAVAILABLE,
            Self::Logs(_) => SERVER_ERROR,
            Self::Store(error) => of_store(error),
            Self::Task(error) => of_task(error),
        }
    }
}

fn of_store(error: &StoreError) -> u16 {
    match error {
        StoreError::Gone(_) => NOT_FOUND,
        StoreError::Held { .. } | StoreError::Overtaken(_) | StoreError::Taken { .. } => CONFLICT,
        StoreError::NulCharacter => BAD_REQUEST,
        StoreError::Full { .. } => NO_ROOM,
        StoreError::Busy { .. } | StoreError::Unreachable { .. } => UNAVAILABLE,
        StoreError::Failed { .. } => SERVER_ERROR,
    }
}

fn of_task(error: &TaskError) -> u16 {
    match error {
        TaskError::InvalidState { .. }
        | TaskError::OtherInstance(_)
        | TaskError::Interface(InterfaceError::InUse { .. }) => CONFLICT,
        TaskError::Heartbeat(_)
        | TaskError::Invalid { .. }
        | TaskError::Unresolved(_)
        | TaskError::Interface(
            InterfaceError::DriverInfo { .. }
            | InterfaceError::Invalid { .. }
            | InterfaceError::Unsupported { .. },
        ) => BAD_REQUEST,
        TaskError::StepFailed { .. }
        | TaskError::Hardware(_)
        | TaskError::Interface(InterfaceError::Driver(_) | InterfaceError::NotAsked(_))
        | TaskError::Agent(_)
        | TaskError::Host(_) => SERVER_ERROR,
    }
}
