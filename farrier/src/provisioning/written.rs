//! Boot files that other servers send: what is the same for all machines is written at the start, and what is of one is
//! made true again from time to time, since records change while machines boot. What has to be there before a machine
//! starts, its boot interface writes by itself.

use crate::provisioning::files::Roots;
use anyhow::Context;
use farrier_conductor::interfaces::BootFile;
use farrier_drivers::netboot::boot_roots::BootRoots;
use farrier_drivers::netboot::scripts::root_script::{GRUB_LIST, GRUB_LISTS, PXELINUX_DEFAULT};
use farrier_engine::Conductor;
use rand::Rng;
use std::collections::{BTreeSet, HashSet};
use std::time::{Duration, Instant};
use tokio::time::sleep;
use uuid::Uuid;

/// Between two passes.
const PAUSE: Duration = Duration::from_secs(5);

/// Writes what is the same for all machines: first scripts, and those loaders that are installed.
pub(crate) fn share(roots: &BootRoots, same: &Roots) -> anyhow::Result<()> {
    let loaders = same.loaders.all().filter(|(_, file)| file.is_file());
    let loaders: Vec<_> = loaders.map(|(name, file)| (name, BootFile::File(file.to_owned()))).collect();
    for root in roots.all() {
        root.share("boot.ipxe", &BootFile::Text(same.ipxe.clone()))?;
        root.share("grub/grub.cfg", &BootFile::Text(same.grub.clone()))?;
        // One that a site has is its own menu.
        if !root.has(PXELINUX_DEFAULT) {
            root.share(PXELINUX_DEFAULT, &BootFile::Text(same.pxelinux.clone()))?;
        }
        for list in GRUB_LISTS {
            root.share(list, &BootFile::Text(GRUB_LIST.to_owned()))?;
        }
        for (name, file) in &loaders {
            root.share(name, file).with_context(|| format!("the loader {name}"))?;
        }
    }
    Ok(())
}

/// Keeps true what is there of nodes, until this is dropped. What a killed conductor left goes with the first pass.
pub(crate) async fn keep(conductor: Conductor, roots: BootRoots) {
    if roots.is_empty() {
        return std::future::pending().await;
    }
    let mut begun = conductor.ramdisks().nodes_with_boot_trace().await.unwrap_or_else(|error| {
        tracing::error!("boot files for other servers cannot be updated: {error}");
        Vec::new()
    });
    let mut failing = HashSet::new();
    loop {
        pass(&conductor, &roots, std::mem::take(&mut begun), &mut failing).await;
        sleep(PAUSE.mul_f64(rand::rng().random_range(0.75..1.25))).await;
    }
}

/// Checks these nodes and all that have files. Each failure is logged once.
async fn pass(conductor: &Conductor, roots: &BootRoots, begun: Vec<Uuid>, failing: &mut HashSet<Uuid>) {
    let found: Result<Vec<_>, _> = roots.all().into_iter().map(|root| root.nodes()).collect();
    let found = found.unwrap_or_else(|error| {
        tracing::error!("{error}");
        Vec::new()
    });
    let nodes: BTreeSet<_> = found.into_iter().flatten().chain(begun).collect();
    for node in nodes {
        match refresh(conductor, roots, node).await {
            Ok(()) => drop(failing.remove(&node)),
            Err(error) if failing.insert(node) => {
                tracing::warn!(%node, "the boot files of a node for other servers cannot be updated: {error}");
            }
            Err(_) => {}
        }
    }
}

async fn refresh(conductor: &Conductor, roots: &BootRoots, node: Uuid) -> anyhow::Result<()> {
    let seen_at = Instant::now();
    if !conductor.ramdisks().refresh_boot_files(node).await? {
        roots.remove(node, seen_at).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provisioning::test_conductor::{PXELINUX, TestConductor};
    use farrier_drivers::netboot::loaders::Loaders;
    use farrier_engine::Error;
    use farrier_engine::store::OwnedPort;
    use std::fs;

    #[tokio::test]
    async fn f58_what_is_written_follows_the_record_until_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tftpboot");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("README"), "theirs").unwrap();
        let roots = BootRoots::open(Some(&root), None).unwrap();
        let test = TestConductor::with_roots(b"kernel", roots.clone()).await;
        let (conductor, node) = (&test.conductor, test.node.uuid);
        let look = async || pass(conductor, &roots, vec![node], &mut HashSet::new()).await;
        look().await;
        let config = fs::read_to_string(root.join(PXELINUX)).unwrap();
        assert!(config.contains(&format!("kernel {node}/deploy_kernel\n")), "{config}");
        assert_eq!(fs::read_to_string(root.join(test.name("deploy_kernel"))).unwrap(), "kernel");

        let port = test.node.ports[0].uuid.to_string();
        let disabled = |mut owned: OwnedPort| {
            owned.port.pxe_enabled = false;
            Ok::<_, Error>(owned.port)
        };
        conductor.catalogue().update_port(&port, disabled).await.unwrap();
        look().await;
        assert!(fs::symlink_metadata(root.join(PXELINUX)).is_err());
        assert!(root.join(test.name("config")).exists());

        conductor.remove_node(&node.to_string()).await.unwrap();
        look().await;
        assert!(!root.join(node.to_string()).exists());
        assert_eq!(fs::read_to_string(root.join("README")).unwrap(), "theirs");
    }

    #[test]
    fn a_server_has_the_first_scripts_and_the_loaders_that_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("own.efi");
        fs::write(&file, "loader").unwrap();
        let root = folder.path().join("httpboot");
        fs::create_dir(&root).unwrap();
        let own = [("own.efi".to_owned(), file), ("none.efi".to_owned(), folder.path().join("none"))];
        let same = |pxelinux: &str| Roots {
            ipxe: "#!ipxe\n".into(),
            grub: "exit\n".into(),
            pxelinux: pxelinux.into(),
            loaders: Loaders::new(own.clone().into()),
        };
        for menu in ["localboot 0\n", "of another\n"] {
            share(&BootRoots::open(Some(&root), Some(&root)).unwrap(), &same(menu)).unwrap();
        }
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        assert_eq!(
            [read("boot.ipxe"), read("grub/grub.cfg"), read("grub/arm64-efi/fs.lst"), read("own.efi")],
            ["#!ipxe\n", "exit\n", "\n", "loader"]
        );
        assert!(!root.join("none.efi").exists());
        assert_eq!(read(PXELINUX_DEFAULT), "localboot 0\n", "a menu that is there stays");
    }
}
