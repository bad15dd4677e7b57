//! Files that are taken up again when they change, every few seconds and at SIGHUP: certificates and operators.

use crate::auth::{Entry, UsersFile};
use crate::serve::listen::certificate::{Files, Texts, TlsError};
use crate::serve::listen::listener::Tls;
use crate::state::fingerprint::Fingerprint;
use rustls::ServerConfig;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::sync::watch;
use tokio::time::sleep;

/// The interval between checks of the files.
const INTERVAL: Duration = Duration::from_secs(5);

/// Looks at files, and takes up what is new in them.
pub(crate) type Look = Box<dyn FnMut() + Send>;

/// Looks at files for ever: now and then, and at each signal.
pub(crate) async fn renew(mut looks: Vec<Look>, mut hangup: Signal) -> anyhow::Result<()> {
    loop {
        tokio::select! {
            () = sleep(INTERVAL) => {}
            _ = hangup.recv() => {}
        }
        let looking = tokio::task::spawn_blocking(move || {
            looks.iter_mut().for_each(|look| look());
            looks
        });
        looks = looking.await?;
    }
}

/// The last error of the files, so that it is logged once.
#[derive(Default)]
struct Complaint(Option<String>);

impl Complaint {
    /// What is new, unless the files cannot be used: then what was there before stays.
    fn judge<T, E: std::fmt::Display>(&mut self, found: Result<Option<T>, E>) -> Option<T> {
        let complaint = found.as_ref().err().map(ToString::to_string);
        if let Some(text) = &complaint
            && *text != self.0.as_deref().unwrap_or_default()
        {
            tracing::error!("{text}; the previous contents stay in use");
        }
        self.0 = complaint;
        found.ok().flatten()
    }
}

/// The certificate that a listener shows, its fingerprint, and what to do to take up another.
pub(crate) fn certificate(files: Files) -> Result<(Tls, Fingerprint, Look), TlsError> {
    let mut texts = files.read()?;
    let (settings, fingerprint) = files.settings(&texts)?;
    let (sender, receiver) = watch::channel(settings);
    let mut complaint = Complaint::default();
    let look = move || {
        if let Some((settings, fingerprint)) = complaint.judge(renewed(&files, &mut texts)) {
            tracing::info!(%fingerprint, file = %files.certificate.display(), "the certificate was renewed");
            sender.send_replace(settings);
        }
    };
    Ok((receiver, fingerprint, Box::new(look)))
}

fn renewed(files: &Files, texts: &mut Texts) -> Result<Option<(Arc<ServerConfig>, Fingerprint)>, TlsError> {
    let now = files.read()?;
    if now == *texts {
        return Ok(None);
    }
    let settings = files.settings(&now)?;
    *texts = now;
    Ok(Some(settings))
}

/// The operators of a file and further ones, and the check for changes.
pub(crate) fn operators(
    file: PathBuf,
    beside: Entry,
) -> anyhow::Result<(watch::Receiver<Arc<UsersFile>>, Look)> {
    let read = move || {
        let mut users = UsersFile::read(&file)?;
        users.set(beside.clone());
        anyhow::Ok(users)
    };
    let (sender, receiver) = watch::channel(Arc::new(read()?));
    let mut complaint = Complaint::default();
    let look = move || {
        if let Some(users) = complaint.judge(read().map(Some)) {
            sender.send_if_modified(|known| {
                let is_new = **known != users;
                if is_new {
                    tracing::info!(count = users.entries().count(), "the operators file was reloaded");
                    *known = Arc::new(users);
                }
                is_new
            });
        }
    };
    Ok((receiver, Box::new(look)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Credential;
    use farrier_access::Role;
    use std::fs;

    #[test]
    fn a_certificate_that_was_renewed_is_taken_up_and_a_damaged_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| Files::own(&folder.path().join(name), "127.0.0.1".parse().unwrap()).unwrap();
        let (files, other) = (make("one"), make("other"));
        let (tls, first, mut look) = certificate(files.clone()).unwrap();
        let shown = Arc::clone(&tls.borrow());
        look();
        assert!(Arc::ptr_eq(&shown, &tls.borrow()), "nothing has changed");
        fs::copy(&other.certificate, &files.certificate).unwrap();
        look();
        assert!(Arc::ptr_eq(&shown, &tls.borrow()), "its key is still missing");
        fs::copy(&other.key, &files.key).unwrap();
        look();
        assert!(!Arc::ptr_eq(&shown, &tls.borrow()));
        assert_ne!(files.settings(&files.read().unwrap()).unwrap().1, first);
        fs::remove_file(&files.key).unwrap();
        look();
    }

    #[test]
    fn operators_that_come_and_go_are_known_and_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("operators");
        let entry = |name: &str| Entry {
            name: name.to_owned(),
            credential: Credential::of_token(name.as_bytes()),
            role: Role::Reader,
        };
        let (users, mut look) = operators(file.clone(), entry("local")).unwrap();
        let known = |name: &str| users.borrow().by_token(name.as_bytes()).is_some();
        assert!(known("local") && !known("ci"));
        UsersFile::change(&file, |users| users.set(entry("ci"))).unwrap();
        look();
        assert!(known("local") && known("ci"));
        fs::write(&file, "nonsense").unwrap();
        look();
        assert!(known("ci"), "a typing error locks nobody out");
        fs::remove_file(&file).unwrap();
        look();
        assert!(known("local") && !known("ci"));
    }
}
