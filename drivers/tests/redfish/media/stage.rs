//! A conductor that has virtual media, and what a BMC reads of them.

use crate::stage::Stage;
use farrier_conductor::interfaces::{BootContext, Noop};
use farrier_drivers::netboot::images::AllowedFolders;
use farrier_drivers::netboot::loaders::Loaders;
use farrier_drivers::netboot::target::Defaults;
use farrier_drivers::virtual_media::{MediaLoaders, PublishedMedia, VirtualMediaBoot};
use farrier_media::boot_iso::NETWORK_DATA;
use farrier_media::config_drive;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const URL: &str = "http://192.0.2.5:6385/media/";

/// The boot loaders of the distribution, each of which is its own name.
const LOADERS: [&str; 5] = ["bootx64.efi", "gcdx64.efi", "isolinux.bin", "ldlinux.c32", "isohdpfx.bin"];

/// A conductor with a folder that images may be taken from, and a machine.
pub struct MediaStage {
    pub stage: Stage,
    pub folder: TempDir,
    pub boot: VirtualMediaBoot,
    pub published_media: PublishedMedia,
}

impl MediaStage {
    pub fn new(stage: Stage) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fill(folder.path());
        let published_media = published_media(folder.path());
        Self { boot: interface(folder.path(), published_media.clone()), stage, folder, published_media }
    }

    /// What a boot interface is given.
    pub fn context(&self) -> BootContext<'_> {
        BootContext { node: &self.stage.node, management: &self.stage.management, network: &Noop }
    }

    /// The medium that the machine has in the drive for CDs, read as its BMC would by a conductor that has just started.
    pub async fn medium(&self) -> Option<Vec<u8>> {
        let url = self.stage.bmc.inner().drives.cd.image.clone()?;
        self.read(&url, ".iso").await
    }

    /// The same for a URL whose name ends so.
    pub async fn read(&self, url: &str, end: &str) -> Option<Vec<u8>> {
        let name = url.strip_prefix(URL).unwrap();
        assert!(name.ends_with(end) && name.len() == 36, "{name}");
        let medium = published_media(self.folder.path()).medium(name).await?;
        let read = tokio::task::spawn_blocking(move || {
            let bytes = medium.read_at(0, usize::MAX).unwrap();
            assert_eq!(bytes.len() as u64, medium.length());
            bytes
        });
        Some(read.await.unwrap())
    }

    /// How many files tell of media.
    pub fn kept(&self) -> usize {
        fs::read_dir(self.folder.path().join("media")).unwrap().count()
    }
}

/// Puts an ISO and boot loaders into a folder.
pub fn fill(folder: &Path) {
    fs::write(folder.join("farrier.iso"), iso()).unwrap();
    for name in LOADERS {
        fs::write(folder.join(name), name).unwrap();
    }
}

/// An ISO, made like those of `farrier-image`.
pub fn iso() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path();
    fs::create_dir_all(tree.join("boot/grub")).unwrap();
    fs::write(tree.join("boot/grub/grub.cfg"), "linux /vmlinuz\ninitrd /initramfs.img\nboot\n").unwrap();
    fs::create_dir_all(tree.join("openstack/latest")).unwrap();
    fs::write(tree.join(NETWORK_DATA), "").unwrap();
    config_drive::unpack(tree, &config_drive::pack(tree).unwrap()).unwrap()
}

pub fn published_media(folder: &Path) -> PublishedMedia {
    let own = LOADERS.map(|name| (name.to_owned(), folder.join(name)));
    PublishedMedia::open(folder.join("media"), URL, MediaLoaders::new(Loaders::new(own.into()))).unwrap()
}

fn interface(folder: &Path, published_media: PublishedMedia) -> VirtualMediaBoot {
    let allowed = AllowedFolders::new(vec![folder.to_owned()]).unwrap();
    let kernel_append_params = "nofb vga=normal".parse().unwrap();
    VirtualMediaBoot::new(published_media, Defaults { allowed, kernel_append_params, ..Defaults::default() })
}

/// Whether a part stands anywhere in a whole.
pub fn holds(whole: &[u8], part: impl AsRef<[u8]>) -> bool {
    let part = part.as_ref();
    whole.windows(part.len()).any(|window| window == part)
}
