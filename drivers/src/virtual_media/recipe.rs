//! What a medium is made of, as it is noted for whoever serves it.

use super::error::MediumError;
use super::loaders::{Firmware, MediaLoaders};
use super::medium::{Medium, Parts};
use super::source::{self, Found, Source};
use crate::netboot::images::Image;
use farrier_media::boot_iso::Additions;
use farrier_media::config_drive;
use reqwest::{Client, Response, Url};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Most bytes that are kept of a file whose server sends it as a whole alone: a DVD.
const LONGEST_COPY: u64 = 8 << 30;
/// Longest time that a copy takes.
const COPY_LIMIT: Duration = Duration::from_secs(1800);

/// What a medium is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recipe {
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
        /// What the kernel is told, and the network of the machine.
        additions: Additions,
    },
}

/// What makes media.
#[derive(Debug, Clone)]
pub(super) struct Maker {
    pub(super) client: Client,
    pub(super) loaders: MediaLoaders,
}

impl Recipe {
    fn images(&mut self) -> Vec<&mut Image> {
        match self {
            Self::AsItIs { image } | Self::LaidOver { iso: image, .. } => vec![image],
            Self::OfKernel { kernel, ramdisk, bootloader, .. } => {
                [kernel, ramdisk].into_iter().chain(bootloader).collect()
            }
        }
    }
}

impl Maker {
    /// Copies what servers send as a whole alone into files with these names, and has the recipe name those.
    ///
    /// # Errors
    ///
    /// [`MediumError`].
    pub(super) async fn copy(
        &self,
        mut recipe: Recipe,
        file: impl Fn(usize) -> PathBuf,
    ) -> Result<Recipe, MediumError> {
        for (index, image) in recipe.images().into_iter().enumerate() {
            let Image::Url(url) = &image else { continue };
            let url = parsed(url)?;
            if let Found::Whole(response) = source::ask(&self.client, &url).await? {
                let file = file(index);
                let slow =
                    || MediumError::Refused { url: source::shown(&url), reason: "it takes too long".into() };
                let copied = timeout(COPY_LIMIT, copy(response, &url, &file)).await;
                copied.unwrap_or_else(|_| Err(slow()))?;
                *image = Image::File(file);
            }
        }
        Ok(recipe)
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
    pub(super) async fn check(&self, mut recipe: Recipe) -> Result<(), MediumError> {
        let mut is_here = true;
        for image in recipe.images() {
            if let Image::Url(url) = image {
                parsed(url)?;
                is_here = false;
            }
        }
        match is_here {
            true => self.open(recipe).await.map(drop),
            false => Ok(()),
        }
    }

    /// Opens a medium.
    ///
    /// # Errors
    ///
    /// [`MediumError`].
    pub(super) async fn open(&self, recipe: Recipe) -> Result<Medium, MediumError> {
        let loaders = self.loaders.clone();
        match recipe {
            Recipe::AsItIs { image } => Ok(Medium::as_it_is(self.source(&image).await?)),
            Recipe::LaidOver { iso, additions } => {
                let source = self.source(&iso).await?;
                blocking(move || Medium::laid_over(source, &additions, shown(&iso))).await
            }
            Recipe::OfKernel { kernel, ramdisk, bootloader, firmware, additions } => {
                let bootloader = match &bootloader {
                    Some(bootloader) => Some(self.source(bootloader).await?),
                    None => None,
                };
                let (kernel, ramdisk) = (self.source(&kernel).await?, self.source(&ramdisk).await?);
                let parts = Parts { kernel, ramdisk, bootloader };
                blocking(move || Medium::of_kernel(parts, &loaders, &firmware, &additions)).await
            }
        }
    }

    async fn source(&self, image: &Image) -> Result<Source, MediumError> {
        match image {
            Image::File(file) => {
                let file = file.clone();
                blocking(move || Source::file(&file)).await
            }
            Image::Url(url) => {
                let url = parsed(url)?;
                match source::ask(&self.client, &url).await? {
                    Found::Parts(remote) => Ok(Source::Remote(remote)),
                    // It did when the medium was made, or there would be a copy.
                    Found::Whole(_) => Err(MediumError::Changed { url: source::shown(&url) }),
                }
            }
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

async fn copy(mut response: Response, url: &Url, path: &Path) -> Result<(), MediumError> {
    let shown = source::shown(url);
    tracing::info!("{shown} is copied, since its server sends no parts of it");
    let failed = |source| MediumError::Folder { path: path.to_owned(), source };
    let cut = |error| source::interrupted(url, &error);
    let (mut file, mut length) = (File::create(path).await.map_err(failed)?, 0);
    while let Some(bytes) = response.chunk().await.map_err(cut)? {
        length += bytes.len() as u64;
        if length > LONGEST_COPY {
            return Err(MediumError::TooLong { what: shown, limit: LONGEST_COPY });
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
