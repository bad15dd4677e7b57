//! Options of `farrier serve` about machines that boot from the network, and what serves them.

use crate::provisioning::dhcp::Dhcp;
use crate::provisioning::files::{Files, Roots};
use crate::provisioning::http;
use crate::provisioning::leases::Leases;
use crate::provisioning::media::{self, Readers};
use crate::provisioning::tftp::Tftp;
use crate::provisioning::written;
use crate::serve::options::dhcp::DhcpOptions;
use crate::serve::options::images::ImageOptions;
use crate::serve::options::neutron::Networks;
use anyhow::{Context, anyhow};
use axum::Router;
use clap::{ArgAction, Args};
use farrier_conductor::{Drivers, Settings};
use farrier_drivers::dhcp::dnsmasq::Places;
use farrier_drivers::netboot::boot_roots::BootRoots;
use farrier_drivers::netboot::images::AllowedFolders;
use farrier_drivers::netboot::interface::Netboot as Interfaces;
use farrier_drivers::netboot::loaders::Loaders;
use farrier_drivers::netboot::scripts::render::Renderer;
use farrier_drivers::netboot::scripts::root_script::{self, Scripts};
use farrier_drivers::netboot::scripts::templates::Templates;
use farrier_drivers::netboot::target::Defaults;
use farrier_drivers::netboot::with_netboot;
use farrier_drivers::virtual_media::{MediaLoaders, PublishedMedia, VirtualMediaBoot, with_virtual_media};
use farrier_engine::Conductor;
use farrier_media::KernelParameters;
use prometheus_client::registry::Registry;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Options of network boot and virtual media.
#[derive(Debug, Args)]
#[command(next_help_heading = "Netboot")]
pub(crate) struct NetbootOptions {
    /// Folder with your own boot templates: ipxe_config.template, pxe_config.template, pxe_grub_config.template,
    /// boot.ipxe.template, grub.cfg.template.
    #[arg(long, value_name = "FOLDER")]
    boot_templates: Option<PathBuf>,
    /// Kernel parameters of the ramdisk for nodes without kernel_append_params; %default% in those of a node
    /// inserts these.
    #[arg(long, value_name = "PARAMETERS", default_value = "nofb vga=normal")]
    kernel_append_params: KernelParameters,
    /// Kernel parameters of the ramdisk by ARCH-MODE or ARCH; they replace --kernel-append-params. Example:
    /// aarch64:console=ttyAMA0,115200.
    #[arg(long, value_name = "KEY:PARAMETERS", value_parser = parameters)]
    kernel_append_params_by_arch: Vec<(String, KernelParameters)>,
    /// Folders whose files nodes may refer to: kernels, ramdisks and ISOs, files of qemu machines, and certificates
    /// of BMCs.
    #[arg(long, value_name = "FOLDERS", value_delimiter = ',')]
    file_url_allowed_paths: Vec<PathBuf>,
    /// Boot loaders to serve instead of those of the distribution, or beside them.
    #[arg(long, value_name = "NAME:FILE", value_delimiter = ',', value_parser = loader)]
    loader_file_paths: Vec<(String, PathBuf)>,
    /// Chainload the local disk when a deployed machine network-boots anyway.
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    enable_netboot_fallback: bool,
    /// Timeout for iPXE to load the kernel or the ramdisk, in seconds, after which it retries (0: none).
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    ipxe_timeout: u64,
    /// Let boot.ipxe use the boot configuration API. With `false`, it loads files below pxelinux.cfg.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    ipxe_use_boot_config_api: bool,
    /// Base URL of the boot configuration API [default: the URL of boot.ipxe].
    #[arg(long, value_name = "URL")]
    ipxe_config_api_root_url: Option<String>,
    /// iPXE script for machines without a boot configuration: a URL, or a name in --loader-file-paths [default:
    /// continue with the next boot device].
    #[arg(long, value_name = "SCRIPT", value_parser = script)]
    ipxe_fallback_script: Option<String>,
    /// Restrict the boot configuration API to machines that are expected to network-boot.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    restrict_boot_config: bool,
    /// Base URL at which iPXE loads the files of this conductor [default: the URL of the iPXE script].
    #[arg(long, value_name = "URL")]
    http_url: Option<String>,
    /// Base URL at which BMCs load virtual media [default: the URL of the ramdisk API]. external_http_url in
    /// driver_info of a node overrides it.
    #[arg(long, value_name = "URL", visible_alias = "external-http-url")]
    virtual_media_url: Option<String>,
    /// URL of the ramdisk API for agents that were booted from virtual media [default: the URL of the ramdisk API].
    #[arg(long, value_name = "URL")]
    external_callback_url: Option<String>,
    /// Clients that may load a virtual medium by its secret name: `anybody`, or `bmc` (only the address of its BMC;
    /// fails for BMCs behind NAT or a proxy).
    #[arg(long, value_enum, value_name = "WHO", default_value_t = Readers::Anybody, hide_possible_values = true)]
    virtual_media_readers: Readers,
    /// Limit of concurrent boot file transfers; one address gets an eighth. Further requests are queued.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    boot_transfers: u16,
    /// Address at which boot files are served over TFTP. Example: 0.0.0.0:69.
    #[arg(long, value_name = "ADDRESS")]
    tftp_listen: Option<SocketAddr>,
    /// Root folder of another TFTP server: files of the boot interface pxe are written there too.
    #[arg(long, value_name = "FOLDER")]
    tftp_root: Option<PathBuf>,
    /// Root folder of another HTTP server: files of the other boot interfaces are written there too.
    #[arg(long, value_name = "FOLDER")]
    http_root: Option<PathBuf>,
    #[command(flatten)]
    images: ImageOptions,
    #[command(flatten)]
    dhcp: DhcpOptions,
}

/// What serves machines that boot from the network.
pub(crate) struct Netboot {
    interfaces: Arc<Interfaces>,
    roots: Roots,
    restrict_boot_config: bool,
    transfers: usize,
    tftp: Option<Tftp>,
    dhcp: Option<(Dhcp, Places)>,
    virtual_media_url: Option<String>,
    external_callback_url: Option<String>,
    virtual_media_readers: Readers,
}

/// What serves boot files.
pub(crate) struct Service {
    files: Arc<Files>,
    tftp: Option<Tftp>,
    dhcp: Option<Dhcp>,
    written: (Conductor, BootRoots),
}

impl NetbootOptions {
    /// Whether DHCP options are set on Neutron ports.
    pub(crate) fn needs_neutron(&self) -> bool {
        self.dhcp.is_by_neutron()
    }

    /// Reads the templates, renders what is the same for all machines, and opens the port of TFTP. The URLs are the
    /// configured one of the ramdisk API, and that of its listener, if machines can reach it.
    pub(crate) async fn open(
        self,
        (api_url, reachable_url): (Option<&str>, Option<&str>),
        networks: Option<&Networks>,
        state_dir: &Path,
    ) -> anyhow::Result<Netboot> {
        let templates = Templates::load(self.boot_templates.as_deref())?;
        let scripts = match self.ipxe_use_boot_config_api {
            true => Scripts::Api(self.ipxe_config_api_root_url.as_deref()),
            false => Scripts::Files,
        };
        let fallback = self.ipxe_fallback_script.as_deref();
        let loaders = Loaders::new(self.loader_file_paths.into_iter().collect());
        let timeout = Some(Duration::from_secs(self.ipxe_timeout)).filter(|timeout| !timeout.is_zero());
        let renderer = Renderer { templates, timeout, http_url: self.http_url.clone() };
        let roots_with = |ipxe| {
            anyhow::Ok(Roots {
                ipxe,
                grub: root_script::grub(&renderer.templates)?,
                pxelinux: renderer.pxelinux_default()?,
                loaders: loaders.clone(),
            })
        };
        let roots = roots_with(root_script::ipxe(&renderer.templates, scripts, fallback)?)?;
        let boot_roots = BootRoots::open(self.tftp_root.as_deref(), self.http_root.as_deref())?;
        let elsewhere = match (scripts, api_url) {
            // Beside a script that another server sends, there is no boot configuration API.
            (Scripts::Api(None), Some(url)) => Scripts::Api(Some(url)),
            (Scripts::Api(None), None) => Scripts::Files,
            (scripts, _) => scripts,
        };
        let ipxe = root_script::ipxe(&renderer.templates, elsewhere, fallback)?;
        written::share(&boot_roots, &roots_with(ipxe)?)?;
        let allowed = AllowedFolders::new(self.file_url_allowed_paths).map_err(|folder| {
            anyhow!("--file-url-allowed-paths {}: this directory is never allowed (it may hold secrets); choose another", folder.display())
        })?;
        let defaults = Defaults {
            allowed,
            images: self.images.configured(),
            kernel_append_params: self.kernel_append_params,
            kernel_append_params_by_arch: self.kernel_append_params_by_arch.into_iter().collect(),
            netboot_fallback: self.enable_netboot_fallback,
        };
        let http_url = self.http_url.as_deref().or(api_url).or(reachable_url);
        let dhcp = self.dhcp.plan(http_url, networks, state_dir)?;
        let tftp = match self.tftp_listen {
            Some(address) => Some(Tftp::open(address).await?),
            None => None,
        };
        let (boot_dhcp, dhcp) = match dhcp {
            Some(plan) => plan.start().await.map(|(boot_dhcp, running)| (Some(boot_dhcp), running))?,
            None => (None, None),
        };
        Ok(Netboot {
            interfaces: Arc::new(Interfaces {
                defaults,
                renderer,
                loaders,
                dhcp: boot_dhcp,
                roots: boot_roots,
            }),
            dhcp,
            roots,
            restrict_boot_config: self.restrict_boot_config,
            transfers: self.boot_transfers.into(),
            tftp,
            virtual_media_url: self.virtual_media_url,
            external_callback_url: self.external_callback_url,
            virtual_media_readers: self.virtual_media_readers,
        })
    }
}

impl Netboot {
    /// Writes down what the conductor itself has to know.
    pub(crate) fn apply(&self, settings: &mut Settings) {
        settings.restrict_boot_config = self.restrict_boot_config;
        settings.netboot_fallback = self.interfaces.defaults.netboot_fallback;
    }

    /// The folders that records may name files in.
    pub(crate) fn allowed(&self) -> &AllowedFolders {
        &self.interfaces.defaults.allowed
    }

    /// What keeps virtual media, in the state directory of a conductor with this URL.
    pub(crate) fn published_media(&self, state_dir: &Path, api_url: &str) -> anyhow::Result<PublishedMedia> {
        let url = self.virtual_media_url.as_deref().unwrap_or(api_url).trim_end_matches('/');
        let loaders = MediaLoaders::new(self.interfaces.loaders.clone());
        Ok(PublishedMedia::open(state_dir.join("media"), &format!("{url}/media"), loaders)?)
    }

    /// What answers for what is on it, and has a conductor note what is read.
    pub(crate) fn media(&self, published_media: PublishedMedia, conductor: &Conductor) -> Router {
        let conductor = conductor.clone();
        let heard = move |node, bytes, total| conductor.ramdisks().medium_read(node, bytes, total);
        media::router(published_media, self.virtual_media_readers, Arc::new(heard))
    }

    /// Adds the boot interfaces to a conductor.
    pub(crate) fn compose(&self, drivers: Drivers, published_media: &PublishedMedia) -> Drivers {
        let virtual_media = VirtualMediaBoot::new(published_media.clone(), self.interfaces.defaults.clone());
        let virtual_media = virtual_media.called_back_at(self.external_callback_url.clone());
        with_virtual_media(with_netboot(drivers, &self.interfaces), virtual_media)
    }

    /// The service for the boot files of a conductor's nodes. The registry has its metrics.
    pub(crate) fn service(self, conductor: &Conductor, registry: &mut Registry) -> Service {
        let (dhcp, places) = self.dhcp.unzip();
        let written = (conductor.clone(), self.interfaces.roots.clone());
        let leases = places.as_ref().map(Leases::new);
        let files = Arc::new(Files::new(conductor.clone(), self.roots, self.transfers, leases));
        files.figures().register(registry);
        Service { files, tftp: self.tftp, dhcp, written }
    }
}

impl Service {
    /// What answers for boot files by HTTP.
    pub(crate) fn router(&self) -> Router {
        http::router(Arc::clone(&self.files))
    }

    /// Prints the other addresses.
    pub(crate) fn announce(&self) {
        if let Some(tftp) = &self.tftp {
            println!("TFTP listening on {}", tftp.address());
        }
        if let Some(dhcp) = &self.dhcp {
            println!("DHCP by dnsmasq on {}", dhcp.interface());
        }
    }

    /// Serves by everything but HTTP, until it is dropped.
    pub(crate) async fn serve(self) {
        let tftp = async {
            match self.tftp {
                Some(tftp) => tftp.serve(Arc::clone(&self.files)).await,
                None => std::future::pending().await,
            }
        };
        let dhcp = async {
            match self.dhcp {
                Some(dhcp) => {
                    let files = Arc::clone(&self.files);
                    dhcp.serve(|lease| files.leased(lease)).await;
                }
                None => std::future::pending().await,
            }
        };
        let (conductor, boot_roots) = self.written;
        tokio::join!(tftp, dhcp, written::keep(conductor, boot_roots));
    }
}

fn parameters(text: &str) -> anyhow::Result<(String, KernelParameters)> {
    let (key, words) =
        text.split_once(':').context("must be KEY:PARAMETERS, such as aarch64:console=ttyAMA0,115200")?;
    Ok((key.to_owned(), words.parse()?))
}

/// A script of iPXE, which is part of another one: without blanks, and nothing that iPXE reads as more than a name.
fn script(text: &str) -> anyhow::Result<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~:/?[]@!()*+,=%".contains(letter);
    let is_plain = !text.is_empty() && text.chars().all(is_plain);
    is_plain.then(|| text.to_owned()).context("must be a URL or the name of a file, such as inspector.ipxe")
}

fn loader(text: &str) -> anyhow::Result<(String, PathBuf)> {
    let (name, file) =
        text.split_once(':').context("must be NAME:FILE, such as bootx64.efi:/srv/shim.efi")?;
    Ok((name.to_owned(), file.into()))
}

#[cfg(test)]
mod tests {
    use super::script;

    #[test]
    fn a_fallback_script_is_a_url_or_a_name_and_no_command() {
        for given in ["inspector.ipxe", "http://192.0.2.1:8080/a/b.ipxe?x=1", "http://[2001:db8::1]/a.ipxe"] {
            assert_eq!(script(given).unwrap(), given);
        }
        for given in ["", "a b", "a\nshell", "${net0/mac}", "a||shell", "a;shell", "'a'", "a\\b", "a&b"] {
            let error = script(given).unwrap_err().to_string();
            assert!(error.contains("a URL or the name of a file"), "{given:?} {error}");
        }
    }
}
