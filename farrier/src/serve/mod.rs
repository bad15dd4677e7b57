//! `farrier serve`.

pub(crate) mod listen;
pub(crate) mod options;

use crate::configuration::changes;
use crate::configuration::files::ConfigurationFiles;
use crate::failure::{INVALID_OPTION, WithCode};
use crate::serve::listen::{ListenerOptions, renewal};
use crate::serve::options::agents::Agents;
use crate::serve::options::cleaning::Cleaning;
use crate::serve::options::deadlines::{Deadlines, PowerSync};
use crate::serve::options::hardware::Hardware;
use crate::serve::options::inspection::Inspection;
use crate::serve::options::limits::Limits;
use crate::serve::options::netboot::NetbootOptions;
use crate::serve::options::neutron::NeutronOptions;
use crate::state::StateDir;
use crate::state::database::DatabaseOption;
use anyhow::Context;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use farrier_conductor::agent::UserAgent;
use farrier_conductor::model::clock::SystemClock;
use farrier_conductor::{Drivers, Settings};
use farrier_engine::store::Store;
use farrier_engine::{AgentLiveness, Conductor};
use farrier_node_api::metrics::metrics_router;
use farrier_node_api::nodes::nodes_router;
use farrier_node_api::ramdisk::{boot_router, ramdisk_router};
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// What requests of a conductor name as their program.
const PRODUCT: &str = concat!("farrier/", env!("CARGO_PKG_VERSION"));

/// The kernel's file with the name of this host.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Options of `farrier serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    configuration: ConfigurationFiles,
    #[command(flatten)]
    listeners: ListenerOptions,
    #[command(flatten)]
    state_dir: StateDir,
    /// URL of the ramdisk API as machines reach it [default: the address of --listen].
    #[arg(long, value_name = "URL")]
    api_url: Option<String>,
    /// Serve the ramdisk API. If false, lookups and heartbeats get 403.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    enable_ramdisk_endpoints: bool,
    #[command(flatten)]
    database: DatabaseOption,
    /// Heartbeat timeout, in seconds: agents send a heartbeat several times within it.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    heartbeat_timeout: u64,
    /// Allow agents to run programs of the deployed image, as root, to install a boot loader: GRUB for BIOS, or one
    /// for an image without a signed loader.
    #[arg(long)]
    enable_bios_bootloader_install: bool,
    /// Name of this conductor [default: the host name]. It must be unique among conductors that share a database: a
    /// conductor resumes the operations under its name.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    conductor_name: Option<String>,
    /// Conductor group of this conductor [default: none]. It leads the nodes whose conductor_group is equal; without the
    /// option, those without a group.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    conductor_group: Option<String>,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    netboot: NetbootOptions,
    #[command(flatten)]
    neutron: NeutronOptions,
    #[command(flatten)]
    cleaning: Cleaning,
    #[command(flatten)]
    inspection: Inspection,
    #[command(flatten)]
    agents: Agents,
    #[command(flatten)]
    deadlines: Deadlines,
    #[command(flatten)]
    power_sync: PowerSync,
    #[command(flatten)]
    limits: Limits,
}

impl Serve {
    /// Runs the conductor. The command line is that with which the program parsed the options.
    pub(crate) async fn run(self, command_line: &clap::Command) -> anyhow::Result<()> {
        // Before anything that may take long: until then, a reload ends the process.
        let hangup = signal(SignalKind::hangup())?;
        let state_dir = self.state_dir.make()?;
        let networks = self.neutron.open(self.netboot.needs_neutron()).code(INVALID_OPTION)?;
        let reachable_url = self.listeners.reachable_url();
        let urls = (self.api_url.as_deref(), reachable_url.as_deref());
        let netboot = self.netboot.open(urls, networks.as_ref(), &state_dir).await.code(INVALID_OPTION)?;
        let mut listeners = self.listeners.open(&self.state_dir, self.hardware.has_guests()).await?;

        let mut settings = Settings {
            heartbeat_timeout: Duration::from_secs(self.heartbeat_timeout),
            conductor_name: self.conductor_name.map_or_else(host_name, Ok)?,
            conductor_group: self.conductor_group.unwrap_or_default(),
            enable_bios_bootloader_install: self.enable_bios_bootloader_install,
            enable_ramdisk_endpoints: self.enable_ramdisk_endpoints,
            ..Settings::new(self.api_url.unwrap_or_else(|| listeners.ramdisk_url()))
        };
        self.cleaning.apply(&mut settings);
        self.inspection.apply(&mut settings);
        self.agents.apply(&mut settings, &state_dir);
        settings.agent.user_agent = UserAgent::new(PRODUCT, &settings.conductor_name);
        self.deadlines.apply(&mut settings);
        self.power_sync.apply(&mut settings);
        self.limits.apply(&mut settings);
        netboot.apply(&mut settings);
        let store: Arc<dyn Store> = self.database.database(&state_dir).open().await?;
        let published_media = netboot.published_media(&state_dir, &settings.api_url)?;
        let agents = Arc::new(AgentLiveness::new(store.clone(), Arc::new(SystemClock), &settings));
        let drivers = netboot.compose(Drivers::default(), &published_media);
        let drivers = match networks {
            Some(networks) => networks.compose(drivers),
            None => drivers,
        };
        let user_agent = settings.agent.user_agent.clone();
        let drivers = self.hardware.compose(drivers, &agents, &state_dir, netboot.allowed(), user_agent);
        let conductor = Conductor::builder(settings, store, drivers).start().await?;

        let mut registry = Registry::with_prefix("farrier");
        let media = netboot.media(published_media, &conductor);
        let netboot = netboot.service(&conductor, &mut registry);
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        // The node API comes last: who waits for it finds all that is before it.
        netboot.announce();
        listeners.announce();
        listeners.looks.push(Box::new(changes(command_line, self.configuration)));
        let renewal = renewal::renew(std::mem::take(&mut listeners.looks), hangup);
        let machines = ramdisk_router(conductor.clone()).merge(boot_router(conductor.clone()));
        let machines = machines.merge(netboot.router()).merge(media);
        let operators = nodes_router(conductor.clone()).merge(metrics_router(conductor.clone(), registry));
        let (serving, stopped) = watch::channel(());
        let served = tokio::spawn(listeners.serve(machines, operators, conductor.clone(), stopped));
        let work = async {
            tokio::select! {
                ended = conductor.run() => Ok(ended?),
                () = netboot.serve() => Ok(()),
            }
        };
        let mut work = std::pin::pin!(work);
        let (ended, runs): (anyhow::Result<()>, bool) = tokio::select! {
            ended = renewal => (ended, true),
            ended = &mut work => (ended, false),
            _ = interrupt.recv() => (Ok(()), true),
            _ = terminate.recv() => (Ok(()), true),
        };
        // Orders are refused first. Machines and agents are served until nothing is under way; a second signal ends that.
        tokio::select! {
            () = conductor.drain() => {}
            _ = &mut work, if runs => {}
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        drop(serving);
        served.await?;
        conductor.shut_down().await;
        ended
    }
}

fn host_name() -> anyhow::Result<String> {
    let name = std::fs::read_to_string(HOST_NAME)
        .with_context(|| format!("{HOST_NAME} cannot be read; give --conductor-name"))?;
    Ok(name.trim().to_owned())
}
