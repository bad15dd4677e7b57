//! How the agent stops serving for good (section 1.7).
//!
//! A machine on a tenant's network must not be commanded any more, and a restart of the agent
//! process must not change that: markers keep it (S20).

use farrier_linux::netlink::Netlink;
use std::fs;
use std::io;
use std::path::Path;

/// Why the agent serves no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The machine is in the hands of its user; the network stays up.
    Rescued,
    /// No client may reach the machine; the network goes down.
    LockedDown,
}

impl Stopped {
    /// The state in which an earlier process of this boot left the machine below `root`.
    pub fn marked(root: &Path) -> Option<Self> {
        // The stricter one first. A marker of which it cannot be told whether it is there counts as one.
        let is_marked = |state: &Self| root.join(state.marker()).try_exists().unwrap_or(true);
        [Self::LockedDown, Self::Rescued].into_iter().find(is_marked)
    }

    /// Leaves a marker for later processes of this boot.
    ///
    /// # Errors
    ///
    /// The marker cannot be written.
    pub fn mark(self, root: &Path) -> io::Result<()> {
        let marker = root.join(self.marker());
        if let Some(directory) = marker.parent() {
            fs::create_dir_all(directory)?;
        }
        fs::write(marker, [])
    }

    /// What remains to be done once no client is served any more.
    pub fn settle(self) {
        match self {
            Self::Rescued => tracing::info!("rescued: the agent serves no more until the next boot"),
            Self::LockedDown => {
                set_links_down();
                tracing::info!("locked down: no listener, no heartbeat, no network until the next boot");
            }
        }
    }

    fn marker(self) -> &'static str {
        match self {
            Self::Rescued => "etc/.rescued",
            Self::LockedDown => "run/farrier/locked-down",
        }
    }
}

/// Every link on its own: one that refuses does not keep the others up.
fn set_links_down() {
    let links = Netlink::open().and_then(|netlink| Ok((netlink.links()?, netlink)));
    let (links, netlink) = match links {
        Ok(found) => found,
        Err(error) => {
            tracing::error!(%error, "the links cannot be listed and stay up: disconnect the machine");
            return;
        }
    };
    for link in links.iter().filter(|link| link.name != "lo") {
        if let Err(error) = netlink.set_down(&link.name) {
            tracing::error!(interface = link.name, %error, "the link stays up: disconnect its cable");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s20_markers_outlive_the_process_and_the_stricter_one_counts() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Stopped::marked(root.path()), None);
        Stopped::Rescued.mark(root.path()).unwrap();
        assert_eq!(Stopped::marked(root.path()), Some(Stopped::Rescued));
        assert!(root.path().join("etc/.rescued").exists());
        Stopped::LockedDown.mark(root.path()).unwrap();
        assert_eq!(Stopped::marked(root.path()), Some(Stopped::LockedDown));
    }
}
