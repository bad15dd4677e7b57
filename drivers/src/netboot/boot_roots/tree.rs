//! All boot files of one machine at once, for servers that cannot ask what a name stands for (section 6.4).

use crate::netboot::interface::{self, Netboot};
use crate::netboot::method::Method;
use crate::netboot::names::{Dialect, Item, Name, Whose};
use farrier_conductor::interfaces::{BootFile, InterfaceError};
use farrier_conductor::model::Node;
use std::net::IpAddr;

/// The boot files of a machine, by their names below the root of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Its configuration, kernel, ramdisk and medium, in the folder of its node.
    pub files: Vec<(String, BootFile)>,
    /// The names by which loaders ask for the configuration, each a link to it.
    pub links: Vec<String>,
}

impl Tree {
    /// That of a node's machine, by its record alone, where it has these addresses now; nothing when it has no boot files.
    ///
    /// # Errors
    ///
    /// The boot files cannot be loaded.
    pub fn of(
        netboot: &Netboot,
        method: Method,
        node: &Node,
        addresses: &[IpAddr],
    ) -> Result<Option<Self>, InterfaceError> {
        let mut files = Vec::new();
        for item in Item::ALL {
            let name = Name { whose: Whose::Node(node.uuid), item };
            let found = match interface::file(netboot, method, node, &name)? {
                Some(BootFile::File(file)) => {
                    let (field, key) = Name::key(item);
                    let gone =
                        || InterfaceError::invalid(&format!("{field} {key}"), "there is no such file now");
                    Some(BootFile::File(netboot.defaults.allowed.resolve(&file).ok_or_else(gone)?))
                }
                found => found,
            };
            files.extend(found.map(|found| (Name::of_node(node.uuid, item), found)));
        }
        if files.is_empty() {
            return Ok(None);
        }
        let dialect = method.dialect(node)?;
        // A card that is not enabled for PXE has no file (F58).
        let cards = node.ports.iter().filter(|port| port.pxe_enabled);
        let mut links: Vec<_> = cards.flat_map(|port| Name::links(&port.address, dialect)).collect();
        if dialect == Dialect::Grub {
            links.extend(addresses.iter().map(|address| format!("{address}.conf")));
        }
        Ok(Some(Self { files, links }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netboot::fixtures::{booting, netboot_of};
    use serde_json::json;

    #[test]
    fn f58_a_tree_has_what_the_machine_boots_and_links_of_cards_that_are_enabled_for_pxe() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["k", "r"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let file = |name: &str| folder.path().join(name).canonicalize().unwrap();
        let netboot = netboot_of(folder.path());
        let mut node = booting(
            &json!({"deploy_kernel": file("k"), "deploy_ramdisk": file("r")}),
            "ipa-api-url=http://h",
        );
        let uuid = node.uuid;
        for (method, mode, links) in [
            (Method::Pxe, "bios", vec!["pxelinux.cfg/01-52-54-00-00-00-01"]),
            (Method::Ipxe, "bios", vec!["pxelinux.cfg/52-54-00-00-00-01"]),
            (
                Method::Http,
                "uefi",
                vec!["grub.cfg-01-52-54-00-00-00-01", "52:54:00:00:00:01.conf", "192.0.2.7.conf"],
            ),
        ] {
            node.properties.insert("capabilities".into(), json!(format!("boot_mode:{mode}")));
            let tree = Tree::of(&netboot, method, &node, &["192.0.2.7".parse().unwrap()]).unwrap().unwrap();
            assert_eq!(tree.links, links);
            assert!(tree.links.iter().all(|link| Name::parse(link).is_some()), "{:?}", tree.links);
            let names: Vec<_> = tree.files.iter().map(|(name, _)| name.clone()).collect();
            assert_eq!(
                names,
                ["config", "deploy_kernel", "deploy_ramdisk"].map(|name| format!("{uuid}/{name}"))
            );
            assert_eq!(tree.files[1].1, BootFile::File(file("k")));
        }
        node.ports[0].pxe_enabled = false;
        let tree = Tree::of(&netboot, Method::Pxe, &node, &[]).unwrap().unwrap();
        assert_eq!((tree.links.len(), tree.files.len()), (0, 3));
        std::fs::remove_file(file("r")).unwrap();
        let gone = Tree::of(&netboot, Method::Pxe, &node, &[]).unwrap_err().to_string();
        assert!(gone.contains("driver_info deploy_ramdisk: there is no such file now"), "{gone}");
        node.driver_internal_info.ramdisk_parameters = None;
        assert_eq!(Tree::of(&netboot, Method::Pxe, &node, &[]).unwrap(), None);
    }
}
