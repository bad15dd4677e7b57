//! Which certificate the listener shows, if any (section 2.6).

use super::{Identity, TlsError, listener_config, read_certificates};
use crate::settings::options::Options;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

/// Where the certificate of the listener comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum Source<'a> {
    /// It is generated at the start, and sent to the conductor.
    Made,
    /// It lies in these files, and the conductor trusts its authority.
    Files(&'a str, &'a str),
    /// There is none.
    Absent,
}

impl<'a> Source<'a> {
    /// Chooses it. A conductor without support for certificates gets none.
    ///
    /// # Errors
    ///
    /// [`TlsError::NoFiles`] when TLS is demanded with files that are not named.
    pub fn choose(options: &'a Options, can_be_told: bool) -> Result<Self, TlsError> {
        let files = options.tls_cert_file.as_deref().zip(options.tls_key_file.as_deref());
        let is_made = options.enable_auto_tls && !options.listen_tls && can_be_told;
        match files {
            _ if is_made => Ok(Self::Made),
            Some((certificate, key)) => Ok(Self::Files(certificate, key)),
            None if options.listen_tls => Err(TlsError::NoFiles),
            None => Ok(Self::Absent),
        }
    }
}

/// Settings of a listener that shows the certificate in a file.
///
/// # Errors
///
/// [`TlsError::Files`] when one cannot be read, or they do not belong together.
pub fn from_files(certificate: &str, key: &str, options: &Options) -> Result<ServerConfig, TlsError> {
    let read = || {
        let chain = read_certificates(certificate)?;
        let key = PrivateKeyDer::from_pem_file(key)?;
        listener_config(chain, key, options)
    };
    read().map_err(|source| TlsError::Files {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        source: Box::new(source),
    })
}

/// Settings of a listener that shows a certificate made at the start.
///
/// # Errors
///
/// [`TlsError::Settings`], or [`TlsError::Stored`] when the stored texts were damaged.
pub fn from_identity(identity: &Identity, options: &Options) -> Result<ServerConfig, TlsError> {
    let (certificate, key) = identity.parts()?;
    listener_config(vec![certificate], key, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::http;
    use crate::settings::options::Curve;
    use std::time::Duration;

    #[test]
    fn the_source_of_the_certificate_follows_the_options() {
        let file = |name: &str| Some(name.to_owned());
        for (listen_tls, enable_auto_tls, cert, key, can_be_told, expected) in [
            (false, true, None, None, true, Some(Source::Made)),
            (false, true, file("c"), file("k"), true, Some(Source::Made)),
            (true, true, file("c"), file("k"), true, Some(Source::Files("c", "k"))),
            (false, false, file("c"), file("k"), true, Some(Source::Files("c", "k"))),
            (false, true, file("c"), file("k"), false, Some(Source::Files("c", "k"))),
            (false, true, None, None, false, Some(Source::Absent)),
            (false, false, file("c"), None, true, Some(Source::Absent)),
            (true, true, file("c"), None, true, None),
        ] {
            let options = Options {
                listen_tls,
                enable_auto_tls,
                tls_cert_file: cert,
                tls_key_file: key,
                ..Options::default()
            };
            assert_eq!(Source::choose(&options, can_be_told).ok(), expected);
        }
    }

    #[test]
    fn files_that_cannot_be_used_are_named() {
        http::install_tls_provider();
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
        for name in ["one", "other"] {
            let address = "192.0.2.1".parse().unwrap();
            let made = Identity::generate("host", address, Duration::ZERO, Curve::P256).unwrap();
            std::fs::write(path(&format!("{name}.pem")), &made.certificate_pem).unwrap();
            std::fs::write(path(&format!("{name}.key")), &made.key_pem).unwrap();
        }
        std::fs::write(path("damaged"), "no certificate").unwrap();
        for (certificate, key, is_usable) in [
            ("one.pem", "one.key", true),
            ("one.pem", "other.key", false),
            ("absent.pem", "one.key", false),
            ("damaged", "one.key", false),
            ("one.pem", "damaged", false),
        ] {
            let (certificate, key) = (path(certificate), path(key));
            let outcome = from_files(&certificate, &key, &Options::default());
            assert_eq!(outcome.is_ok(), is_usable, "{certificate} {key}");
            if let Err(error) = outcome {
                let text = error.to_string();
                assert!(text.contains(&certificate) && text.contains(&key), "{text}");
                assert_eq!(text.lines().count(), 1, "{text}");
            }
        }
    }
}
