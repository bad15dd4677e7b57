//! How an operator's command reaches a conductor: under which URL, by what it knows the conductor's certificate, and
//! what it shows of itself.

mod credentials;
mod failure;
pub(crate) mod secret;
mod trust;

use crate::state::StateDir;
use anyhow::{Context, bail};
use clap::Args;
use credentials::Credentials;
pub(crate) use failure::{CONNECTION_ERRORS, of_request as unreachable};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use trust::Trust;

/// Longest time for one request.
const REQUEST_LIMIT: Duration = Duration::from_secs(120);

/// Where a conductor of this host listens.
const DEFAULT_URL: &str = "https://127.0.0.1:6386";

/// Options for the connection to the conductor. Passwords and tokens are not among them: every user of a host can
/// read arguments.
#[derive(Debug, Args)]
pub(crate) struct Access {
    /// URL of the node API [default: OS_ENDPOINT, or https://127.0.0.1:6386].
    #[arg(long, global = true, value_name = "URL", env = "FARRIER_URL")]
    url: Option<String>,
    /// CA certificates that verify the conductor, in PEM format [default: OS_CACERT with OS_ENDPOINT; on loopback
    /// addresses STATE_DIR/tls/certificate.pem; otherwise the CAs of this host].
    #[arg(long, global = true, value_name = "FILE", env = "FARRIER_CA", conflicts_with = "fingerprint")]
    ca: Option<PathBuf>,
    /// SHA-256 fingerprint of the conductor's certificate, as printed by `farrier serve`.
    #[arg(long, global = true, value_name = "SHA256", env = "FARRIER_FINGERPRINT")]
    fingerprint: Option<crate::state::fingerprint::Fingerprint>,
    /// File with a token, or with NAME:PASSWORD. FARRIER_TOKEN, or FARRIER_USERNAME with FARRIER_PASSWORD, override
    /// it [default: OS_USERNAME and OS_PASSWORD, or OS_TOKEN, by OS_AUTH_TYPE; on loopback addresses
    /// STATE_DIR/token].
    #[arg(long, global = true, value_name = "FILE", env = "FARRIER_CREDENTIALS")]
    credentials: Option<PathBuf>,
    #[command(flatten)]
    state_dir: StateDir,
}

/// A way to a conductor.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) http: Client,
    pub(crate) url: Url,
    pub(crate) has_credentials: bool,
}

impl Access {
    pub(crate) fn open(&self) -> anyhow::Result<Connection> {
        self.open_with(&|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn open_with(&self, variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Connection> {
        let url = self.url(variable)?;
        let is_local = is_loopback(&url);
        let state = Some(&self.state_dir).filter(|_| is_local);
        let credentials = Credentials::find(variable, self.credentials.as_deref(), state)?;
        if url.scheme() != "https" && !is_local && credentials.is_some() {
            bail!("{url} would receive your credentials in clear text: use https, or a loopback address");
        }
        let of_openstack = || variable("OS_CACERT").filter(|_| credentials::is_standalone(variable));
        let ca = self.ca.clone().or_else(|| of_openstack().map(PathBuf::from));
        let trust = Trust::find(&url, ca.as_deref(), self.fingerprint, state)?;
        let builder = Client::builder().timeout(REQUEST_LIMIT).no_proxy().redirect(Policy::none());
        let builder = builder.default_headers(credentials.iter().map(Credentials::header).collect());
        let has_credentials = credentials.is_some();
        let http = trust.apply(builder)?.build()?;
        Ok(Connection { http, url, has_credentials })
    }

    fn url(&self, variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<Url> {
        let of_openstack = || variable("OS_ENDPOINT").filter(|_| credentials::is_standalone(variable));
        let text = self.url.clone().or_else(of_openstack).unwrap_or_else(|| DEFAULT_URL.to_owned());
        // The text is not told before it is known to hold no password.
        let url = Url::parse(&text).context("--url is not a URL")?;
        if url.password().is_some() || !url.username().is_empty() {
            bail!("--url holds a name or password: set FARRIER_USERNAME and FARRIER_PASSWORD instead");
        }
        if !["http", "https"].contains(&url.scheme()) || url.cannot_be_a_base() {
            bail!("--url {url} does not begin with https:// or http://");
        }
        Ok(url)
    }
}

/// What to do about a refusal that is about who asks.
pub(crate) fn advice(status: StatusCode, has_credentials: bool) -> Option<&'static str> {
    match (status, has_credentials) {
        (StatusCode::UNAUTHORIZED, true) => Some(
            "the conductor rejects these credentials; `farrier auth list` on its host lists users and tokens",
        ),
        (StatusCode::UNAUTHORIZED, false) => Some(
            "the conductor requires credentials: set FARRIER_TOKEN, or FARRIER_USERNAME and FARRIER_PASSWORD, or give \
             --credentials FILE; on its own host, --state-dir DIR",
        ),
        (StatusCode::FORBIDDEN, _) => Some("the conductor does not allow this"),
        _ => None,
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::fs;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        access: Access,
    }

    fn open(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Connection> {
        rustls::crypto::ring::default_provider().install_default().ok();
        let line = Line::try_parse_from([&[""], arguments].concat()).unwrap();
        line.access.open_with(&|name| {
            variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_url_is_that_of_the_option_or_of_a_conductor_without_keystone() {
        let openstack = |kind| {
            [
                ("OS_AUTH_TYPE", kind),
                ("OS_ENDPOINT", "https://h:1"),
                ("OS_USERNAME", "me"),
                ("OS_PASSWORD", "x"),
            ]
        };
        for (arguments, variables, expected) in [
            (&[][..], &[][..], "https://127.0.0.1:6386/"),
            (&["--url", "http://127.0.0.1:1"], &[], "http://127.0.0.1:1/"),
            (&[], &openstack("none"), "https://h:1/"),
            (&[], &openstack("http_basic"), "https://h:1/"),
            (&[], &openstack("password"), "https://127.0.0.1:6386/"),
            (&["--url", "https://o"], &openstack("none"), "https://o/"),
        ] {
            assert_eq!(open(arguments, variables).unwrap().url.as_str(), expected);
        }
    }

    #[test]
    fn credentials_stay_out_of_urls_and_of_the_open_network() {
        let token = [("FARRIER_TOKEN", "secret")];
        let openstack = [("OS_AUTH_TYPE", "none"), ("OS_CACERT", "/dev/null")];
        assert!(open(&[], &openstack).is_err());
        assert!(open(&[], &openstack[1..]).is_ok());
        for (arguments, expected) in [
            (&["--url", "https://me:secret@h"][..], "holds a name or password"),
            (&["--url", "https://me:secret@h:x"], "is not a URL"),
            (&["--url", "ftp://h"], "does not begin with https://"),
            (&["--url", "http://192.0.2.1"], "in clear"),
            (&["--ca", "/nonexistent"], "/nonexistent cannot be used"),
            (&["--ca", "/dev/null"], "/dev/null cannot be used: it has no certificate"),
        ] {
            let said = format!("{:#}", open(arguments, &token).unwrap_err());
            assert!(said.contains(expected) && !said.contains("secret"), "{said}");
        }
        for url in ["http://127.0.0.1", "http://[::1]", "http://localhost", "https://192.0.2.1"] {
            assert!(open(&["--url", url], &token).is_ok(), "{url}");
        }
        assert!(open(&["--url", "http://192.0.2.1"], &[]).is_ok(), "there is nothing to hide");
    }

    #[test]
    fn the_token_in_the_state_directory_is_for_loopback_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().to_str().unwrap();
        let shows = |url: &str| open(&["--state-dir", state, "--url", url], &[]).unwrap().has_credentials;
        assert!(!shows("https://127.0.0.1"));
        fs::write(folder.path().join("token"), "abc\n").unwrap();
        for (url, expected) in [
            ("https://127.0.0.1", true),
            ("https://localhost:1", true),
            ("http://[::1]", true),
            ("https://192.0.2.1", false),
            ("https://localhost.example", false),
        ] {
            assert_eq!(shows(url), expected, "{url}");
        }
    }
}
