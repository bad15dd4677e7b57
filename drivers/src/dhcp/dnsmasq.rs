//! The DHCP provider `dnsmasq`: a file for each node with its options, and one for each of its cards with the tag that
//! they are sent to.
//!
//! dnsmasq reads them when it starts, so its owner restarts it after each change. It could read
//! them again, or watch them; but what 2.90 does then, once it has used an entry of a host, is to crash. A file is
//! written beside its place and moved there, so none is read half.

use super::option_text::{self, OptionError};
use async_trait::async_trait;
use farrier_conductor::interfaces::{DhcpOption, DhcpProvider, InterfaceError};
use farrier_conductor::model::{MacAddress, Node};
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Notify;
use uuid::Uuid;

/// Where a dnsmasq looks, and what it leaves.
#[derive(Debug, Clone)]
pub struct Places {
    /// Its hosts (`[dnsmasq]dhcp_hostsdir`).
    pub hosts: PathBuf,
    /// Its options (`[dnsmasq]dhcp_optsdir`).
    pub options: PathBuf,
    /// Its leases.
    pub leases: PathBuf,
    /// Its process, where another dnsmasq of the machine does not look.
    pub process: PathBuf,
}

impl Places {
    /// Those of our dnsmasq, in a folder.
    pub fn below(folder: &Path) -> Self {
        let [hosts, options, leases, process] =
            ["hosts", "options", "leases", "process"].map(|name| folder.join(name));
        Self { hosts, options, leases, process }
    }
}

/// The files of a dnsmasq cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum DnsmasqError {
    /// A file cannot be written or removed.
    #[error("{file}: {source}; check that the folder of dnsmasq exists and may be written")]
    File {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// An option cannot be written down.
    #[error(transparent)]
    Option(#[from] OptionError),
}

impl From<DnsmasqError> for InterfaceError {
    fn from(error: DnsmasqError) -> Self {
        Self::driver(error)
    }
}

/// A dnsmasq that reads its options from files.
#[derive(Debug)]
pub struct Dnsmasq {
    places: Places,
    changed: Arc<Notify>,
}

impl Dnsmasq {
    /// One with files there, whose owner is notified of changes.
    pub fn new(places: Places, changed: Arc<Notify>) -> Self {
        Self { places, changed }
    }

    fn options_file(&self, node: &Node) -> PathBuf {
        self.places.options.join(format!("farrier-{}.conf", node.uuid))
    }

    fn host_file(&self, card: &MacAddress) -> PathBuf {
        self.places.hosts.join(format!("farrier-{}.conf", card.as_str().replace(':', "-")))
    }
}

#[async_trait]
impl DhcpProvider for Dnsmasq {
    async fn update_port_dhcp_opts(
        &self,
        node: &Node,
        port: &MacAddress,
        options: &[DhcpOption],
    ) -> Result<(), InterfaceError> {
        let tag = tag(node.uuid);
        let lines: Result<Vec<_>, _> = options.iter().map(|option| option_text::line(&tag, option)).collect();
        let lines = lines.map_err(DnsmasqError::from)?;
        write(&self.options_file(node), &(lines.join("\n") + "\n"))?;
        write(&self.host_file(port), &format!("{port},set:{tag}\n"))?;
        self.changed.notify_one();
        Ok(())
    }

    async fn clean_dhcp_opts(&self, node: &Node) -> Result<(), InterfaceError> {
        remove(&self.options_file(node))?;
        for port in &node.ports {
            remove(&self.host_file(&port.address))?;
        }
        self.changed.notify_one();
        Ok(())
    }

    async fn get_ip_addresses(&self, node: &Node) -> Result<Vec<IpAddr>, InterfaceError> {
        let file = self.places.leases.clone();
        let text = tokio::task::spawn_blocking(move || std::fs::read_to_string(file).unwrap_or_default());
        let text = text.await.unwrap_or_default();
        let leases = super::lease::of_file(&text).into_iter();
        let own = leases.filter(|lease| node.ports.iter().any(|port| port.address == lease.card));
        Ok(own.map(|lease| lease.address).collect())
    }
}

/// The tag of a node's machine.
fn tag(node: Uuid) -> String {
    format!("farrier-{node}")
}

fn write(file: &Path, text: &str) -> Result<(), DnsmasqError> {
    // dnsmasq passes over names that begin with a dot.
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let beside = file.with_file_name(format!(".{name}"));
    let failed = |source| DnsmasqError::File { file: file.to_owned(), source };
    std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, file)).map_err(failed)
}

fn remove(file: &Path) -> Result<(), DnsmasqError> {
    match std::fs::remove_file(file) {
        Err(source) if source.kind() != ErrorKind::NotFound => {
            Err(DnsmasqError::File { file: file.to_owned(), source })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;
    use farrier_conductor::model::clock::{Clock, SystemClock};

    #[tokio::test]
    async fn f58_files_are_there_for_cards_that_are_enabled_for_pxe_until_they_are_cleaned() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::below(folder.path());
        std::fs::create_dir_all(&places.hosts).unwrap();
        std::fs::create_dir_all(&places.options).unwrap();
        let dnsmasq = Dnsmasq::new(places.clone(), Arc::default());
        let cards = ["52:54:00:00:00:01", "52:54:00:00:00:02"];
        let ports = cards.map(|card| card.parse().unwrap()).to_vec();
        let mut node = Node::enrol(NewNode { ports, ..NewNode::default() }, SystemClock.now());
        node.ports[1].pxe_enabled = false;
        let option = |value: &str| DhcpOption { name: "67".into(), value: value.into(), ip_version: 4 };
        let files = |folder: &Path| {
            let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
            entries.map(|entry| std::fs::read_to_string(entry.path()).unwrap()).collect::<Vec<_>>()
        };
        dnsmasq.update_dhcp_opts(&node, &[option("pxelinux.0")]).await.unwrap();
        let tag = format!("farrier-{}", node.uuid);
        assert_eq!(files(&places.hosts), [format!("52:54:00:00:00:01,set:{tag}\n")]);
        assert_eq!(files(&places.options), [format!("tag:{tag},67,pxelinux.0\n")]);
        let refused = dnsmasq.update_dhcp_opts(&node, &[option("a\nb")]).await.unwrap_err();
        assert!(refused.to_string().contains("cannot hold '\\n'"), "{refused}");
        std::fs::write(
            &places.leases,
            "1 52:54:00:00:00:02 192.0.2.7 * *\n2 52:54:00:00:00:09 192.0.2.9 * *\n",
        )
        .unwrap();
        let address: IpAddr = "192.0.2.7".parse().unwrap();
        assert_eq!(dnsmasq.get_ip_addresses(&node).await.unwrap(), [address]);
        for _ in 0..2 {
            dnsmasq.clean_dhcp_opts(&node).await.unwrap();
            assert!(files(&places.hosts).is_empty() && files(&places.options).is_empty());
        }
    }
}
