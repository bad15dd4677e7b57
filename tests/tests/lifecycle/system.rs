//! What is deployed.

use farrier_tests::environment;
use farrier_tests::images::instance::{GREETING, image, sha256};
use farrier_tests::images::server::{ImageServer, Reply};
use std::sync::Arc;

/// An operating system on an image server.
pub struct System {
    pub server: ImageServer,
    /// Of the image.
    pub sha256: String,
    /// What it says on the serial console when it has booted.
    pub greeting: &'static str,
    /// The image, when it is small enough to be compared byte by byte.
    pub image: Arc<Vec<u8>>,
}

impl System {
    /// The smallest one that boots.
    pub fn small() -> Self {
        let image = Arc::new(image().unwrap());
        let server = ImageServer::start(vec![Reply::Body(Arc::clone(&image))]).unwrap();
        Self { server, sha256: sha256(&image), greeting: GREETING, image }
    }

    /// A Debian system, which also finds its root on RAID.
    pub fn debian() -> Self {
        let server = ImageServer::start(vec![Reply::File(environment::path("FARRIER_IMAGE"))]).unwrap();
        let sha256 = environment::path("FARRIER_IMAGE_SHA256").into_os_string().into_string().unwrap();
        Self { server, sha256, greeting: " login:", image: Arc::default() }
    }
}
