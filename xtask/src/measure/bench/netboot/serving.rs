//! The servers of boot files under load: those of `farrier serve`, and what stands beside.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use farrier_tests::conductor::farrier::Farrier;
use farrier_tests::conductor::node_api::{Conductor, Control, Enrolment, Node, Order};
use farrier_tests::network::bridge::network;

use super::clients::{Figures, crowd, fetch_by_http};
use super::servers::Server;
use super::tftp;
use super::way::BY_HAND;
use crate::measure::bench::MAC;
use crate::measure::bench::conductors::peak_kib;

/// The loader that is sent by TFTP, the largest one.
const LOADER: &str = "ipxe.efi";
const LOADER_FILE: &str = "/usr/lib/ipxe/ipxe.efi";
const HTTP_PORT: u16 = 8080;
const TFTP_PORT: u16 = 69;
const WAIT: Duration = Duration::from_secs(60);

/// How all clients were served in one round.
#[derive(Debug, Clone, Copy)]
pub struct Round {
    /// What the clients saw.
    pub figures: Figures,
    /// The most memory that the server ever had, in KiB.
    pub peak_kib: u64,
}

/// The files that are sent.
#[derive(Debug)]
pub struct Sent {
    ramdisk: Vec<u8>,
    loader: Vec<u8>,
}

impl Sent {
    /// Those of a folder with a ramdisk.
    ///
    /// # Errors
    ///
    /// One cannot be read.
    pub fn read(dist: &Path) -> Result<Self> {
        let read = |file: &Path| fs::read(file).with_context(|| format!("cannot read {}", file.display()));
        Ok(Self { ramdisk: read(&dist.join("initramfs.img"))?, loader: read(Path::new(LOADER_FILE))? })
    }

    /// Size of the ramdisk, which is sent by HTTP.
    pub fn ramdisk_bytes(&self) -> u64 {
        self.ramdisk.len() as u64
    }

    /// Size of the loader, which is sent by TFTP.
    pub fn loader_bytes(&self) -> u64 {
        self.loader.len() as u64
    }

    fn by_http(&self, clients: u16, name: &str) -> Figures {
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, HTTP_PORT));
        crowd(clients, self.ramdisk_bytes(), |own| fetch_by_http(own, server, name, &self.ramdisk))
    }

    fn by_tftp(&self, clients: u16) -> Figures {
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, TFTP_PORT));
        crowd(clients, self.loader_bytes(), |own| tftp::fetch(own, server, LOADER, &self.loader))
    }
}

/// `farrier serve`: by HTTP the ramdisk of a node whose machine is to boot, and by TFTP a loader. Each is sent by a
/// conductor of its own, since the memory of both would be one.
///
/// # Errors
///
/// The conductor does not start.
pub fn farrier(
    program: &Path,
    dist: &Path,
    sent: &Sent,
    clients: u16,
    folder: &Path,
) -> Result<(Round, Round)> {
    network(1)?;
    let allowed = dist.display().to_string();
    let (listen, tftp) = ((Ipv4Addr::LOCALHOST, HTTP_PORT).into(), format!("127.0.0.1:{TFTP_PORT}"));
    let options = [&BY_HAND[..], &["--file-url-allowed-paths", &allowed, "--tftp-listen", &tftp]].concat();
    let start = |name: &str| Farrier::start_at(listen, program, &folder.join(name), &options);
    let round = |conductor: &Farrier, figures| -> Result<Round> {
        Ok(Round { figures, peak_kib: peak_kib(conductor.process_id())? })
    };
    let by_http = {
        let conductor = start("farrier-http")?;
        let node = waiting(&conductor, dist)?;
        round(&conductor, sent.by_http(clients, &format!("{}/deploy_ramdisk", node.uuid)))?
    };
    let conductor = start("farrier-tftp")?;
    let by_tftp = round(&conductor, sent.by_tftp(clients))?;
    Ok((by_http, by_tftp))
}

/// A node whose machine is to boot the ramdisk.
fn waiting<'a>(conductor: &'a Farrier, dist: &'a Path) -> Result<Node<'a>> {
    let control = Control::Network { boot: "ipxe", mode: "uefi" };
    let enrolment = Enrolment { mac: MAC, dist, parameters: "", fast_track: false, control };
    let node = Node::enrol(conductor as &dyn Conductor, &enrolment)?;
    node.order(&Order::clean(&["erase_devices_metadata"]))?;
    node.reach("clean wait", WAIT)?;
    Ok(node)
}

/// nginx and dnsmasq with the same files.
///
/// # Errors
///
/// One of them does not start.
pub fn beside(dist: &Path, sent: &Sent, clients: u16, folder: &Path) -> Result<(Round, Round)> {
    network(1)?;
    let root = folder.join("files");
    fs::create_dir_all(&root)?;
    symlink(dist.join("initramfs.img"), root.join("deploy_ramdisk"))?;
    symlink(LOADER_FILE, root.join(LOADER))?;
    let by_http = {
        let nginx = Server::http(folder, &root, (Ipv4Addr::LOCALHOST, HTTP_PORT).into())?;
        Round { figures: sent.by_http(clients, "deploy_ramdisk"), peak_kib: nginx.peak_kib()? }
    };
    let dnsmasq = Server::tftp(folder, &root, Ipv4Addr::LOCALHOST)?;
    Ok((by_http, Round { figures: sent.by_tftp(clients), peak_kib: dnsmasq.peak_kib()? }))
}
