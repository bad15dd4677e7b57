//! NVMe: Sanitize, then Format.
//!
//! Sanitize reaches every namespace of the subsystem, and on some controllers so does Format. Neither
//! is used on a controller with a second namespace: that one may be on the skip list.

use super::reach::{Cause, Hidden, Reach};
use super::secure::{Patience, SecureErase, Stage, Survey};
use crate::erase::error::EraseError;
use crate::erase::method::Method;
use farrier_disk::WritableDisk;
use farrier_linux::nvme::{
    self, Capabilities, FormatErase, NvmeDevice, NvmeError, NvmeTarget, SanitizeAction, SanitizeState,
};
use farrier_linux::sysfs;
use std::os::fd::AsFd;
use std::path::Path;

const SANITIZE: &str = "NVMe Sanitize";
const FORMAT: &str = "NVMe Format";
const IDENTIFY: &str = "NVMe Identify";

/// Sanitize actions, the strongest first.
const ACTIONS: [(SanitizeAction, Method); 3] = [
    (SanitizeAction::Crypto, Method::NvmeSanitizeCrypto),
    (SanitizeAction::Block, Method::NvmeSanitizeBlock),
    (SanitizeAction::Overwrite, Method::NvmeSanitizeOverwrite),
];

/// How a controller in this machine is attached.
const LOCAL: &str = "pcie";

/// Whether a namespace lies behind a fabric, in the sysfs mounted at `sysfs`. What this machine has to erase is the
/// namespace then, and not what else its controller has.
pub fn is_remote(sysfs: &Path, kernel_name: &str) -> bool {
    let device = sysfs.join("block").join(kernel_name).join("device");
    // Of a subsystem with several paths the controllers stand in its folder.
    let paths = sysfs::entries(&device).into_iter().map(|name| device.join(name));
    let transports = std::iter::once(device.clone()).chain(paths);
    transports.filter_map(|place| sysfs::attribute(&place, "transport")).any(|transport| transport != LOCAL)
}

/// A namespace and the controller it belongs to.
pub struct NvmeNamespace<Q> {
    queue: Q,
    /// Its number; nothing when the device does not tell, and then it is not erased.
    number: Option<u32>,
}

impl<'a> NvmeNamespace<NvmeDevice<'a>> {
    /// The namespace that a disk is.
    pub fn of(disk: &'a WritableDisk) -> Self {
        Self::behind(disk)
    }

    /// The namespace behind an open disk.
    pub fn behind(disk: &'a impl AsFd) -> Self {
        let queue = NvmeDevice::new(disk);
        Self { queue, number: queue.namespace().ok() }
    }
}

impl<Q: NvmeTarget> NvmeNamespace<Q> {
    /// A controller whose log cannot be read does not tell of an operation.
    fn wait_for_earlier(&self, patience: &Patience<'_>) -> Result<(), EraseError> {
        patience.wait("an earlier NVMe Sanitize", || {
            match nvme::sanitize_state(&self.queue, SanitizeAction::Block) {
                Ok(SanitizeState::Running(progress)) => Ok(Stage::Running(Some(progress))),
                _ => Ok(Stage::Done),
            }
        })
    }

    fn sanitize(&self, action: SanitizeAction, patience: &Patience<'_>) -> Result<(), EraseError> {
        let state = || nvme::sanitize_state(&self.queue, action).map_err(EraseError::nvme(SANITIZE));
        // One that was started before the machine was reset goes on by itself.
        self.wait_for_earlier(patience)?;
        nvme::start_sanitize(&self.queue, action).map_err(refused(SANITIZE))?;
        let outcome = patience.wait(SANITIZE, || match state()? {
            SanitizeState::Running(progress) => Ok(Stage::Running(Some(progress))),
            SanitizeState::Succeeded => Ok(Stage::Done),
            SanitizeState::Failed => Err(failed("the log says that it failed")),
            SanitizeState::Never | SanitizeState::OtherSucceeded => {
                Err(failed("the log does not know of it, though the controller accepted it"))
            }
        });
        if outcome.as_ref().is_err_and(EraseError::is_failure_of_disk) {
            // Only a failed operation is left this way; the error that counts is the first one.
            nvme::exit_failed_sanitize(&self.queue).ok();
        }
        outcome
    }
}

fn refused(action: &'static str) -> impl FnOnce(NvmeError) -> EraseError {
    move |error| match error.is_unknown_command() {
        true => EraseError::unsupported(action, &error),
        false => EraseError::nvme(action)(error),
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

    fn wait_until_idle(&self, patience: &Patience<'_>) -> Result<(), EraseError> {
        match Capabilities::identify(&self.queue) {
            Ok(found) if ACTIONS.iter().any(|(action, _)| found.has(*action)) => {
                self.wait_for_earlier(patience)
            }
            _ => Ok(()),
        }
    }

    fn prepare(&self) -> Result<(), EraseError> {
        Ok(())
    }

    fn erase(&self, method: Method, patience: &Patience<'_>) -> Result<(), EraseError> {
        if let Some((action, _)) = ACTIONS.into_iter().find(|(_, known)| *known == method) {
            return self.sanitize(action, patience);
        }
        let erase = match method {
            Method::NvmeFormatCrypto => FormatErase::Crypto,
            Method::NvmeFormatUserData => FormatErase::UserData,
            _ => return Err(EraseError::Defect),
        };
        let number = self.number.ok_or(EraseError::Defect)?;
        let limit = patience.limit;
        let outcome = match self.queue.for_thread() {
            Ok(queue) => patience.attend(move || nvme::format(&queue, number, erase, limit))?,
            Err(_) => nvme::format(&self.queue, number, erase, limit),
        };
        outcome.map_err(refused(FORMAT))
    }

    fn reach(&self) -> Reach {
        match Capabilities::identify(&self.queue) {
            Ok(found) => {
                let unallocated = Hidden { cause: Cause::Unallocated, bytes: found.unallocated_bytes };
                Reach {
                    counts: [("tnvmcap", found.total_bytes), ("unvmcap", found.unallocated_bytes)].into(),
                    hidden: Some(unallocated).filter(|hidden| hidden.bytes > 0).into_iter().collect(),
                    unanswered: Vec::new(),
                }
            }
            Err(error) => Reach::unanswered(format!("whether it has capacity without a namespace: {error}")),
        }
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

    const PATIENCE: Patience<'static> =
        Patience { poll: Duration::from_millis(1), limit: Duration::from_millis(50), is_ending: &|| false };

    /// A controller with the given OACS, FNA, SANICAP and namespaces.
    struct Controller {
        oacs: u8,
        fna: u8,
        sanicap: u8,
        namespaces: Vec<u32>,
        /// Sanitize states that the log shows one after the other; the last one stays.
        log: RefCell<Vec<u8>>,
        asked: RefCell<Vec<(u8, u32)>>,
        /// Bytes without a namespace.
        unallocated: u32,
        /// With what it answers commands that change something.
        refusal: Option<u16>,
    }

    impl Controller {
        fn new(oacs: u8, fna: u8, sanicap: u8, namespaces: &[u32]) -> Self {
            let (log, asked) = Default::default();
            let namespaces = namespaces.to_vec();
            Self { oacs, fna, sanicap, namespaces, log, asked, unallocated: 0, refusal: None }
        }
    }

    impl NvmeTarget for Controller {
        fn submit(&self, command: &Command, data: &mut [u8]) -> Result<(), NvmeError> {
            match (command.opcode, command.dwords[0]) {
                (0x06, 1) => {
                    (data[256], data[524], data[328]) = (self.oacs, self.fna, self.sanicap);
                    data[280..284].copy_from_slice(&(self.unallocated + 4096).to_le_bytes());
                    data[296..300].copy_from_slice(&self.unallocated.to_le_bytes());
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
                (0x06, _) => {}
                (opcode, dword) => {
                    self.asked.borrow_mut().push((opcode, dword));
                    return self.refusal.map_or(Ok(()), |status| Err(NvmeError::Status(status)));
                }
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
    #[test]
    fn g08_a_command_that_is_refused_at_once_is_a_method_that_is_not_there() {
        use Method::*;
        for (method, status, is_there) in [
            (NvmeFormatCrypto, 0x4002, false),
            (NvmeFormatUserData, 0x0001, false),
            (NvmeFormatCrypto, 0x410a, false),
            (NvmeFormatUserData, 0x0006, true),
            (NvmeFormatUserData, 0x4020, true),
            (NvmeSanitizeCrypto, 0x4002, false),
            (NvmeSanitizeBlock, 0x4001, false),
            // One that failed before is in the way.
            (NvmeSanitizeBlock, 0x401c, true),
        ] {
            let disk = namespace(Controller { refusal: Some(status), ..Controller::new(0x0a, 4, 7, &[1]) });
            disk.queue.log.replace(vec![0]);
            let error = disk.erase(method, &PATIENCE).unwrap_err();
            assert_eq!(!matches!(error, EraseError::Unsupported { .. }), is_there, "{method} {status:x}");
        }
    }

    #[test]
    fn a16_capacity_without_a_namespace_is_out_of_reach() {
        for (unallocated, expected) in
            [(0, vec![]), (8192, vec![Hidden { cause: Cause::Unallocated, bytes: 8192 }])]
        {
            let disk = namespace(Controller { unallocated, ..Controller::new(0x0a, 0, 0, &[1]) });
            let reach = disk.reach();
            assert_eq!(reach.hidden, expected);
            assert_eq!(
                (reach.counts["tnvmcap"], reach.counts["unvmcap"]),
                (u64::from(unallocated) + 4096, unallocated.into())
            );
        }
    }

    #[test]
    fn a16_the_medium_behind_a_fabric_is_not_this_machines() {
        for (place, transport, expected) in [
            ("transport", "pcie", false),
            ("transport", "tcp", true),
            ("nvme3/transport", "rdma", true),
            ("nvme3/transport", "pcie", false),
            ("model", "M", false),
        ] {
            let sysfs = tempfile::tempdir().unwrap();
            let file = sysfs.path().join("block/nvme0n1/device").join(place);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, transport).unwrap();
            assert_eq!(is_remote(sysfs.path(), "nvme0n1"), expected, "{place} {transport}");
        }
    }

    #[test]
    fn g07_a_sanitize_of_before_is_waited_for_where_there_can_be_one() {
        for (sanicap, log, expected) in
            [(7, &[2, 2, 1][..], None), (0, &[2], None), (7, &[2], Some("did not finish")), (7, &[3], None)]
        {
            let disk = namespace(Controller::new(0x02, 0, sanicap, &[1]));
            disk.queue.log.replace(log.to_vec());
            let outcome = disk.wait_until_idle(&PATIENCE).map_err(|error| error.to_string());
            assert_eq!(outcome.as_ref().err().is_some(), expected.is_some(), "{log:?}");
            assert!(expected.is_none_or(|text| outcome.unwrap_err().contains(text)), "{log:?}");
            assert!(disk.queue.asked.borrow().is_empty());
        }
    }

    #[test]
    fn g14_an_agent_that_ends_leaves_a_controller_that_sanitizes_itself_alone() {
        let disk = namespace(Controller::new(0x02, 0, 1, &[1]));
        disk.queue.log.replace(vec![0, 2]);
        let patience = Patience { is_ending: &|| true, ..PATIENCE };
        let error = disk.erase(Method::NvmeSanitizeCrypto, &patience).unwrap_err();
        assert!(matches!(error, EraseError::Ending(_)), "{error}");
        assert_eq!(*disk.queue.asked.borrow(), [(0x84, 0x0c)]);
    }
    /// A controller whose Format takes until the test is over.
    struct Slow;

    impl NvmeTarget for Slow {
        fn submit(&self, command: &Command, _: &mut [u8]) -> Result<(), NvmeError> {
            if command.opcode == 0x80 {
                std::thread::sleep(Duration::from_secs(3600));
            }
            Ok(())
        }

        fn for_thread(&self) -> std::io::Result<Box<dyn NvmeTarget + Send>> {
            Ok(Box::new(Slow))
        }
    }

    #[test]
    fn g14_an_agent_that_ends_does_not_wait_for_a_format() {
        let disk = NvmeNamespace { queue: Slow, number: Some(1) };
        let patience = Patience { is_ending: &|| true, ..PATIENCE };
        let error = disk.erase(Method::NvmeFormatUserData, &patience).unwrap_err();
        assert!(matches!(error, EraseError::Ending(_)), "{error}");
    }
}
