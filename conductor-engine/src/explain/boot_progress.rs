//! How far a machine came with its boot, and what to check where no agent called.

use crate::error::Error;
use crate::services::Services;
use farrier_conductor::model::Node;

/// How far the machine of a node came with its boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BootProgress {
    /// It loaded this.
    Loads(String),
    /// No read of its virtual medium is on record. It is evidence, and no proof: a BMC may not reach the conductor, and a
    /// conductor that is killed within a second of the read has not recorded it.
    MediumUnread,
}

impl BootProgress {
    /// That of a node; nothing where it is not known.
    pub(crate) async fn of(services: &Services, node: &Node) -> Result<Option<Self>, Error> {
        let Some(trace) = services.boot_trace(node.uuid).await? else { return Ok(None) };
        let boot = services.hardware.boot(node).ok().flatten();
        let is_medium = boot.is_some_and(|boot| boot.boot.extension().serves_medium());
        Ok(match trace.told(services.now()) {
            Some(told) => Some(Self::Loads(told)),
            None if is_medium => Some(Self::MediumUnread),
            None => None,
        })
    }

    /// In words.
    pub(crate) fn told(&self) -> &str {
        match self {
            Self::Loads(told) => told,
            Self::MediumUnread => {
                "no read of its virtual medium is recorded: the machine started something else, or its BMC does not \
                 reach the conductor"
            }
        }
    }

    /// What to check where no agent called, as the end of a sentence. `url` is that of the conductor as the machine reaches it.
    pub(crate) fn advice(progress: Option<&Self>, url: &str) -> String {
        match progress {
            Some(Self::MediumUnread) => {
                "check the machine's boot device and boot order, and the way of its BMC to the conductor"
                    .to_owned()
            }
            Some(Self::Loads(_)) | None => format!("check the machine's network (link, DHCP, way to {url})"),
        }
    }
}
