//! Options of `farrier serve` about machines that boot from the network, and the script that all of them load first.

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;
use clap::Args;
use farrier_conductor::Builder;
use farrier_drivers::netboot::ipxe::Ipxe;
use farrier_drivers::netboot::templates::Templates;
use farrier_drivers::netboot::{root_script, with_netboot};
use farrier_media::KernelParameters;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How machines boot from the network.
#[derive(Debug, Args)]
#[command(next_help_heading = "Netboot")]
pub(crate) struct NetbootOptions {
    /// Folder with templates of boot scripts that take the place of those that are built in: ipxe_config.template,
    /// boot.ipxe.template.
    #[arg(long, value_name = "FOLDER")]
    boot_templates: Option<PathBuf>,
    /// Kernel parameters of ramdisks that boot by iPXE, for nodes that have none of their own; %default% in those of a
    /// node stands for them.
    #[arg(long, value_name = "PARAMETERS", default_value = "nofb vga=normal")]
    kernel_append_params: KernelParameters,
    /// Longest time that a machine may take to load kernel or ramdisk by iPXE before it tries again, in seconds; 0 for
    /// any.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    ipxe_timeout: u64,
    /// URL below which machines find the boot configuration API [default: where they found boot.ipxe].
    #[arg(long, value_name = "URL")]
    ipxe_config_api_root_url: Option<String>,
}

/// What serves machines that boot from the network.
pub(crate) struct Netboot {
    templates: Arc<Templates>,
    root_script: String,
    kernel_append_params: KernelParameters,
    timeout: Duration,
}

impl NetbootOptions {
    /// Reads the templates, and renders what is the same for all machines.
    pub(crate) fn open(self) -> anyhow::Result<Netboot> {
        let templates = Arc::new(Templates::load(self.boot_templates.as_deref())?);
        let root_script = root_script::render(&templates, self.ipxe_config_api_root_url.as_deref())?;
        let timeout = Duration::from_secs(self.ipxe_timeout);
        Ok(Netboot { templates, root_script, kernel_append_params: self.kernel_append_params, timeout })
    }
}

impl Netboot {
    /// Adds the boot interfaces to a conductor.
    pub(crate) fn compose(&self, builder: Builder) -> Builder {
        let ipxe = Ipxe::new(Arc::clone(&self.templates)).timeout(self.timeout);
        with_netboot(builder, ipxe.kernel_append_params(self.kernel_append_params.clone()))
    }

    /// The route of the script that DHCP sends all machines to.
    pub(crate) fn router(self) -> Router {
        let script = self.root_script;
        Router::new().route("/boot.ipxe", get(async move || ([(CONTENT_TYPE, "text/plain")], script.clone())))
    }
}
