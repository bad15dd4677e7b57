//! The two listeners of a conductor: what protects each, and the options that say so.

mod body_memory;
mod body_timeout;
mod certificate;
mod connection_limit;
mod limits;
mod listener;
pub(crate) mod renewal;
mod returned_stream;
mod same_site;

use crate::auth::{Anybody, AuthFile, Credential, Entry, Keystone, Operators};
use crate::failure::{CERTIFICATE_UNUSABLE, INVALID_OPTION, LISTEN_FAILED, OPERATORS_FILE, WithCode};
use crate::serve::listen::certificate::Files;
use crate::serve::listen::limits::Limits;
use crate::serve::listen::listener::{Tls, serve};
use crate::serve::listen::renewal::Look;
use crate::serve::listen::same_site::{Names, same_site};
use crate::state::StateDir;
use crate::state::fingerprint::Fingerprint;
use anyhow::{Context, bail};
use axum::http::Uri;
use axum::{Extension, Router};
use clap::{Args, ValueEnum};
use farrier_access::{Authorization, Role};
use farrier_engine::Conductor;
use farrier_node_api::authorization::authorized;
use farrier_node_api::{PublicUrl, Scheme};
use farrier_page::{Site, page_router};
use reqwest::Url;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Name of the user of the token in the state directory.
const LOCAL: &str = "local";

/// Authentication of operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuthStrategy {
    /// Users and tokens from the operators file.
    #[value(name = "http_basic")]
    HttpBasic,
    /// Users and tokens from the operators file, and Keystone tokens with a bare-metal role.
    #[value(name = "keystone")]
    Keystone,
    /// No authentication; loopback addresses only, and not with the hardware type qemu.
    #[value(name = "noauth")]
    NoAuth,
}

/// Options about listeners.
#[derive(Debug, Args)]
pub(crate) struct ListenerOptions {
    /// Address of the ramdisk API: lookup and heartbeat. Port 0 selects a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:6385")]
    listen: SocketAddr,
    /// Address of the node API, of metrics and of the page, which browsers find at /page/.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6386")]
    admin_listen: SocketAddr,
    /// URL of the node API as operators reach it, for links in responses [default: the URL of each request].
    #[arg(long, value_name = "URL", value_parser = public_url)]
    admin_url: Option<Uri>,
    /// TLS certificate of the node API with its chain, in PEM format; a renewed file is reloaded [default: a
    /// self-signed certificate in STATE_DIR/tls].
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serve the node API without TLS; loopback addresses only.
    #[arg(long, conflicts_with = "tls_cert")]
    admin_plain_http: bool,
    /// TLS certificate of the ramdisk API; agents verify it with their option cafile.
    #[arg(long, value_name = "FILE", requires = "ramdisk_tls_key")]
    ramdisk_tls_cert: Option<PathBuf>,
    /// Private key of the certificate.
    #[arg(long, value_name = "FILE", requires = "ramdisk_tls_cert")]
    ramdisk_tls_key: Option<PathBuf>,
    /// Authentication of operators; noauth is allowed on loopback addresses only, and not with the hardware type
    /// qemu.
    #[arg(long, value_enum, default_value = "http_basic")]
    auth_strategy: AuthStrategy,
    #[command(flatten)]
    auth_file: AuthFile,
    /// URL of Keystone. Example: `https://keystone.example:5000`.
    #[arg(long, value_name = "URL", required_if_eq("auth_strategy", "keystone"))]
    keystone_url: Option<Url>,
    /// CA certificates that verify Keystone, in PEM format [default: the CAs of this host].
    #[arg(long, value_name = "FILE", requires = "keystone_url")]
    keystone_ca: Option<PathBuf>,
    /// Projects in Keystone's default domain in which the roles baremetal_admin and baremetal_observer count.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = "baremetal")]
    keystone_projects: Vec<String>,
}

fn public_url(text: &str) -> anyhow::Result<Uri> {
    let url: Uri = text.trim_end_matches('/').parse()?;
    if !matches!(url.scheme_str(), Some("http" | "https")) || url.host().is_none() {
        bail!("must be a URL with a host, such as https://conductor.example:6386");
    }
    Ok(url)
}

impl ListenerOptions {
    /// URL of the ramdisk API, if `--listen` is an address that machines can reach.
    pub(crate) fn reachable_url(&self) -> Option<String> {
        let (ip, port) = (self.listen.ip(), self.listen.port());
        let scheme = if self.ramdisk_tls_cert.is_some() { "https" } else { "http" };
        let is_reachable = !ip.is_unspecified() && !ip.is_loopback() && port != 0;
        is_reachable.then(|| format!("{scheme}://{}", self.listen))
    }

    /// Opens both listeners, so that nothing else begins when one of them cannot be had. Guests of this host reach its
    /// loopback addresses.
    pub(crate) async fn open(&self, state: &StateDir, has_guests: bool) -> anyhow::Result<Listeners> {
        self.check(has_guests).code(INVALID_OPTION)?;
        let mut looks = Vec::new();
        let mut shown = |files| -> anyhow::Result<(Tls, Fingerprint)> {
            let (tls, fingerprint, look) = renewal::certificate(files).code(CERTIFICATE_UNUSABLE)?;
            looks.push(look);
            Ok((tls, fingerprint))
        };
        let ramdisk_files = files(&self.ramdisk_tls_cert, &self.ramdisk_tls_key);
        let ramdisk_tls = ramdisk_files.map(&mut shown).transpose()?;
        let admin_tls = match self.admin_plain_http {
            true => None,
            false => Some(shown(match files(&self.tls_cert, &self.tls_key) {
                Some(files) => files,
                None => Files::own(&state.tls(), self.admin_listen.ip()).code(CERTIFICATE_UNUSABLE)?,
            })?),
        };
        let authorization = self.authorization(state, &mut looks)?;
        let ramdisk = Listener::open(self.listen, "--listen", ramdisk_tls, Limits::RAMDISK).await?;
        let admin = Listener::open(self.admin_listen, "--admin-listen", admin_tls, Limits::OPERATORS).await?;
        let names = match self.admin_listen.ip().to_canonical().is_loopback() {
            true => Names::of_host(crate::serve::host_name().ok(), self.admin_url.as_ref()),
            false => Names::any(),
        };
        let admin_url = self.admin_url.as_ref().map(|url| url.to_string().trim_end_matches('/').to_owned());
        Ok(Listeners { ramdisk, admin, admin_url, names, authorization, looks })
    }

    fn authorization(
        &self,
        state: &StateDir,
        looks: &mut Vec<Look>,
    ) -> anyhow::Result<Arc<dyn Authorization>> {
        if self.auth_strategy == AuthStrategy::NoAuth {
            return Ok(Arc::new(Anybody));
        }
        let credential = Credential::of_token(state.make_token()?.as_bytes());
        let local = Entry { name: LOCAL.to_owned(), credential, role: Role::Admin };
        let (users, look) = renewal::operators(self.auth_file.path(state), local).code(OPERATORS_FILE)?;
        looks.push(look);
        let operators = Operators::new(users);
        match (&self.keystone_url, self.auth_strategy) {
            (Some(url), AuthStrategy::Keystone) => {
                let projects = self.keystone_projects.clone();
                let keystone = Keystone::new(operators, url, self.keystone_ca.as_deref(), projects);
                Ok(Arc::new(keystone.code(INVALID_OPTION)?))
            }
            _ => Ok(Arc::new(operators)),
        }
    }

    /// Refuses what would let others than this host listen in, or operate.
    fn check(&self, has_guests: bool) -> anyhow::Result<()> {
        if self.auth_strategy == AuthStrategy::NoAuth && has_guests {
            bail!(
                "--auth-strategy noauth would let machines of the hardware type qemu operate the conductor, because they reach the loopback addresses of this host: remove one of the two"
            );
        }
        if self.admin_listen.ip().to_canonical().is_loopback() {
            return Ok(());
        }
        let address = self.admin_listen;
        if self.admin_plain_http {
            bail!(
                "--admin-plain-http would send passwords over the network in clear text: remove it, or set --admin-listen to a loopback address instead of {address}"
            );
        }
        if self.auth_strategy == AuthStrategy::NoAuth {
            bail!(
                "--auth-strategy noauth would let every host on the network operate the conductor: remove it, or set --admin-listen to a loopback address instead of {address}"
            );
        }
        Ok(())
    }
}

fn files(certificate: &Option<PathBuf>, key: &Option<PathBuf>) -> Option<Files> {
    let (certificate, key) = certificate.clone().zip(key.clone())?;
    Some(Files { certificate, key })
}

/// Both listeners, open.
pub(crate) struct Listeners {
    ramdisk: Listener,
    admin: Listener,
    admin_url: Option<String>,
    names: Names,
    authorization: Arc<dyn Authorization>,
    /// Checks that run periodically.
    pub(super) looks: Vec<Look>,
}

impl Listeners {
    /// URL of the ramdisk API as this host reaches it.
    pub(crate) fn ramdisk_url(&self) -> String {
        format!("{}://{}", self.ramdisk.scheme(), reachable(self.ramdisk.address))
    }

    /// Whether browsers reach the page by HTTPS: its listener speaks it, or a proxy before it.
    fn is_https(&self) -> bool {
        self.admin.tls.is_some() || self.admin_url.as_ref().is_some_and(|url| url.starts_with("https:"))
    }

    /// Prints their addresses.
    pub(crate) fn announce(&self) {
        println!("ramdisk API listening on {}://{}", self.ramdisk.scheme(), self.ramdisk.address);
        println!("node API listening on {}://{}", self.admin.scheme(), self.admin.address);
        println!("page at {}://{}{}/", self.admin.scheme(), self.admin.address, farrier_page::ROOT);
        for (api, listener) in [("ramdisk", &self.ramdisk), ("node", &self.admin)] {
            if let Some((_, fingerprint)) = &listener.tls {
                println!("{api} API uses the certificate {fingerprint}");
            }
        }
        if self.ramdisk.tls.is_none() && !self.ramdisk.address.ip().to_canonical().is_loopback() {
            tracing::warn!(
                "the ramdisk API uses no TLS: agent tokens are in clear text, and an attacker who reads one controls that machine; isolate that network, or set --ramdisk-tls-cert and --ramdisk-tls-key"
            );
        }
    }

    /// Serves both, operators behind the authorization, until `stopped` has no sender any more. The page has sessions,
    /// and signs operators in by the same authorization. Machines reach the conductor at this URL.
    pub(crate) async fn serve(
        self,
        machines: Router,
        operators: Router,
        conductor: Conductor,
        stopped: watch::Receiver<()>,
    ) {
        let machines = with_url(machines, Some(&conductor.settings().api_url));
        let site = Site { is_https: self.is_https() };
        let page = page_router(conductor, Arc::clone(&self.authorization), site);
        let operators = authorized(operators, self.authorization).merge(page);
        let operators = same_site(with_url(operators, self.admin_url.as_deref()), self.names);
        tokio::join!(self.ramdisk.serve(machines, stopped.clone()), self.admin.serve(operators, stopped));
    }
}

struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<(Tls, Fingerprint)>,
    limits: Limits,
}

impl Listener {
    async fn open(
        address: SocketAddr,
        option: &str,
        tls: Option<(Tls, Fingerprint)>,
        limits: Limits,
    ) -> anyhow::Result<Self> {
        let socket = TcpListener::bind(address)
            .await
            .with_context(|| format!("{option} {address} cannot be used; choose another address or port 0"));
        let socket = socket.code(LISTEN_FAILED)?;
        let address = socket.local_addr()?;
        Ok(Self { socket, address, tls, limits })
    }

    fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    async fn serve(self, router: Router, mut stopped: watch::Receiver<()>) {
        let router = router.layer(Extension(Scheme(self.scheme())));
        let stop = async move { stopped.changed().await.unwrap_or_default() };
        serve(self.socket, self.tls.map(|(tls, _)| tls), router, self.limits, stop).await;
    }
}

/// A router whose links are made of a URL, where that is known.
fn with_url(router: Router, url: Option<&str>) -> Router {
    match url {
        Some(url) => router.layer(Extension(PublicUrl(url.into()))),
        None => router,
    }
}

/// The address under which this host reaches its own listener.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: ListenerOptions,
    }

    #[test]
    fn an_unspecified_address_is_reached_by_loopback() {
        for (listen, reached) in
            [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:1", "[::1]:1"), ("192.0.2.1:1", "192.0.2.1:1")]
        {
            assert_eq!(reachable(listen.parse().unwrap()), reached.parse().unwrap());
        }
    }

    #[test]
    fn what_has_no_tls_or_no_operators_is_for_this_host_alone() {
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            for option in ["--admin-plain-http", "--auth-strategy=noauth"] {
                let line = Line::try_parse_from(["", "--admin-listen", address, option]).unwrap();
                line.options.check(false).unwrap();
            }
        }
        for address in ["0.0.0.0:1", "[::]:1", "192.0.2.1:1", "[fe80::1]:1"] {
            let said = |option: &str| {
                let line = Line::try_parse_from(["", "--admin-listen", address, option]).unwrap();
                line.options.check(false).err().map(|error| error.to_string()).unwrap_or_default()
            };
            assert!(said("--admin-plain-http").contains("passwords over the network in clear"), "{address}");
            assert!(
                said("--auth-strategy=noauth").contains("let every host on the network operate"),
                "{address}"
            );
            assert_eq!(said("--auth-strategy=http_basic"), "", "{address}");
        }
    }

    #[test]
    fn n16_guests_of_this_host_are_not_let_in_as_anybody() {
        for (option, is_refused) in [("--auth-strategy=noauth", true), ("--auth-strategy=http_basic", false)]
        {
            let line = Line::try_parse_from(["", option]).unwrap();
            assert_eq!(line.options.check(true).is_err(), is_refused, "{option}");
        }
    }

    #[test]
    fn options_that_belong_together_are_wanted_together() {
        for line in [
            &["--tls-cert", "c"][..],
            &["--tls-key", "k"],
            &["--ramdisk-tls-cert", "c"],
            &["--tls-cert", "c", "--tls-key", "k", "--admin-plain-http"],
            &["--auth-strategy", "keystone"],
            &["--auth-strategy", "keystone", "--keystone-url", "nowhere"],
            &["--admin-url", "conductor.example"],
        ] {
            let line = [&[""], line].concat();
            assert!(Line::try_parse_from(&line).is_err(), "{line:?}");
        }
    }
}
