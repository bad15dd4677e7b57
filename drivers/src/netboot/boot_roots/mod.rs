//! Which server sends the files of which boot interface, where that is not the conductor (section 6.4).

pub mod boot_root;
pub mod tree;

use crate::netboot::method::Method;
use boot_root::{BootRoot, BootRootError};
use farrier_conductor::interfaces::InterfaceError;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tokio::task::spawn_blocking;
use tree::Tree;
use uuid::Uuid;

/// The folders of other servers.
#[derive(Debug, Clone, Default)]
pub struct BootRoots {
    tftp: Option<Arc<BootRoot>>,
    http: Option<Arc<BootRoot>>,
}

impl BootRoots {
    /// These folders, which may be one.
    ///
    /// # Errors
    ///
    /// [`BootRootError`] of one that cannot be used.
    pub fn open(tftp: Option<&Path>, http: Option<&Path>) -> Result<Self, BootRootError> {
        let open = |root: &Path| BootRoot::open(root).map(Arc::new);
        let is_one =
            tftp.zip(http).is_some_and(|(tftp, http)| tftp.canonicalize().ok() == http.canonicalize().ok());
        let tftp = tftp.map(open).transpose()?;
        let http = if is_one { tftp.clone() } else { http.map(open).transpose()? };
        Ok(Self { tftp, http })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Each folder once.
    pub fn all(&self) -> Vec<&Arc<BootRoot>> {
        let http =
            self.http.iter().filter(|http| self.tftp.as_ref().is_none_or(|tftp| !Arc::ptr_eq(tftp, http)));
        self.tftp.iter().chain(http).collect()
    }

    /// Where the configurations of a boot interface are.
    fn of(&self, method: Method) -> Option<&Arc<BootRoot>> {
        match method {
            Method::Pxe => self.tftp.as_ref(),
            Method::Ipxe | Method::Http | Method::HttpIpxe => self.http.as_ref(),
        }
    }

    /// Removes the files of a node whose record, as it was read at this time, has none.
    ///
    /// # Errors
    ///
    /// [`InterfaceError`].
    pub async fn remove(&self, node: Uuid, seen_at: Instant) -> Result<(), InterfaceError> {
        self.put(None, node, None, Some(seen_at)).await
    }

    /// Has the files of a node be these where its boot interface has them, and nowhere else; by a record that was read at
    /// a time, or for the worker of the node.
    pub(in crate::netboot) async fn write(
        &self,
        method: Method,
        node: Uuid,
        tree: Option<Tree>,
        seen_at: Option<Instant>,
    ) -> Result<(), InterfaceError> {
        self.put(self.of(method).cloned(), node, tree, seen_at).await
    }

    async fn put(
        &self,
        own: Option<Arc<BootRoot>>,
        node: Uuid,
        tree: Option<Tree>,
        seen_at: Option<Instant>,
    ) -> Result<(), InterfaceError> {
        let all: Vec<_> = self.all().into_iter().cloned().collect();
        let written = spawn_blocking(move || {
            all.iter().try_for_each(|root| {
                let is_own = own.as_ref().is_some_and(|own| Arc::ptr_eq(own, root));
                let tree = tree.as_ref().filter(|_| is_own);
                match seen_at {
                    Some(seen_at) => root.refresh(node, tree, seen_at),
                    None => root.write(node, tree),
                }
            })
        });
        written.await.map_err(InterfaceError::driver)?.map_err(Into::into)
    }
}
