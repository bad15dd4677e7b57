//! Volumes of other machines (sections 5.3 and 9.1).

use super::base::{Interface, InterfaceError};
use crate::model::Node;
use async_trait::async_trait;

/// Attaches volumes of other machines.
#[async_trait]
pub trait StorageInterface: Interface {
    /// Attaches the node's volumes; nothing happens where they are attached.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn attach_volumes(&self, node: &Node) -> Result<(), InterfaceError>;

    /// Detaches the node's volumes; nothing happens where they are detached.
    ///
    /// # Errors
    ///
    /// Any [`InterfaceError`].
    async fn detach_volumes(&self, node: &Node) -> Result<(), InterfaceError>;

    /// Whether the image must be written to a disk of the machine, and not in a volume already.
    fn should_write_image(&self, _node: &Node) -> bool {
        true
    }
}
