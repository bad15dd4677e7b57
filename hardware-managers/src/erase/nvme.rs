//! NVMe: Sanitize, then Format.
//!
//! Sanitize reaches every namespace of the subsystem, and on some controllers so does Format. Neither
//! is used on a controller with a second namespace: that one may be on the skip list.

use super::error::EraseError;
use super::method::Method;
use super::secure::{Patience, SecureErase, Stage, Survey};
use farrier_disk::WritableDisk;
use farrier_linux::nvme::{
    self, Capabilities, FormatErase, NvmeDevice, NvmeTarget, SanitizeAction, SanitizeState,
};

const SANITIZE: &str = "NVMe Sanitize";
const FORMAT: &str = "NVMe Format";
const IDENTIFY: &str = "NVMe Identify";

/// Sanitize actions, the strongest first.
const ACTIONS: [(SanitizeAction, Method); 3] = [
    (SanitizeAction::Crypto, Method::NvmeSanitizeCrypto),
    (SanitizeAction::Block, Method::NvmeSanitizeBlock),
    (SanitizeAction::Overwrite, Method::NvmeSanitizeOverwrite),
];

/// A namespace and the controller it belongs to.
pub struct NvmeNamespace<Q> {
    queue: Q,
    /// Its number; nothing when the device does not tell, and then it is not erased.
    number: Option<u32>,
}

impl<'a> NvmeNamespace<NvmeDevice<'a>> {
    /// The namespace that a disk is.
    pub fn of(disk: &'a WritableDisk) -> Self {
        let queue = NvmeDevice::new(disk);
        Self { queue, number: queue.namespace().ok() }
    }
}

impl<Q: NvmeTarget> NvmeNamespace<Q> {
    fn sanitize(&self, action: SanitizeAction, patience: &Patience) -> Result<(), EraseError> {
        let state = || nvme::sanitize_state(&self.queue, action).map_err(EraseError::nvme(SANITIZE));
        // One that was started before the machine was reset goes on by itself.
        patience.wait("an earlier NVMe Sanitize", || match state()? {
            SanitizeState::Running(progress) => Ok(Stage::Running(Some(progress))),
            _ => Ok(Stage::Done),
        })?;
        nvme::start_sanitize(&self.queue, action).map_err(EraseError::nvme(SANITIZE))?;
        let outcome = patience.wait(SANITIZE, || match state()? {
            SanitizeState::Running(progress) => Ok(Stage::Running(Some(progress))),
            SanitizeState::Succeeded => Ok(Stage::Done),
            SanitizeState::Failed => Err(failed("the log says that it failed")),
            SanitizeState::Never | SanitizeState::OtherSucceeded => {
                Err(failed("the log does not know of it, though the controller accepted it"))
            }
        });
        if outcome.is_err() {
            // Only a failed operation is left this way; the error that counts is the first one.
            nvme::exit_failed_sanitize(&self.queue).ok();
        }
        outcome
    }
}

fn failed(reason: &str) -> EraseError {
    EraseError::Command { action: SANITIZE, reason: reason.to_owned() }
}

impl<Q: NvmeTarget> SecureErase for NvmeNamespace<Q> {
    fn survey(&self) -> Result<Survey, EraseError> {
        let capabilities = Capabilities::identify(&self.queue).map_err(EraseError::nvme(IDENTIFY))?;
        let namespaces =
            nvme::namespaces(&self.queue, &capabilities).map_err(EraseError::nvme("NVMe namespace list"))?;
        let is_alone = self.number.is_some_and(|number| namespaces == [number]);
        let may_format = self.number.is_some() && (is_alone || !capabilities.formats_every_namespace());
        let sanitize = ACTIONS.into_iter().filter(|(action, _)| is_alone && capabilities.has(*action));
        let crypto = (may_format && capabilities.has_crypto_format()).then_some(Method::NvmeFormatCrypto);
        let user_data = (may_format && capabilities.has_format()).then_some(Method::NvmeFormatUserData);
        Ok(Survey {
            methods: sanitize.map(|(_, method)| method).chain(crypto).chain(user_data).collect(),
            capabilities: [
                ("oacs", u64::from(capabilities.oacs)),
                ("fna", u64::from(capabilities.fna)),
                ("sanicap", u64::from(capabilities.sanicap)),
                ("namespaces", namespaces.len() as u64),
            ]
            .into(),
        })
    }

    fn prepare(&self) -> Result<(), EraseError> {
        Ok(())
    }

    fn erase(&self, method: Method, patience: &Patience) -> Result<(), EraseError> {
        if let Some((action, _)) = ACTIONS.into_iter().find(|(_, known)| *known == method) {
            return self.sanitize(action, patience);
        }
        let erase = match method {
            Method::NvmeFormatCrypto => FormatErase::Crypto,
            Method::NvmeFormatUserData => FormatErase::UserData,
            _ => return Err(EraseError::Defect),
        };
        let number = self.number.ok_or(EraseError::Defect)?;
        nvme::format(&self.queue, number, erase, patience.limit).map_err(EraseError::nvme(FORMAT))
    }

    fn is_indispensable(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_linux::nvme::{Command, NvmeError};
    use std::cell::RefCell;
    use std::time::Duration;

    const PATIENCE: Patience = Patience { poll: Duration::from_millis(1), limit: Duration::from_millis(50) };

    /// A controller with the given OACS, FNA, SANICAP and namespaces.
    struct Controller {
        oacs: u8,
        fna: u8,
        sanicap: u8,
        namespaces: Vec<u32>,
        /// Sanitize states that the log shows one after the other; the last one stays.
        log: RefCell<Vec<u8>>,
        asked: RefCell<Vec<(u8, u32)>>,
    }

    impl Controller {
        fn new(oacs: u8, fna: u8, sanicap: u8, namespaces: &[u32]) -> Self {
            let (log, asked) = Default::default();
            Self { oacs, fna, sanicap, namespaces: namespaces.to_vec(), log, asked }
        }
    }

    impl NvmeTarget for Controller {
        fn submit(&self, command: &Command, data: &mut [u8]) -> Result<(), NvmeError> {
            match (command.opcode, command.dwords[0]) {
                (0x06, 1) => {
                    (data[256], data[524], data[328]) = (self.oacs, self.fna, self.sanicap);
                }
                (0x06, 2 | 0x10) => {
                    for (bytes, number) in data.chunks_mut(4).zip(&self.namespaces) {
                        bytes.copy_from_slice(&number.to_le_bytes());
                    }
                }
                (0x02, _) => {
                    let mut log = self.log.borrow_mut();
                    data[2] = if log.len() > 1 { log.remove(0) } else { log[0] };
                    // What started the newest operation: crypto erase, by us.
                    data[4] = 0x0c;
                }
                (opcode, dword) => self.asked.borrow_mut().push((opcode, dword)),
            }
            Ok(())
        }
    }

    fn namespace(queue: Controller) -> NvmeNamespace<Controller> {
        NvmeNamespace { queue, number: Some(1) }
    }

    #[test]
    fn p08_methods_follow_the_capabilities_strongest_first() {
        use Method::*;
        for (oacs, fna, sanicap, namespaces, expected) in [
            (0x00, 0x00, 0x00, &[1][..], &[][..]),
            (0x02, 0x00, 0x00, &[1], &[NvmeFormatUserData]),
            (0x02, 0x04, 0x00, &[1], &[NvmeFormatCrypto, NvmeFormatUserData]),
            (
                0x02,
                0x07,
                0x06,
                &[1],
                &[NvmeSanitizeBlock, NvmeSanitizeOverwrite, NvmeFormatCrypto, NvmeFormatUserData],
            ),
            (0x00, 0x00, 0x01, &[1], &[NvmeSanitizeCrypto]),
            // A second namespace must not be reached.
            (0x0a, 0x04, 0x07, &[1, 2], &[NvmeFormatCrypto, NvmeFormatUserData]),
            (0x0a, 0x05, 0x07, &[1, 2], &[]),
            (0x0a, 0x06, 0x07, &[1, 2], &[]),
        ] {
            let survey = namespace(Controller::new(oacs, fna, sanicap, namespaces)).survey().unwrap();
            assert_eq!(survey.methods, expected, "{oacs:x} {fna:x} {sanicap:x} {namespaces:?}");
            assert_eq!(survey.capabilities["namespaces"], namespaces.len() as u64);
        }
    }

    #[test]
    fn a_namespace_without_a_number_is_not_erased() {
        let unknown = NvmeNamespace { queue: Controller::new(0x02, 0, 7, &[1]), number: None };
        assert_eq!(unknown.survey().unwrap().methods, []);
    }

    #[test]
    fn d22_sanitize_is_done_when_the_log_says_so() {
        // Never, running, succeeded, failed.
        for (log, expected) in [
            (&[0, 2, 2, 1][..], None),
            // One from before the reset is waited for.
            (&[2, 1, 2, 1], None),
            (&[0, 2, 3], Some("says that it failed")),
            (&[0, 0], Some("does not know of it")),
            (&[0, 2], Some("did not finish")),
        ] {
            let disk = namespace(Controller::new(0x02, 0, 1, &[1]));
            disk.queue.log.replace(log.to_vec());
            let outcome = disk.erase(Method::NvmeSanitizeCrypto, &PATIENCE);
            let asked = disk.queue.asked.borrow();
            assert_eq!(asked[0], (0x84, 0x0c), "{log:?}");
            match expected {
                None => assert!(outcome.is_ok() && asked.len() == 1, "{log:?}: {outcome:?}"),
                Some(text) => {
                    let error = outcome.unwrap_err().to_string();
                    assert!(error.contains(text), "{log:?}: {error}");
                    // A failed operation is left, so that the disk can be used again.
                    assert_eq!(asked[1], (0x84, 0x01));
                }
            }
        }
    }
}
