//! How far a machine came with its boot, and what to check where no agent called.

use crate::error::Error;
use crate::services::Services;
use farrier_conductor::interfaces::MediumReads;
use farrier_conductor::model::Node;

/// How far the machine of a node came with its boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BootProgress {
    /// It loaded this from the network.
    Network(String),
    /// So much was read of its virtual medium.
    Medium(MediumReads),
}

impl BootProgress {
    /// That of a node; nothing where it is not known.
    pub(crate) async fn of(services: &Services, node: &Node) -> Result<Option<Self>, Error> {
        if let Some(told) = services.boot_trace_summary(node.uuid).await? {
            return Ok(Some(Self::Network(told)));
        }
        let boot = services.hardware.boot(node).ok().flatten();
        Ok(boot.and_then(|boot| boot.boot.extension().medium_reads(node)).map(Self::Medium))
    }

    /// What it is about, as the evidence of an explanation has it.
    pub(crate) fn subject(&self) -> &'static str {
        match self {
            Self::Network(_) => "boot from the network",
            Self::Medium(_) => "virtual medium",
        }
    }

    /// In words.
    pub(crate) fn told(&self) -> String {
        match self {
            Self::Network(told) => told.clone(),
            Self::Medium(MediumReads { requests: 0, .. }) => {
                "its virtual medium was never read: the machine started something else, or its BMC does not reach \
                 the conductor"
                    .to_owned()
            }
            Self::Medium(MediumReads { requests, bytes }) => {
                format!("{} KiB of its virtual medium were read in {requests} requests", bytes.div_ceil(1 << 10))
            }
        }
    }

    /// What to check where no agent called, as the end of a sentence. `url` is that of the conductor as the machine reaches it.
    pub(crate) fn advice(progress: Option<&Self>, url: &str) -> String {
        match progress {
            Some(Self::Medium(MediumReads { requests: 0, .. })) => {
                "check the machine's boot device and boot order, and the way of its BMC to the conductor"
                    .to_owned()
            }
            _ => format!("check the machine's network (link, DHCP, way to {url})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f36_an_unread_medium_is_told_and_leads_to_the_boot_order() {
        let medium = |requests, bytes| BootProgress::Medium(MediumReads { requests, bytes });
        for (progress, told, advice) in [
            (
                Some(medium(0, 0)),
                "never read: the machine started something else",
                "boot device and boot order",
            ),
            (
                Some(medium(3, 2049)),
                "3 KiB of its virtual medium were read in 3 requests",
                "link, DHCP, way to U",
            ),
            (
                Some(BootProgress::Network("script fetched".to_owned())),
                "script fetched",
                "link, DHCP, way to U",
            ),
            (None, "", "link, DHCP, way to U"),
        ] {
            let said = progress.as_ref().map(BootProgress::told).unwrap_or_default();
            assert!(said.contains(told), "{said}");
            let checked = BootProgress::advice(progress.as_ref(), "U");
            assert!(checked.contains(advice), "{checked}");
        }
    }
}
