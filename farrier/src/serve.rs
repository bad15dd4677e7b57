//! `farrier serve`.

use crate::agents::Agents;
use crate::cleaning::Cleaning;
use crate::times::{Deadlines, PowerSync};
use anyhow::Context;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use farrier_conductor::api::boot::boot_router;
use farrier_conductor::api::nodes::nodes_router;
use farrier_conductor::api::ramdisk::ramdisk_router;
use farrier_conductor::store::sqlite::SqliteStore;
use farrier_conductor::{Conductor, Settings};
use farrier_drivers::qemu::with_qemu;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// Where the kernel tells the name of this host.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Options of `farrier serve`.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where ramdisks call: lookup and heartbeat. Port 0 takes a free one.
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:6385")]
    listen: SocketAddr,
    /// Where operators call. It asks nobody who they are, so keep it on a loopback address.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6386")]
    admin_listen: SocketAddr,
    /// Folder for what the drivers keep: consoles, firmware variables, process ids.
    #[arg(long, value_name = "DIR", default_value = "farrier-state")]
    state_dir: PathBuf,
    /// SQLite file with the nodes [default: STATE_DIR/nodes.sqlite].
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,
    /// Base of the heartbeat interval that agents are told, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    heartbeat_timeout: u64,
    /// Let agents run programs of the deployed image, as root, where it needs a boot loader that only they can
    /// install: GRUB for BIOS, or an image without a signed loader.
    #[arg(long)]
    enable_bios_bootloader_install: bool,
    /// Name of this conductor [default: the host's name]. Conductors that share a database each need their own: one
    /// that starts goes on with what was left under its name.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    conductor_name: Option<String>,
    #[command(flatten)]
    cleaning: Cleaning,
    #[command(flatten)]
    agents: Agents,
    #[command(flatten)]
    deadlines: Deadlines,
    #[command(flatten)]
    power_sync: PowerSync,
}

impl Serve {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let state_dir = std::path::absolute(&self.state_dir)?;
        std::fs::create_dir_all(&state_dir)
            .with_context(|| format!("the state directory {} cannot be made", state_dir.display()))?;
        let database = self.database.unwrap_or_else(|| state_dir.join("nodes.sqlite"));
        let ramdisk = bind(self.listen, "--listen").await?;
        let admin = bind(self.admin_listen, "--admin-listen").await?;

        let mut settings = Settings {
            heartbeat_timeout: Duration::from_secs(self.heartbeat_timeout),
            conductor_name: self.conductor_name.map_or_else(host_name, Ok)?,
            enable_bios_bootloader_install: self.enable_bios_bootloader_install,
            ..Settings::new(format!("http://{}", reachable(ramdisk.local_addr()?)))
        };
        self.cleaning.apply(&mut settings);
        self.agents.apply(&mut settings, &state_dir);
        self.deadlines.apply(&mut settings);
        self.power_sync.apply(&mut settings);
        let store = Arc::new(SqliteStore::open(&database).await?);
        let conductor = with_qemu(Conductor::builder(settings, store), state_dir).start().await?;

        println!("ramdisk API listening on http://{}", ramdisk.local_addr()?);
        println!("node API listening on http://{}", admin.local_addr()?);
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let machines = ramdisk_router(conductor.clone()).merge(boot_router(conductor.clone()));
        let ended = tokio::select! {
            ended = axum::serve(ramdisk, machines) => ended,
            ended = axum::serve(admin, nodes_router(conductor.clone())) => ended,
            () = conductor.run() => Ok(()),
            _ = interrupt.recv() => Ok(()),
            _ = terminate.recv() => Ok(()),
        };
        conductor.shut_down().await;
        Ok(ended?)
    }
}

fn host_name() -> anyhow::Result<String> {
    let name = std::fs::read_to_string(HOST_NAME)
        .with_context(|| format!("{HOST_NAME} cannot be read; give --conductor-name"))?;
    Ok(name.trim().to_owned())
}

async fn bind(address: SocketAddr, option: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| {
        format!("{option} {address} cannot be listened on; choose another address or port 0")
    })
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

    #[test]
    fn an_unspecified_address_is_reached_by_loopback() {
        for (listen, reached) in
            [("0.0.0.0:1", "127.0.0.1:1"), ("[::]:1", "[::1]:1"), ("192.0.2.1:1", "192.0.2.1:1")]
        {
            assert_eq!(reachable(listen.parse().unwrap()), reached.parse().unwrap());
        }
    }
}
