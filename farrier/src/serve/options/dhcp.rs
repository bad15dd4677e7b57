//! Options of `farrier serve` about DHCP.

use crate::provisioning::dhcp::Dhcp as Running;
use crate::serve::options::neutron::Networks;
use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use farrier_drivers::dhcp::dnsmasq::{Dnsmasq, Places};
use farrier_drivers::dhcp::site::{Range, Site};
use farrier_drivers::netboot::boot_file_names::BootFileNames;
use farrier_drivers::netboot::dhcp_options::Servers;
use farrier_drivers::netboot::interface::Dhcp;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Notify;

/// Options of the DHCP provider.
#[derive(Debug, Args)]
#[command(next_help_heading = "DHCP")]
pub(crate) struct DhcpOptions {
    /// DHCP provider: none (your own DHCP server sets the boot options), dnsmasq (run by this conductor), neutron
    /// (options are set on Neutron ports).
    #[arg(long, value_enum, value_name = "PROVIDER", default_value_t = DhcpProvider::None, hide_possible_values = true,
        requires_if("dnsmasq", "dhcp_interface"), requires_if("dnsmasq", "dhcp_range"),
        requires_if("dnsmasq", "tftp_server"), requires_if("neutron", "tftp_server"))]
    dhcp_provider: DhcpProvider,
    /// Network interface on which dnsmasq answers.
    #[arg(long, value_name = "NAME")]
    dhcp_interface: Option<String>,
    /// Address range of dnsmasq, as FIRST,LAST. NETWORK,proxy adds boot options to the replies of another DHCP
    /// server.
    #[arg(long, value_name = "RANGE")]
    dhcp_range: Vec<Range>,
    /// Router in the DHCP replies [default: none].
    #[arg(long, value_name = "ADDRESS")]
    dhcp_router: Option<IpAddr>,
    /// Address of the TFTP server in the DHCP replies.
    #[arg(long, value_name = "ADDRESS")]
    tftp_server: Option<IpAddr>,
    /// Boot loader of the boot interfaces pxe and http, by ARCH-MODE or ARCH. Example: x86_64-bios:pxelinux.0.
    #[arg(long, value_name = "KEY:NAME", value_delimiter = ',', value_parser = keyed)]
    pxe_bootfile_name_by_arch: Vec<(String, String)>,
    /// Boot loader of the boot interfaces ipxe and http-ipxe, by ARCH-MODE or ARCH.
    #[arg(long, value_name = "KEY:NAME", value_delimiter = ',', value_parser = keyed)]
    ipxe_bootfile_name_by_arch: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DhcpProvider {
    None,
    Dnsmasq,
    Neutron,
}

/// The DHCP provider, and the plan of our dnsmasq if that is it.
pub(crate) struct DhcpPlan {
    dhcp: Dhcp,
    dnsmasq: Option<DnsmasqPlan>,
}

/// The configuration of our dnsmasq.
struct DnsmasqPlan {
    site: Site,
    folder: PathBuf,
    places: Places,
    changed: Arc<Notify>,
}

impl DhcpOptions {
    /// Whether the options are set on Neutron ports.
    pub(crate) fn is_by_neutron(&self) -> bool {
        self.dhcp_provider == DhcpProvider::Neutron
    }

    /// The DHCP provider; none if the site has its own. Machines reach the conductor at this URL.
    pub(crate) fn plan(
        self,
        http_url: Option<&str>,
        networks: Option<&Networks>,
        state_dir: &Path,
    ) -> anyhow::Result<Option<DhcpPlan>> {
        let (name, networks) = match (self.dhcp_provider, networks) {
            (DhcpProvider::None, _) => return Ok(None),
            (DhcpProvider::Dnsmasq, _) => ("dnsmasq", None),
            (DhcpProvider::Neutron, networks) => ("neutron", networks),
        };
        let tftp = self.tftp_server.with_context(|| format!("--dhcp-provider {name} needs --tftp-server"))?;
        let http_url = http_url.with_context(|| {
            format!("--dhcp-provider {name} needs --listen with an address that machines reach, or --api-url")
        })?;
        let http_url = http_url.trim_end_matches('/').to_owned();
        let names = BootFileNames {
            pxe: self.pxe_bootfile_name_by_arch.into_iter().collect(),
            ipxe: self.ipxe_bootfile_name_by_arch.into_iter().collect(),
        };
        let servers = Servers { tftp, http_url: http_url.clone(), names };
        if let Some(networks) = networks {
            let dhcp = Dhcp { provider: Arc::new(networks.dhcp()), servers };
            return Ok(Some(DhcpPlan { dhcp, dnsmasq: None }));
        }
        let interface = self.dhcp_interface.context("--dhcp-provider dnsmasq needs --dhcp-interface")?;
        if !interface.bytes().all(|byte| byte.is_ascii_graphic()) {
            bail!("--dhcp-interface {interface:?} is not the name of a network interface");
        }
        let folder = state_dir.join("dnsmasq");
        let (places, changed) = (Places::below(&folder), Arc::default());
        let provider = Arc::new(Dnsmasq::new(places.clone(), Arc::clone(&changed)));
        let (ranges, router) = (self.dhcp_range, self.dhcp_router);
        let site = Site { interface, ranges, router, tftp, http_url };
        let dnsmasq = Some(DnsmasqPlan { site, folder, places, changed });
        Ok(Some(DhcpPlan { dhcp: Dhcp { provider, servers }, dnsmasq }))
    }
}

impl DhcpPlan {
    /// Runs what is ours to run, and returns the provider for boot interfaces.
    pub(crate) async fn start(self) -> anyhow::Result<(Dhcp, Option<(Running, Places)>)> {
        let Some(plan) = self.dnsmasq else { return Ok((self.dhcp, None)) };
        let running = Running::start(&plan.site, &plan.folder, &plan.places, plan.changed).await?;
        Ok((self.dhcp, Some((running, plan.places))))
    }
}

fn keyed(text: &str) -> anyhow::Result<(String, String)> {
    let (key, name) = text.split_once(':').context("must be KEY:NAME, such as x86_64-bios:pxelinux.0")?;
    Ok((key.to_owned(), name.to_owned()))
}
