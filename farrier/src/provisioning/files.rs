//! The tree of boot files: what is the same for all machines, and what is of one (section 6.4).

use crate::network::fair_semaphore::{FairPermit, FairSemaphore};
use crate::provisioning::figures::{Figures, Protocol};
use crate::provisioning::leases::Leases;
use crate::provisioning::transfer_trace::{self, TransferTrace};
use axum::body::Bytes;
use farrier_conductor::interfaces::BootFile;
use farrier_drivers::dhcp::lease::Lease;
use farrier_drivers::netboot::loaders::Loaders;
use farrier_drivers::netboot::names::{Name, Whose};
use farrier_drivers::netboot::scripts::root_script::{GRUB_LIST, GRUB_LISTS, PXELINUX_DEFAULT};
use farrier_engine::Conductor;
use farrier_engine::evidence::boot_trace::{BootPeer, BootStage};
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;
use tokio::fs::File;
use tokio::time::timeout;

/// How long a machine waits for a transfer. Firmware gives up after a minute and less.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(20);

/// Machines whose records are looked up at a time.
const LOOKUPS: usize = 64;

/// What is the same for all machines.
#[derive(Debug)]
pub(crate) struct Roots {
    /// `boot.ipxe`.
    pub(crate) ipxe: String,
    /// `grub/grub.cfg`.
    pub(crate) grub: String,
    /// `pxelinux.cfg/default`.
    pub(crate) pxelinux: String,
    /// The boot loaders.
    pub(crate) loaders: Loaders,
}

/// All files.
pub(crate) struct Files {
    conductor: Conductor,
    roots: Roots,
    transfers: FairSemaphore,
    lookups: FairSemaphore,
    leases: Option<Leases>,
    figures: Figures,
}

/// A file that is there.
pub(crate) struct Found {
    /// What is in it.
    pub(crate) content: Content,
    /// The client that gets it; nothing for files without a machine.
    pub(crate) trace: Option<TransferTrace>,
}

impl Found {
    fn of_all(text: &str) -> Self {
        Self { content: Content::Text(text.to_owned().into()), trace: None }
    }
}

/// What is in a file.
#[derive(Debug)]
pub(crate) enum Content {
    /// What was rendered.
    Text(Bytes),
    /// What is on a disk of this host.
    File {
        /// It, open.
        file: File,
        /// Its size in bytes.
        size: u64,
    },
}

impl Content {
    /// Its size in bytes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Text(text) => text.len() as u64,
            Self::File { size, .. } => *size,
        }
    }
}

impl Files {
    /// Those of a conductor's nodes, of which so many are sent at a time. Whose an address is, a dnsmasq may tell.
    pub(crate) fn new(conductor: Conductor, roots: Roots, transfers: usize, leases: Option<Leases>) -> Self {
        let (transfers, lookups) = (FairSemaphore::new(transfers), FairSemaphore::new(LOOKUPS));
        Self { conductor, roots, transfers, lookups, leases, figures: Figures::default() }
    }

    /// What is counted of them.
    pub(crate) fn figures(&self) -> &Figures {
        &self.figures
    }

    /// The current file of this name, for a client with this address. A missing one has no reason.
    pub(crate) async fn open(&self, name: &str, address: IpAddr, by: Protocol) -> Option<Found> {
        let found = self.find(name, address).await;
        self.figures.asked(by, found.is_some());
        found
    }

    async fn find(&self, name: &str, address: IpAddr) -> Option<Found> {
        let address = address.to_canonical();
        tracing::debug!(%address, "boot file {name:?} is asked for");
        let trace = |node, stage, size| {
            Some(TransferTrace::new(self.conductor.clone(), BootPeer { address, node }, stage, name, size))
        };
        match name.trim_start_matches('/') {
            "boot.ipxe" => return Some(Found::of_all(&self.roots.ipxe)),
            "grub/grub.cfg" | "grub.cfg" => return Some(Found::of_all(&self.roots.grub)),
            PXELINUX_DEFAULT => return Some(Found::of_all(&self.roots.pxelinux)),
            list if GRUB_LISTS.contains(&list) => return Some(Found::of_all(GRUB_LIST)),
            _ => {}
        }
        if let Some(file) = self.roots.loaders.find(name) {
            let Some(content) = opened(file).await else {
                let package = Loaders::package(name.trim_start_matches('/')).unwrap_or("of your own");
                tracing::warn!(
                    "a machine requests {name}, and {} is missing: install {package}, or set --loader-file-paths",
                    file.display()
                );
                return None;
            };
            return Some(Found { trace: trace(None, BootStage::Loader, content.size()), content });
        }
        let read = Name::parse(name)?;
        let permit = self.lookups.take(address).await;
        let holder = match (&read.whose, &self.leases) {
            (Whose::Address(address), Some(leases)) => leases.holder(*address).await,
            _ => None,
        };
        let client = read.client(|_| holder)?;
        let (node, file) = self.conductor.ramdisks().boot_file(&client, name).await?;
        drop(permit);
        let content = match file {
            BootFile::Text(text) => Content::Text(text.into()),
            BootFile::File(path) => opened(&path).await?,
        };
        Some(Found { trace: trace(Some(node), transfer_trace::stage(read.item), content.size()), content })
    }

    /// A machine was given an address.
    pub(crate) fn leased(&self, Lease { card, address, name }: Lease) {
        let conductor = self.conductor.clone();
        tokio::spawn(
            async move { conductor.ramdisks().address_leased(&card, address, name.as_deref()).await },
        );
    }

    /// Waits until a file may be sent to who asks from this address; nothing when that takes too long.
    pub(crate) async fn transfer_permit(&self, address: IpAddr) -> Option<FairPermit> {
        timeout(TRANSFER_TIMEOUT, self.transfers.take(address)).await.ok()
    }
}

async fn opened(path: &Path) -> Option<Content> {
    let file = File::open(path).await.ok()?;
    let size = file.metadata().await.ok().filter(std::fs::Metadata::is_file)?.len();
    Some(Content::File { file, size })
}
