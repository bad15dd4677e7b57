//! A registry of container images, and images small enough to be made on the spot.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// An image of one layer (OCI image specification 1.0).
#[derive(Debug)]
pub struct Image {
    manifest: Vec<u8>,
    blobs: BTreeMap<String, Vec<u8>>,
}

impl Image {
    /// An image with these executable files, which runs `command`.
    ///
    /// # Errors
    ///
    /// A path is too long for an archive.
    pub fn new(files: &[(&str, &[u8])], command: &[&str]) -> Result<Self> {
        let mut archive = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = tar::Header::new_ustar();
            header.set_mode(0o755);
            header.set_size(content.len() as u64);
            archive.append_data(&mut header, path, *content)?;
        }
        let layer = archive.into_inner()?;
        let config = json!({
            "architecture": "amd64",
            "os": "linux",
            "config": {"Cmd": command, "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [digest(&layer)]},
        });
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &config),
            "layers": [descriptor(LAYER, &layer)],
        });
        let blobs = [config, layer].map(|blob| (digest(&blob), blob)).into();
        Ok(Self { manifest: manifest.to_string().into_bytes(), blobs })
    }
}

fn descriptor(kind: &str, blob: &[u8]) -> Value {
    json!({"mediaType": kind, "size": blob.len(), "digest": digest(blob)})
}

fn digest(blob: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(blob)))
}

/// The registry, over plain HTTP (OCI distribution specification 1.0). It answers until the process ends.
#[derive(Debug)]
pub struct Registry {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

/// What the registry has, and who may have it.
#[derive(Debug, Default)]
pub struct Shelf {
    /// Images by name; each has the tag `1`.
    pub images: BTreeMap<&'static str, Image>,
    /// `user:password` that is asked for, by the name of the image.
    pub credentials: BTreeMap<&'static str, &'static str>,
}

impl Registry {
    /// Listens on a free port of the loopback address.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub fn start(shelf: Shelf) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let requests = Arc::default();
        let registry = Self { port, requests: Arc::clone(&requests) };
        let shelf = Arc::new(shelf);
        thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (shelf, requests) = (Arc::clone(&shelf), Arc::clone(&requests));
                // A client that goes away has no need of an answer.
                thread::spawn(move || serve(connection, &shelf, &requests));
            }
        });
        Ok(registry)
    }

    /// Host and port for a machine on QEMU's user network.
    pub fn guest_host(&self) -> String {
        format!("10.0.2.2:{}", self.port)
    }

    /// Name of an image for a machine on QEMU's user network.
    pub fn guest_name(&self, image: &str) -> String {
        format!("{}/{image}:1", self.guest_host())
    }

    /// Paths that were asked for.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

fn serve(mut connection: TcpStream, shelf: &Shelf, requests: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut lines = BufReader::new(connection.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    let headers: Vec<_> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
    requests.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(path.clone());
    let authorization = headers.iter().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("authorization").then(|| value.trim().to_owned())
    });
    let (status, kind, body) = answer(shelf, &path, authorization.as_deref());
    let challenge = if status == 401 { "WWW-Authenticate: Basic realm=\"test\"\r\n" } else { "" };
    write!(
        connection,
        "HTTP/1.1 {status} Answer\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{challenge}\
         Docker-Distribution-API-Version: registry/2.0\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if request.starts_with("HEAD ") { Ok(()) } else { connection.write_all(body) }
}

fn answer<'a>(shelf: &'a Shelf, path: &str, authorization: Option<&str>) -> (u16, &'static str, &'a [u8]) {
    let Some(rest) = path.strip_prefix("/v2/") else { return (404, "text/plain", b"") };
    let is_known =
        |credentials: &&str| authorization == Some(&*format!("Basic {}", STANDARD.encode(credentials)));
    // Clients ask here first whether anything is asked of them.
    if rest.is_empty() {
        return (
            if shelf.credentials.is_empty() || authorization.is_some() { 200 } else { 401 },
            "text/plain",
            b"",
        );
    }
    let (name, what) = rest.split_once('/').unwrap_or((rest, ""));
    let Some(image) = shelf.images.get(name) else { return (404, "text/plain", b"") };
    if shelf.credentials.get(name).is_some_and(|credentials| !is_known(credentials)) {
        return (401, "text/plain", b"");
    }
    match what.split_once('/') {
        Some(("manifests", reference)) if reference == "1" || reference == digest(&image.manifest) => {
            (200, MANIFEST, &image.manifest)
        }
        Some(("blobs", wanted)) => match image.blobs.get(wanted) {
            Some(blob) => (200, "application/octet-stream", blob),
            None => (404, "text/plain", b""),
        },
        _ => (404, "text/plain", b""),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn images_are_given_by_tag_and_digest_to_those_who_may_have_them() {
        let image = || Image::new(&[("bin/tool", b"content")], &["/bin/tool"]).unwrap();
        let shelf = Shelf {
            images: [("open", image()), ("closed", image())].into(),
            credentials: [("closed", "ann:x")].into(),
        };
        let closed = Some("Basic YW5uOng=");
        let manifest: Value = serde_json::from_slice(answer(&shelf, "/v2/open/manifests/1", None).2).unwrap();
        let layer = manifest["layers"][0]["digest"].as_str().unwrap();
        for (path, authorization, status) in [
            ("/v2/", None, 401),
            ("/v2/", closed, 200),
            ("/v2/open/manifests/1", None, 200),
            ("/v2/open/manifests/2", None, 404),
            ("/v2/closed/manifests/1", None, 401),
            ("/v2/closed/manifests/1", Some("Basic eA=="), 401),
            ("/v2/closed/manifests/1", closed, 200),
            (&format!("/v2/open/blobs/{layer}"), None, 200),
            ("/v2/open/blobs/sha256:00", None, 404),
            ("/v2/none/manifests/1", closed, 404),
            ("/", None, 404),
        ] {
            assert_eq!(answer(&shelf, path, authorization).0, status, "{path} {authorization:?}");
        }
    }
}
