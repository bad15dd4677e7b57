//! ATA: Sanitize, then Security Erase.

use super::error::EraseError;
use super::method::Method;
use super::secure::{Patience, SecureErase, Stage, Survey};
use farrier_disk::WritableDisk;
use farrier_linux::ata::{self, Capabilities, Password, SanitizeAction, SanitizeState, Security};
use farrier_linux::scsi::{ScsiDevice, ScsiTarget};
use std::time::Duration;

const SANITIZE: &str = "ATA Sanitize";
const SECURITY_ERASE: &str = "ATA Security Erase";
const IDENTIFY: &str = "ATA Identify";

const FROZEN: &str = "its security is frozen; power-cycle the machine, or have its firmware not freeze it";
const EXHAUSTED: &str = "too many wrong passwords were given; power-cycle the machine";
const LOCKED: &str = "it is locked with a password; unlock it with that, or replace the disk";
const STILL_ENABLED: &str = "its password is still set after the erase";

/// Sanitize actions, the strongest first.
const ACTIONS: [(SanitizeAction, Method); 3] = [
    (SanitizeAction::Crypto, Method::AtaSanitizeCrypto),
    (SanitizeAction::Block, Method::AtaSanitizeBlock),
    (SanitizeAction::Overwrite, Method::AtaSanitizeOverwrite),
];

/// A drive behind an ATA translation.
pub struct AtaDrive<T> {
    target: T,
}

impl<'a> AtaDrive<ScsiDevice<'a>> {
    /// The drive that a disk is.
    pub fn of(disk: &'a WritableDisk) -> Self {
        Self { target: ScsiDevice::new(disk) }
    }
}

impl<T: ScsiTarget> AtaDrive<T> {
    fn identify(&self) -> Result<Capabilities, EraseError> {
        Capabilities::identify(&self.target).map_err(EraseError::ata(IDENTIFY))
    }

    fn security(&self) -> Result<Option<Security>, EraseError> {
        Ok(self.identify()?.security())
    }

    /// Unlocks a locked drive with the empty password, the user's or else the master's (D22).
    fn unlock(&self) -> Result<(), EraseError> {
        let Some(locked) = self.security()?.filter(|security| security.is_locked) else { return Ok(()) };
        if locked.is_exhausted {
            return Err(EraseError::Security(EXHAUSTED));
        }
        let master = (!locked.is_maximum).then_some(Password::Master);
        for password in [Some(Password::User), master].into_iter().flatten() {
            // Whether it worked is asked of the drive, not concluded from its answer.
            if let Err(error) = ata::unlock(&self.target, password) {
                tracing::info!(?password, "not unlocked: {error}");
            }
            if self.security()?.is_some_and(|security| !security.is_locked) {
                return Ok(());
            }
        }
        Err(EraseError::Security(LOCKED))
    }

    fn security_erase(&self, is_enhanced: bool, patience: &Patience) -> Result<(), EraseError> {
        let security = self.security()?.ok_or(EraseError::Defect)?;
        if !security.is_enabled {
            ata::set_user_password(&self.target).map_err(EraseError::ata("setting the password"))?;
        }
        let needed = if is_enhanced { security.enhanced_erase_time } else { security.erase_time };
        // Twice what the drive says, and time to spin up.
        let limit = needed.map_or(patience.limit, |time| time * 2 + Duration::from_secs(600));
        let outcome = ata::security_erase(&self.target, Password::User, is_enhanced, limit)
            .map_err(EraseError::ata(SECURITY_ERASE));
        if let Err(error) = outcome {
            self.remove_password();
            return Err(error);
        }
        match self.security()? {
            Some(security) if security.is_enabled => {
                self.remove_password();
                Err(EraseError::Security(STILL_ENABLED))
            }
            _ => Ok(()),
        }
    }

    /// A drive must not stay behind with a password.
    fn remove_password(&self) {
        if let Err(error) = self.unlock() {
            tracing::error!("the drive stays locked with an empty password: {error}");
        }
        if let Err(error) = ata::disable_password(&self.target, Password::User) {
            tracing::error!("the drive keeps an empty password: {error}");
        }
    }

    fn sanitize(&self, action: SanitizeAction, patience: &Patience) -> Result<(), EraseError> {
        let state = || ata::sanitize_state(&self.target).map_err(EraseError::ata(SANITIZE));
        patience.wait("an earlier ATA Sanitize", || match state()? {
            SanitizeState::Running(progress) => Ok(Stage::Running(Some(progress))),
            _ => Ok(Stage::Done),
        })?;
        ata::start_sanitize(&self.target, action).map_err(EraseError::ata(SANITIZE))?;
        let outcome = patience.wait(SANITIZE, || match state()? {
            SanitizeState::Running(progress) => Ok(Stage::Running(Some(progress))),
            SanitizeState::Succeeded => Ok(Stage::Done),
            SanitizeState::Frozen | SanitizeState::Idle => Err(EraseError::Command {
                action: SANITIZE,
                reason: "the drive does not say that it completed".to_owned(),
            }),
        });
        if outcome.is_err() {
            ata::exit_failed_sanitize(&self.target).ok();
        }
        outcome
    }
}

impl<T: ScsiTarget> SecureErase for AtaDrive<T> {
    fn survey(&self) -> Result<Survey, EraseError> {
        let found = self.identify()?;
        let mut methods: Vec<_> =
            ACTIONS.into_iter().filter(|(action, _)| found.has(*action)).map(|(_, method)| method).collect();
        if !methods.is_empty() {
            let state = ata::sanitize_state(&self.target).map_err(EraseError::ata(SANITIZE))?;
            if state == SanitizeState::Frozen {
                methods.clear();
            }
        }
        match found.security() {
            Some(security) if security.is_frozen && methods.is_empty() => {
                return Err(EraseError::Security(FROZEN));
            }
            Some(security) if !security.is_frozen => {
                methods.extend(security.has_enhanced.then_some(Method::AtaSecurityEnhanced));
                methods.push(Method::AtaSecurity);
            }
            _ => {}
        }
        let words = [
            ("word59", found.word_59),
            ("word82", found.word_82),
            ("word89", found.word_89),
            ("word90", found.word_90),
            ("word128", found.word_128),
        ];
        Ok(Survey { methods, capabilities: words.map(|(name, word)| (name, u64::from(word))).into() })
    }

    fn prepare(&self) -> Result<(), EraseError> {
        self.unlock()
    }

    fn erase(&self, method: Method, patience: &Patience) -> Result<(), EraseError> {
        if let Some((action, _)) = ACTIONS.into_iter().find(|(_, known)| *known == method) {
            return self.sanitize(action, patience);
        }
        match method {
            Method::AtaSecurityEnhanced => self.security_erase(true, patience),
            Method::AtaSecurity => self.security_erase(false, patience),
            _ => Err(EraseError::Defect),
        }
    }

    fn is_indispensable(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "ata_tests.rs"]
mod tests;
