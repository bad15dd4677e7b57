//! A whole conductor with a power driver of its own: it deploys an image to one machine.
//!
//! ```console
//! $ cargo run -p farrier-node-api --example power_strip -- 127.0.0.1:6385 52:54:00:00:00:01 dist/x86_64 disk.raw \
//!       http://10.0.2.2:8000/debian.raw sha256:…
//! ```
//!
//! The machine is a QEMU process on this host, instead of one behind a strip that a driver asks over the network.

use async_trait::async_trait;
use farrier_conductor::interfaces::{BootContext, BootInterface, Interface, InterfaceError, PowerInterface};
use farrier_conductor::model::{Node, PowerState, ProvisionState};
use farrier_conductor::{Drivers, HardwareType, Settings};
use farrier_engine::Conductor;
use farrier_engine::records::Order;
use farrier_engine::store::sqlite::SqliteStore;
use farrier_media::KernelParameters;
use farrier_node_api::ramdisk::ramdisk_router;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::Mutex;

type Outcome<T> = Result<T, InterfaceError>;

/// The strip, with what its one outlet switches.
#[derive(Clone)]
struct PowerStrip {
    dist: PathBuf,
    disk: PathBuf,
    /// Where this host reaches the agent: a port that was free when the strip was made.
    agent_port: u16,
    outlet: Arc<Mutex<Outlet>>,
}

#[derive(Default)]
struct Outlet {
    machine: Option<Child>,
    /// The kernel parameters of the ramdisk; none when the machine boots its disk.
    ramdisk: Option<String>,
}

#[async_trait]
impl Interface for PowerStrip {
    async fn validate(&self, _node: &Node) -> Outcome<()> {
        let missing = [self.dist.join("vmlinuz"), self.disk.clone()].into_iter().find(|file| !file.exists());
        let refusal = missing.map(|file| format!("{} is missing", file.display()));
        refusal.map_or(Ok(()), |refusal| Err(InterfaceError::driver_info("strip", refusal)))
    }
}

#[async_trait]
impl PowerInterface for PowerStrip {
    async fn power_state(&self, _node: &Node) -> Outcome<PowerState> {
        let mut outlet = self.outlet.lock().await;
        let is_on = outlet.machine.as_mut().is_some_and(|machine| matches!(machine.try_wait(), Ok(None)));
        Ok(if is_on { PowerState::On } else { PowerState::Off })
    }

    async fn power_on(&self, node: &Node) -> Outcome<()> {
        if self.power_state(node).await? == PowerState::On {
            return Ok(());
        }
        let mut outlet = self.outlet.lock().await;
        let mut qemu = Command::new("qemu-system-x86_64");
        qemu.args(["-nodefaults", "-display", "none", "-machine", "q35", "-cpu", "max", "-m", "512"]);
        qemu.args(["-netdev", &format!("user,id=net,hostfwd=tcp:127.0.0.1:{}-:9999", self.agent_port)]);
        qemu.args(["-device", &format!("virtio-net-pci,netdev=net,romfile=,mac={}", node.ports[0].address)]);
        qemu.args(["-device", "virtio-rng-pci", "-serial", &format!("file:{}.console", self.disk.display())]);
        qemu.args(["-drive", &format!("file={},format=raw,if=virtio", self.disk.display())]);
        if let Some(parameters) = &outlet.ramdisk {
            qemu.arg("-kernel").arg(self.dist.join("vmlinuz")).args(["-append", parameters]);
            qemu.arg("-initrd").arg(self.dist.join("initramfs.img"));
        }
        let machine = qemu.stdin(std::process::Stdio::null()).kill_on_drop(true).spawn();
        outlet.machine = Some(machine.map_err(InterfaceError::driver)?);
        Ok(())
    }

    async fn power_off(&self, _node: &Node) -> Outcome<()> {
        match self.outlet.lock().await.machine.take() {
            Some(mut machine) => machine.kill().await.map_err(InterfaceError::driver),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl BootInterface for PowerStrip {
    async fn prepare_ramdisk(&self, _: BootContext<'_>, line: &KernelParameters) -> Outcome<()> {
        let agent = format!("ipa-advertise-host=127.0.0.1 ipa-advertise-port={}", self.agent_port);
        self.outlet.lock().await.ramdisk = Some(format!("console=ttyS0 {line} {agent}"));
        Ok(())
    }

    async fn clean_up_ramdisk(&self, _: BootContext<'_>) -> Outcome<()> {
        self.outlet.lock().await.ramdisk = None;
        Ok(())
    }

    async fn prepare_instance(&self, boot: BootContext<'_>) -> Outcome<()> {
        boot.boot_from_disk(self).await
    }

    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Outcome<()> {
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [_, listen, address, dist, disk, image, checksum] = &std::env::args().collect::<Vec<_>>()[..] else {
        return Err("give ADDRESS:PORT, MAC address, ramdisk folder, disk, image URL and checksum".into());
    };
    // The library leaves the choice of a TLS implementation to the program.
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "TLS is set up already")?;
    let agent_port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let strip = PowerStrip { dist: dist.into(), disk: disk.into(), agent_port, outlet: Arc::default() };
    let store = Arc::new(SqliteStore::open(Path::new(&format!("{disk}.nodes"))).await?);
    let drivers = Drivers::default()
        .power("strip", strip.clone())
        .boot("strip", strip)
        .hardware_type(HardwareType::new("strip").power(["strip"]).boot(["strip"]).deploy(["direct"]));
    let listener = tokio::net::TcpListener::bind(listen).await?;
    // QEMU's network lets the machine reach this host by an address of its own.
    let settings = Settings::new(format!("http://10.0.2.2:{}", listener.local_addr()?.port()));
    let conductor = Conductor::builder(settings, store, drivers).start().await?;
    tokio::spawn(axum::serve(listener, ramdisk_router(conductor.clone())).into_future());
    let runner = conductor.clone();
    tokio::spawn(async move { runner.run().await });
    let node = json!({"name": "machine", "driver": "strip", "ports": [address],
        "properties": {"capabilities": "boot_mode:bios"}});
    conductor.create_node(serde_json::from_value(node)?).await?;
    let instance = json!({"image_source": image, "image_checksum": checksum, "image_disk_format": "raw"});
    conductor.order("machine", Order::deploy(serde_json::from_value(instance)?)).await?;
    loop {
        let node = conductor.node("machine").await?;
        match node.provision_state {
            ProvisionState::Active => break println!("the machine is active"),
            ProvisionState::DeployFailed => return Err(node.last_error.unwrap_or_default().into()),
            _ => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
    tokio::signal::ctrl_c().await?;
    conductor.shut_down().await;
    Ok(())
}
