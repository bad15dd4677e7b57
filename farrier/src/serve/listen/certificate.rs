//! The certificate of a listener: from files, or one that the conductor makes for itself at its first start.

use crate::state::CERTIFICATE;
use crate::state::fingerprint::Fingerprint;
use crate::state::private_file;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem};
use rustls::{CertificateError, RootCertStore, ServerConfig};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use time::{Duration, OffsetDateTime};

const KEY: &str = "key.pem";

const LOCAL_HOST: &str = "localhost";

/// How long a certificate made here is valid: its clients know it by its fingerprint, and a new one has another.
const VALID: Duration = Duration::days(3650);

/// Clocks of clients may be behind by so much.
const SKEW: Duration = Duration::days(1);

/// A certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    /// A file cannot be read.
    #[error("{file} cannot be read: {source}")]
    Read {
        file: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file holds something else.
    #[error("{file} has no {what} in PEM format: {source}")]
    Pem {
        file: PathBuf,
        what: &'static str,
        #[source]
        source: pem::Error,
    },
    /// They do not go together, or TLS does not take them.
    #[error("the certificate {certificate} cannot be used with the key {key}: {source}")]
    Pair {
        certificate: PathBuf,
        key: PathBuf,
        #[source]
        source: rustls::Error,
    },
    /// The certificate is over, or not yet valid.
    #[error("the certificate {certificate} is {state}; {next}")]
    Date { certificate: PathBuf, state: &'static str, next: &'static str },
    /// No certificate can be made.
    #[error("no certificate can be created in {folder}: {source}")]
    Make {
        folder: PathBuf,
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Where a certificate and its key lie.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// What is in them. Both texts are compared to see whether they were renewed.
#[derive(PartialEq, Eq)]
pub(crate) struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Files {
    /// Those that the conductor made for itself, which are made now if there are none. Of several that start at once,
    /// one makes them.
    pub(crate) fn own(folder: &Path, listen: IpAddr) -> Result<Self, TlsError> {
        if !folder.exists() {
            let failed = |source: Box<dyn std::error::Error + Send + Sync>| TlsError::Make {
                folder: folder.to_owned(),
                source,
            };
            make(folder, listen).map_err(failed)?;
        }
        Ok(Self { certificate: folder.join(CERTIFICATE), key: folder.join(KEY) })
    }

    pub(crate) fn read(&self) -> Result<Texts, TlsError> {
        let read =
            |file: &Path| fs::read(file).map_err(|source| TlsError::Read { file: file.to_owned(), source });
        Ok(Texts { certificate: read(&self.certificate)?, key: read(&self.key)? })
    }

    /// TLS settings with what was read, and the fingerprint of the certificate.
    pub(crate) fn settings(&self, texts: &Texts) -> Result<(Arc<ServerConfig>, Fingerprint), TlsError> {
        let bad = |file: &Path, what| {
            let file = file.to_owned();
            move |source| TlsError::Pem { file, what, source }
        };
        let chain = CertificateDer::pem_slice_iter(&texts.certificate).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(bad(&self.certificate, "certificate"))?;
        let Some(leaf) = chain.first() else {
            return Err(bad(&self.certificate, "certificate")(pem::Error::NoItemsFound));
        };
        let key = PrivateKeyDer::from_pem_slice(&texts.key).map_err(bad(&self.key, "private key"))?;
        self.check_dates(leaf)?;
        let fingerprint = Fingerprint::of(leaf);
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|source| self.pair(source))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok((Arc::new(config), fingerprint))
    }

    /// Verifies the certificate as if it were its own authority: what is found first is whether it is valid now.
    fn check_dates(&self, leaf: &CertificateDer<'_>) -> Result<(), TlsError> {
        let mut roots = RootCertStore::empty();
        roots.add(leaf.clone()).map_err(|source| self.pair(source))?;
        let provider = Arc::new(default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
        let verifier = verifier.map_err(|error| self.pair(rustls::Error::General(error.to_string())))?;
        let name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST).into());
        use CertificateError::{Expired, ExpiredContext, NotValidYet, NotValidYetContext};
        let (state, next) = match verifier.verify_server_cert(leaf, &[], &name, &[], UnixTime::now()) {
            Err(rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. })) => {
                ("expired", "renew it, or delete it if the conductor created it")
            }
            Err(rustls::Error::InvalidCertificate(NotValidYet | NotValidYetContext { .. })) => {
                ("not valid yet", "set the clock of this host, or use another")
            }
            _ => return Ok(()),
        };
        Err(TlsError::Date { certificate: self.certificate.clone(), state, next })
    }

    fn pair(&self, source: rustls::Error) -> TlsError {
        TlsError::Pair { certificate: self.certificate.clone(), key: self.key.clone(), source }
    }
}

/// Creates a folder with a certificate and its key, unless another process was faster.
fn make(folder: &Path, listen: IpAddr) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let certificate = parameters(listen)?.self_signed(&key)?;
    let unfinished = private_file::beside(folder);
    fs::DirBuilder::new().mode(0o700).create(&unfinished)?;
    private_file::write(&unfinished.join(KEY), key.serialize_pem().as_bytes())?;
    private_file::write(&unfinished.join(CERTIFICATE), certificate.pem().as_bytes())?;
    if let Err(error) = fs::rename(&unfinished, folder) {
        fs::remove_dir_all(&unfinished)?;
        if !folder.exists() {
            return Err(error.into());
        }
    }
    Ok(())
}

/// For this host under its name, on its loopback addresses, and at the address that is listened on.
fn parameters(listen: IpAddr) -> Result<CertificateParams, rcgen::Error> {
    let host = crate::serve::host_name().unwrap_or_else(|_| LOCAL_HOST.to_owned());
    let mut names = vec![host.clone(), LOCAL_HOST.to_owned()];
    let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST), listen];
    names.extend(addresses.iter().filter(|address| !address.is_unspecified()).map(IpAddr::to_string));
    names.sort();
    names.dedup();
    let mut parameters = CertificateParams::new(names)?;
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, host);
    parameters.not_before = OffsetDateTime::now_utc() - SKEW;
    parameters.not_after = OffsetDateTime::now_utc() + VALID;
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn own(folder: &Path) -> Files {
        Files::own(&folder.join("tls"), "192.0.2.1".parse().unwrap()).unwrap()
    }

    fn settings(files: &Files) -> Result<Fingerprint, TlsError> {
        files.settings(&files.read()?).map(|(_, fingerprint)| fingerprint)
    }

    #[test]
    fn a_certificate_is_made_once_and_its_key_is_for_its_owner() {
        let folder = tempfile::tempdir().unwrap();
        let files = own(folder.path());
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&files.key), 0o600);
        assert_eq!(mode(files.key.parent().unwrap()), 0o700);
        let first = settings(&files).unwrap();
        assert_eq!(settings(&own(folder.path())).unwrap(), first);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn conductors_that_start_at_once_have_one_certificate() {
        let folder = tempfile::tempdir().unwrap();
        let made = std::thread::scope(|scope| {
            let threads = (0..8).map(|_| scope.spawn(|| settings(&own(folder.path())).unwrap()));
            let threads = threads.collect::<Vec<_>>();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(made.iter().all(|fingerprint| *fingerprint == made[0]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_that_cannot_be_used_are_reported_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let dated = |days: (i64, i64)| {
            let key = KeyPair::generate().unwrap();
            let mut parameters = CertificateParams::new(vec!["c.example".to_owned()]).unwrap();
            parameters.not_before = OffsetDateTime::now_utc() + Duration::days(days.0);
            parameters.not_after = OffsetDateTime::now_utc() + Duration::days(days.1);
            (parameters.self_signed(&key).unwrap().pem(), key.serialize_pem())
        };
        let (good, over, early) = (dated((-1, 1)), dated((-2, -1)), dated((1, 2)));
        let garbled = good.0.replace("MII", "NII");
        let bundle = format!("{}{}", good.1, good.0);
        for (certificate, key, expected) in [
            (good.0.as_str(), good.1.as_str(), None),
            (&bundle, &bundle, None),
            (&over.0, &over.1, Some("is expired")),
            (&early.0, &early.1, Some("is not valid yet")),
            (&good.0, &over.1, Some("cannot be used with the key")),
            (&good.1, &good.1, Some("c.pem has no certificate")),
            ("", &good.1, Some("c.pem has no certificate")),
            ("-----BEGIN CERTIFICATE-----\nAAAA", &good.1, Some("c.pem has no certificate")),
            (&garbled, &good.1, Some("c.pem")),
            (&good.0, &good.0, Some("k.pem has no private key")),
            (&good.0, "", Some("k.pem has no private key")),
        ] {
            let files = Files { certificate: file("c.pem", certificate), key: file("k.pem", key) };
            let said = settings(&files).err().map(|error| error.to_string());
            match (said, expected) {
                (None, None) => {}
                (Some(said), Some(expected)) => {
                    assert!(said.contains(expected) && !said.contains('\n'), "{expected}: {said}");
                }
                (said, expected) => panic!("{said:?} instead of {expected:?}"),
            }
        }
        let absent = Files { certificate: folder.path().join("none"), key: folder.path().join("none") };
        assert!(settings(&absent).unwrap_err().to_string().contains("none cannot be read"));
    }
}
