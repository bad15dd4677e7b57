//! ATA: Sanitize, then Security Erase.

use super::reach::{Cause, Hidden, Reach};
use super::secure::{Patience, SecureErase, Stage, Survey};
use crate::erase::error::EraseError;
use crate::erase::method::Method;
use farrier_disk::WritableDisk;
use farrier_linux::ata::{
    self, AtaError, Capabilities, IdentifyData, Limit, Password, SanitizeAction, SanitizeState, SectorCounts,
    Security, Told,
};
use farrier_linux::scsi::{ScsiDevice, ScsiTarget};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

const SANITIZE: &str = "ATA Sanitize";
const SECURITY_ERASE: &str = "ATA Security Erase";
const IDENTIFY: &str = "ATA Identify";

const FROZEN: &str = "its security is frozen; power-cycle the machine, or have its firmware not freeze it";
const EXHAUSTED: &str = "too many wrong passwords were given; power-cycle the machine";
const LOCKED: &str = "it is locked with a password; unlock it with that, or replace the disk";
const LOCKED_AND_FROZEN: &str =
    "it is locked with a password, and frozen; power-cycle the machine, or have its firmware not freeze it";
const STILL_ENABLED: &str = "its password is still set after the erase";

/// A drive that answers within this time has refused an erasure, and not begun one.
const AT_ONCE: Duration = Duration::from_secs(5);

/// What hides sectors, with its names in a certificate and in words.
const LIMITS: [(Limit, Cause, &str, &str); 3] = [
    (Limit::HostProtectedArea, Cause::HostProtectedArea, "sectors_native", "host protected area"),
    (Limit::AccessibleMaximum, Cause::AccessibleMaximum, "sectors_accessible", "accessible maximum address"),
    (Limit::Overlay, Cause::Overlay, "sectors_overlay", "device configuration overlay"),
];

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
        Self::behind(disk)
    }

    /// The drive behind an open disk.
    pub fn behind(disk: &'a impl AsFd) -> Self {
        Self { target: ScsiDevice::new(disk) }
    }
}

impl<T: ScsiTarget> AtaDrive<T> {
    fn identify(&self) -> Result<Capabilities, EraseError> {
        Capabilities::identify(&self.target).map_err(EraseError::ata(IDENTIFY))
    }

    /// Unlocks the drive as [`SecureErase::prepare`] does, and takes the empty password away: it is that of an erasure
    /// that was cut off, and would lock the drive again.
    ///
    /// # Errors
    ///
    /// [`EraseError::Security`] when it stays locked. A drive that cannot be asked counts as unlocked: it is read then.
    pub fn release(&self) -> Result<(), EraseError> {
        let Ok(Some(security)) = self.security().inspect_err(|error| tracing::info!("{error}")) else {
            return Ok(());
        };
        self.unlock()?;
        if security.is_enabled && !security.is_frozen {
            for password in [Password::User, Password::Master] {
                if self.security()?.is_some_and(|now| now.is_enabled)
                    && let Err(error) = ata::disable_password(&self.target, password)
                {
                    tracing::info!(?password, "the drive keeps its password: {error}");
                }
            }
        }
        Ok(())
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
        if locked.is_frozen {
            return Err(EraseError::Security(LOCKED_AND_FROZEN));
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

    fn security_erase(&self, is_enhanced: bool, patience: &Patience<'_>) -> Result<(), EraseError> {
        let security = self.security()?.ok_or(EraseError::Defect)?;
        if !security.is_enabled {
            ata::set_user_password(&self.target).map_err(EraseError::ata("setting the password"))?;
        }
        let needed = if is_enhanced { security.enhanced_erase_time } else { security.erase_time };
        // Twice what the drive says, and time to spin up.
        let limit = needed.map_or(patience.limit, |time| time * 2 + Duration::from_secs(600));
        let begun = Instant::now();
        let outcome = match self.target.for_thread() {
            Ok(target) => {
                patience.attend(move || ata::security_erase(&target, Password::User, is_enhanced, limit))?
            }
            Err(_) => ata::security_erase(&self.target, Password::User, is_enhanced, limit),
        };
        if let Err(error) = outcome {
            let is_refused = error.is_refusal() && begun.elapsed() < AT_ONCE;
            let state = self.security().ok().flatten();
            let is_unchanged = state.is_some_and(|now| now.is_enabled && !now.is_locked);
            self.remove_password();
            return Err(if is_refused && is_unchanged {
                EraseError::unsupported(SECURITY_ERASE, &error)
            } else {
                EraseError::ata(SECURITY_ERASE)(error)
            });
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

    /// An operation that failed, or that the drive does not tell of, is not waited for.
    fn wait_for_earlier(&self, patience: &Patience<'_>) -> Result<(), EraseError> {
        patience.wait("an earlier ATA Sanitize", || match ata::sanitize_state(&self.target) {
            Ok(SanitizeState::Running(progress)) => Ok(Stage::Running(Some(progress))),
            _ => Ok(Stage::Done),
        })
    }

    fn sanitize(&self, action: SanitizeAction, patience: &Patience<'_>) -> Result<(), EraseError> {
        let state = || ata::sanitize_state(&self.target).map_err(EraseError::ata(SANITIZE));
        self.wait_for_earlier(patience)?;
        ata::start_sanitize(&self.target, action).map_err(refused_sanitize)?;
        let outcome = patience.wait(SANITIZE, || match state()? {
            SanitizeState::Running(progress) => Ok(Stage::Running(Some(progress))),
            SanitizeState::Succeeded => Ok(Stage::Done),
            SanitizeState::Frozen | SanitizeState::Idle => Err(EraseError::Command {
                action: SANITIZE,
                reason: "the drive does not say that it completed".to_owned(),
            }),
        });
        if outcome.as_ref().is_err_and(EraseError::is_failure_of_disk) {
            ata::exit_failed_sanitize(&self.target).ok();
        }
        outcome
    }
}

fn refused_sanitize(error: AtaError) -> EraseError {
    match error.is_unsupported_action() {
        true => EraseError::unsupported(SANITIZE, &error),
        false => EraseError::ata(SANITIZE)(error),
    }
}

/// How much of a drive with these identify data its sectors reach.
fn reach(counts: &SectorCounts, identify: &IdentifyData) -> Reach {
    let mut reach = Reach::default();
    reach.counts.insert("sectors", counts.shown);
    for (limit, cause, name, words) in LIMITS {
        match counts.limits.iter().find(|(one, _)| *one == limit) {
            Some((_, Told::Sectors(sectors))) => drop(reach.counts.insert(name, *sectors)),
            Some((_, Told::Unanswered(error))) => {
                reach.unanswered.push(format!("whether it has a {words}: {error}"));
            }
            Some((_, Told::Absent)) | None => {}
        }
        if let Some(hidden) = counts.hidden_by(limit) {
            let bytes = hidden.saturating_mul(identify.sector_bytes());
            // An overlay's number holds what the others hide as well.
            if !(limit == Limit::Overlay && reach.hidden.iter().any(|one| one.bytes >= bytes)) {
                reach.hidden.push(Hidden { cause, bytes });
            }
        }
    }
    reach
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

    fn wait_until_idle(&self, patience: &Patience<'_>) -> Result<(), EraseError> {
        match self.identify() {
            Ok(found) if found.has_sanitize() => self.wait_for_earlier(patience),
            _ => Ok(()),
        }
    }

    fn prepare(&self) -> Result<(), EraseError> {
        self.unlock()
    }

    fn erase(&self, method: Method, patience: &Patience<'_>) -> Result<(), EraseError> {
        if let Some((action, _)) = ACTIONS.into_iter().find(|(_, known)| *known == method) {
            return self.sanitize(action, patience);
        }
        match method {
            Method::AtaSecurityEnhanced => self.security_erase(true, patience),
            Method::AtaSecurity => self.security_erase(false, patience),
            _ => Err(EraseError::Defect),
        }
    }

    fn reach(&self) -> Reach {
        match IdentifyData::read(&self.target) {
            Ok(identify) => reach(&SectorCounts::ask(&self.target, &identify), &identify),
            Err(error) => {
                Reach::unanswered(format!("whether it hides sectors (host protected area): {error}"))
            }
        }
    }

    fn show_hidden(&self) -> bool {
        let Ok(identify) = IdentifyData::read(&self.target) else { return false };
        let counts = SectorCounts::ask(&self.target, &identify);
        let mut shows_more = false;
        for limit in [Limit::HostProtectedArea, Limit::AccessibleMaximum] {
            let Some(hidden) = counts.hidden_by(limit) else { continue };
            let outcome = match limit {
                Limit::HostProtectedArea => ata::show_protected_area(&self.target, &identify),
                _ => ata::show_beyond_accessible_maximum(&self.target),
            };
            match outcome {
                Ok(()) => {
                    tracing::warn!(?limit, sectors = hidden, "the drive hid sectors, and shows them now");
                    shows_more = true;
                }
                Err(error) => {
                    tracing::warn!(?limit, sectors = hidden, "the drive keeps sectors hidden: {error}")
                }
            }
        }
        if shows_more && let Err(error) = ata::set_features_again(&self.target, &identify) {
            tracing::info!("the kernel is not made to ask the drive again: {error}");
        }
        shows_more
    }

    fn is_indispensable(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "ata_tests.rs"]
mod tests;
