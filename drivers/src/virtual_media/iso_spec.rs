//! The parts of a medium, as they are stored for the server.

use super::error::MediumError;
use super::loaders::{Firmware, MediaLoaders};
use super::source::{self, Found, Source};
use super::virtual_medium::{Medium, Parts};
use crate::netboot::images::Image;
use farrier_media::boot_iso::Additions;
use farrier_media::config_drive;
use reqwest::{Client, Response, Url};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// What is kept at most of a file whose server sends it as a whole alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct CopyLimits {
    /// Its length in bytes.
    pub(super) bytes: u64,
    /// How long it takes to copy.
    pub(super) time: Duration,
}

impl CopyLimits {
    /// A DVD, in half an hour.
    pub(super) const USUAL: Self = Self { bytes: 8 << 30, time: Duration::from_secs(1800) };
}

/// By what each file and URL of a medium is known to be still the same, since the medium was made.
pub(super) type Marks = BTreeMap<String, String>;

/// What a medium is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IsoSpec {
    /// A file as it is.
    AsItIs {
        /// The file.
        image: Image,
    },
    /// An ISO, with what it gets for one boot.
    LaidOver {
        /// The ISO.
        iso: Image,
        /// What it gets.
        additions: Additions,
    },
    /// A kernel with its ramdisk.
    OfKernel {
        /// The kernel.
        kernel: Image,
        /// The ramdisk.
        ramdisk: Image,
        /// The image of an EFI system partition of the site's; shim and GRUB of the distribution without it.
        bootloader: Option<Image>,
        /// What starts it.
        firmware: Firmware,
        /// The kernel parameters, and the network of the machine.
        additions: Additions,
    },
}

/// Builds media.
#[derive(Debug, Clone)]
pub(super) struct MediumBuilder {
    pub(super) client: Client,
    pub(super) loaders: MediaLoaders,
    pub(super) limits: CopyLimits,
}

impl IsoSpec {
    fn images(&mut self) -> Vec<&mut Image> {
        match self {
            Self::AsItIs { image } | Self::LaidOver { iso: image, .. } => vec![image],
            Self::OfKernel { kernel, ramdisk, bootloader, .. } => {
                [kernel, ramdisk].into_iter().chain(bootloader).collect()
            }
        }
    }
}

impl MediumBuilder {
    /// Copies what servers send as a whole alone into files with these names, and has the specification name those.
    ///
    /// # Errors
    ///
    /// [`MediumError`].
    pub(super) async fn copy(
        &self,
        mut spec: IsoSpec,
        file: impl Fn(usize) -> PathBuf,
    ) -> Result<IsoSpec, MediumError> {
        for (index, image) in spec.images().into_iter().enumerate() {
            let Image::Url(url) = &image else { continue };
            let url = parsed(url)?;
            if let Found::Whole(response) = source::ask(&self.client, &url).await? {
                let file = file(index);
                let CopyLimits { bytes, time } = self.limits;
                let copied = timeout(time, copy(response, &url, &file, bytes)).await;
                copied
                    .unwrap_or_else(|_| Err(MediumError::Slow { url: source::shown(&url), limit: time }))?;
                *image = Image::File(file);
            }
        }
        Ok(spec)
    }

    /// The image of a config drive, by its text or by the URL of that.
    ///
    /// # Errors
    ///
    /// [`MediumError`].
    pub(super) async fn config_drive(&self, text: &str) -> Result<Vec<u8>, MediumError> {
        let unpacked = |text: &str| Ok(config_drive::unpack(Path::new("of the instance"), text)?);
        let Ok(url) = parsed(text) else { return unpacked(text) };
        let packed = source::whole(&self.client, &url, 2 * config_drive::SIZE_LIMIT).await?;
        unpacked(&String::from_utf8_lossy(&packed))
    }

    /// Checks whether a medium can be made, as far as that is known without asking servers.
    ///
    /// # Errors
    ///
    /// [`MediumError`].
    pub(super) async fn check(&self, mut spec: IsoSpec) -> Result<(), MediumError> {
        let mut is_here = true;
        for image in spec.images() {
            if let Image::Url(url) = image {
                parsed(url)?;
                is_here = false;
            }
        }
        match is_here {
            true => self.open(spec, &mut Marks::new()).await.map(drop),
            false => Ok(()),
        }
    }

    /// Opens a medium whose parts have these marks; those that have none get them.
    ///
    /// # Errors
    ///
    /// [`MediumError`].
    pub(super) async fn open(&self, spec: IsoSpec, marks: &mut Marks) -> Result<Medium, MediumError> {
        let loaders = self.loaders.clone();
        match spec {
            IsoSpec::AsItIs { image } => Ok(Medium::as_it_is(self.source(&image, marks).await?)),
            IsoSpec::LaidOver { iso, additions } => {
                let source = self.source(&iso, marks).await?;
                blocking(move || Medium::laid_over(source, &additions, shown(&iso))).await
            }
            IsoSpec::OfKernel { kernel, ramdisk, bootloader, firmware, additions } => {
                let bootloader = match &bootloader {
                    Some(bootloader) => Some(self.source(bootloader, marks).await?),
                    None => None,
                };
                let kernel = self.source(&kernel, marks).await?;
                let ramdisk = self.source(&ramdisk, marks).await?;
                let parts = Parts { kernel, ramdisk, bootloader };
                blocking(move || Medium::of_kernel(parts, &loaders, &firmware, &additions)).await
            }
        }
    }

    async fn source(&self, image: &Image, marks: &mut Marks) -> Result<Source, MediumError> {
        let (name, source) = match image {
            Image::File(file) => {
                let file = file.clone();
                (file.display().to_string(), blocking(move || Source::file(&file)).await?)
            }
            Image::Url(url) => match source::ask(&self.client, &parsed(url)?).await? {
                Found::Parts(remote) => (url.clone(), Source::Remote(remote)),
                // It did when the medium was made, or there would be a copy.
                Found::Whole(_) => return Err(MediumError::Changed { what: shown(image) }),
            },
        };
        let mark = source.mark();
        match *marks.entry(name).or_insert_with(|| mark.clone()) == mark {
            true => Ok(source),
            false => Err(MediumError::Changed { what: shown(image) }),
        }
    }
}

fn parsed(url: &str) -> Result<Url, MediumError> {
    let refused = |url: String, reason: String| MediumError::Refused { url, reason };
    let url = Url::parse(url).map_err(|error| refused("a URL".into(), error.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err(refused(source::shown(&url), "a medium is made of files, and of http and https".into())),
    }
}

fn shown(image: &Image) -> String {
    match image {
        Image::File(file) => file.display().to_string(),
        Image::Url(url) => Url::parse(url).map_or_else(|_| url.clone(), |url| source::shown(&url)),
    }
}

async fn copy(mut response: Response, url: &Url, path: &Path, limit: u64) -> Result<(), MediumError> {
    let shown = source::shown(url);
    if response.content_length().is_some_and(|length| length > limit) {
        return Err(MediumError::TooLong { what: shown, limit });
    }
    tracing::info!("{shown} is copied, since its server sends no parts of it");
    let failed = |source| MediumError::Folder { path: path.to_owned(), source };
    let cut = |error| source::interrupted(url, &error);
    let (mut file, mut length) = (File::create(path).await.map_err(failed)?, 0);
    while let Some(bytes) = response.chunk().await.map_err(cut)? {
        length += bytes.len() as u64;
        if length > limit {
            return Err(MediumError::TooLong { what: shown, limit });
        }
        file.write_all(&bytes).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MediumError> + Send + 'static,
) -> Result<T, MediumError> {
    spawn_blocking(work).await.map_err(|_| MediumError::Crashed)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netboot::loaders::Loaders;
    use farrier_tests::images::server::{ImageServer, Reply};
    use std::sync::Arc;

    /// Why a file that its server sends as a whole is not kept, and whether some of it was copied.
    async fn refusal(reply: Reply) -> (String, bool) {
        rustls::crypto::ring::default_provider().install_default().ok();
        let folder = tempfile::tempdir().unwrap();
        let server = ImageServer::start(vec![reply]).unwrap();
        let builder = MediumBuilder {
            client: source::client().unwrap(),
            loaders: MediaLoaders::new(Loaders::new(BTreeMap::new())),
            limits: CopyLimits { bytes: 1000, time: Duration::from_secs(1) },
        };
        let spec = IsoSpec::AsItIs { image: Image::Url(server.url()) };
        let copy = folder.path().join("copy");
        let copied = builder.copy(spec, |_| copy.clone()).await;
        (copied.unwrap_err().to_string().replace(&server.url(), "URL"), copy.exists())
    }

    #[tokio::test]
    async fn a_copy_is_given_up_that_is_too_long_or_takes_too_long() {
        let body = || Arc::new(vec![b'x'; 1001]);
        let too_long = "URL is longer than 1000 bytes".to_owned();
        // Nothing is copied of what is too long by its server's own word.
        assert_eq!(refusal(Reply::Body(body())).await, (too_long.clone(), false));
        assert_eq!(refusal(Reply::WithoutLength(body())).await, (too_long, true));
        let (stalled, _) = refusal(Reply::Stalled(vec![b'x'; 1000].into(), 10)).await;
        assert!(stalled.starts_with("URL cannot be loaded within 1 s"), "{stalled}");
    }
}
