//! Whose certificates BMCs may have, and the HTTP clients that take no others.

use super::error::RedfishError;
use super::settings::RedfishSettings;
use crate::client::gzip;
use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Version of the protocol that every request names (DSP0266).
const ODATA_VERSION: HeaderName = HeaderName::from_static("odata-version");

/// Clients that are kept; a site has one or two authorities.
const MOST: usize = 64;

/// Whose certificates BMCs may have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::redfish) enum Trust {
    /// Those of authorities that this host trusts.
    Host,
    /// Those of authorities in a file, or in the files of a folder, as they were at a time.
    Files(PathBuf, Option<SystemTime>),
    /// Any certificate.
    Anybody,
}

impl Trust {
    /// In the files at a path, as they are now.
    pub(in crate::redfish) fn of_files(path: &Path) -> Self {
        let changed = path.metadata().and_then(|metadata| metadata.modified()).ok();
        Self::Files(path.to_owned(), changed)
    }
}

/// The HTTP clients, one for each trust.
#[derive(Debug)]
pub(in crate::redfish) struct Clients {
    known: Mutex<HashMap<Trust, Client>>,
    settings: Arc<RedfishSettings>,
}

impl Clients {
    /// Those of a conductor with these settings.
    pub(in crate::redfish) fn new(settings: &Arc<RedfishSettings>) -> Self {
        Self { known: Mutex::default(), settings: Arc::clone(settings) }
    }

    /// The client that takes certificates of this trust.
    ///
    /// # Errors
    ///
    /// [`RedfishError::CaFile`].
    pub(in crate::redfish) fn get(&self, trust: &Trust) -> Result<Client, RedfishError> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = known.get(trust) {
            return Ok(client.clone());
        }
        let client = client(trust, &self.settings)?;
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(trust.clone(), client.clone());
        Ok(client)
    }
}

/// BMCs have room for few connections and are slow to notice that one has ended: each request has its own.
fn client(trust: &Trust, settings: &RedfishSettings) -> Result<Client, RedfishError> {
    let headers = HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("application/json")),
        (ACCEPT_ENCODING, HeaderValue::from_static(gzip::ACCEPTED)),
        (CONNECTION, HeaderValue::from_static("close")),
        (ODATA_VERSION, HeaderValue::from_static("4.0")),
    ]);
    let client = Client::builder()
        .user_agent(settings.user_agent.as_str())
        .default_headers(headers)
        .redirect(Policy::none())
        .connect_timeout(settings.connect_timeout)
        .pool_max_idle_per_host(0)
        .http1_only()
        .no_proxy();
    let (client, file) = match trust {
        Trust::Host => (client, PathBuf::new()),
        Trust::Files(path, _) => {
            (client.tls_certs_only(certificates(path, &settings.ca_folders)?), path.clone())
        }
        Trust::Anybody => (client.tls_danger_accept_invalid_certs(true), PathBuf::new()),
    };
    client.build().map_err(|error| RedfishError::CaFile { file, reason: error.to_string() })
}

/// At least one certificate, from below one of these folders. The error does not tell whether a file
/// elsewhere exists.
fn certificates(path: &Path, folders: &[PathBuf]) -> Result<Vec<Certificate>, RedfishError> {
    let bad = |reason: String| RedfishError::CaFile { file: path.to_owned(), reason };
    let is_below = |real: &PathBuf| {
        folders.iter().filter_map(|folder| folder.canonicalize().ok()).any(|folder| real.starts_with(folder))
    };
    let real = path.canonicalize().ok().filter(is_below).ok_or_else(|| {
        let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
        bad(format!("there is none, or it is not below a folder for them, which are {}", folders.join(", ")))
    })?;
    let texts = texts(&real).map_err(|error| bad(error.to_string()))?;
    let mut found = Vec::new();
    for text in texts {
        found.extend(Certificate::from_pem_bundle(&text).map_err(|error| bad(error.to_string()))?);
    }
    match found.is_empty() {
        true => Err(bad("there is no certificate".to_owned())),
        false => Ok(found),
    }
}

/// A file, or those of a folder.
fn texts(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    if !path.is_dir() {
        return Ok(vec![std::fs::read(path)?]);
    }
    let files = path.read_dir()?.filter_map(Result::ok).map(|entry| entry.path());
    files.filter(|file| file.is_file()).map(std::fs::read).collect()
}
