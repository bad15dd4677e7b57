//! The owner of an address in the lease file of our dnsmasq. Its file is read again only when it has changed, off the
//! threads that serve others.

use farrier_conductor::model::MacAddress;
use farrier_drivers::dhcp::dnsmasq::Places;
use farrier_drivers::dhcp::lease;
use std::collections::HashMap;
use std::fs::Metadata;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// Holders of addresses.
type Holders = HashMap<IpAddr, MacAddress>;

/// By what a file is known to be as it was: its identity, its size and when it was changed, in seconds and nanoseconds.
type Version = (u64, u64, i64, i64);

/// The leases of a dnsmasq.
#[derive(Debug)]
pub(crate) struct Leases {
    file: PathBuf,
    known: Mutex<(Option<Version>, Arc<Holders>)>,
}

impl Leases {
    /// Those of the dnsmasq that has these files.
    pub(crate) fn new(places: &Places) -> Self {
        Self { file: places.leases.clone(), known: Mutex::default() }
    }

    /// Whose an address is now, where that is known.
    pub(crate) async fn holder(&self, address: IpAddr) -> Option<MacAddress> {
        let mut known = self.known.lock().await;
        let version = tokio::fs::metadata(&self.file).await.ok().as_ref().map(version);
        if known.0 != version {
            let file = self.file.clone();
            let holders =
                spawn_blocking(move || lease::of_file(&std::fs::read_to_string(file).unwrap_or_default()));
            let leases = holders.await.unwrap_or_default().into_iter();
            *known = (version, Arc::new(leases.map(|lease| (lease.address, lease.card)).collect()));
        }
        let holders = Arc::clone(&known.1);
        drop(known);
        holders.get(&address).cloned()
    }
}

fn version(file: &Metadata) -> Version {
    (file.ino(), file.len(), file.mtime(), file.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[tokio::test]
    async fn n30_leases_are_read_again_when_they_have_changed_and_else_not() {
        let folder = tempfile::tempdir().unwrap();
        let leases = Leases::new(&Places::below(folder.path()));
        let address = "192.0.2.50".parse().unwrap();
        let line = |card: &str| format!("1 52:54:00:00:00:{card} 192.0.2.50 * *\n");
        assert_eq!(leases.holder(address).await, None, "no file yet");
        fs::write(&leases.file, line("01")).unwrap();
        assert_eq!(leases.holder(address).await.unwrap().as_str(), "52:54:00:00:00:01");
        let first = Arc::clone(&leases.known.lock().await.1);
        leases.holder(address).await;
        assert!(Arc::ptr_eq(&first, &leases.known.lock().await.1), "it is not read again");
        fs::write(&leases.file, line("02") + &line("03").replace(".50", ".51")).unwrap();
        assert_eq!(leases.holder(address).await.unwrap().as_str(), "52:54:00:00:00:02");
        fs::remove_file(&leases.file).unwrap();
        assert_eq!(leases.holder(address).await, None);
    }
}
