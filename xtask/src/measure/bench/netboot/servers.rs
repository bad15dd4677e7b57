//! The servers that stand beside: dnsmasq for DHCP and TFTP, nginx for HTTP. Each ends with its value.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::host::command::command;
use crate::measure::bench::conductors::peak_kib;

const START: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);
/// Transfers at a time of dnsmasq, as many as Farrier has; it has 50 unless told otherwise.
const TRANSFERS: u16 = 512;

/// A running server.
#[derive(Debug)]
pub struct Server(Child);

impl Server {
    /// Leads machines on the bridge to iPXE by TFTP, and iPXE to `script`.
    ///
    /// # Errors
    ///
    /// dnsmasq does not run.
    pub fn dhcp(folder: &Path, tftp_root: &Path, script: &str) -> Result<Self> {
        let rules = [
            "--interface=br0".to_owned(),
            "--except-interface=lo".to_owned(),
            "--dhcp-range=192.0.2.100,192.0.2.200,3600".to_owned(),
            "--dhcp-option=3".to_owned(),
            "--dhcp-match=set:ipxe,175".to_owned(),
            "--dhcp-match=set:efi,option:client-arch,7".to_owned(),
            format!("--dhcp-boot=tag:ipxe,{script}"),
            "--dhcp-boot=tag:!ipxe,tag:efi,snponly.efi".to_owned(),
            "--dhcp-boot=tag:!ipxe,tag:!efi,undionly.kpxe".to_owned(),
            format!("--dhcp-leasefile={}", folder.join("leases").display()),
        ];
        dnsmasq(folder, tftp_root, &rules)
    }

    /// Sends the files of a folder by TFTP at an address, which has no other server at port 69.
    ///
    /// # Errors
    ///
    /// dnsmasq does not run.
    pub fn tftp(folder: &Path, root: &Path, address: Ipv4Addr) -> Result<Self> {
        let rules = [format!("--listen-address={address}"), format!("--tftp-max={TRANSFERS}")];
        dnsmasq(folder, root, &rules)
    }

    /// Sends the files of a folder by HTTP.
    ///
    /// # Errors
    ///
    /// nginx does not run.
    pub fn http(folder: &Path, root: &Path, address: SocketAddr) -> Result<Self> {
        let (configuration, log) = (folder.join("nginx.conf"), folder.join("nginx.log"));
        fs::write(&configuration, nginx(folder, root, address))?;
        let mut nginx = command("nginx");
        nginx.arg("-e").arg(&log).arg("-p").arg(folder).arg("-c").arg(&configuration);
        let mut server = Self(nginx.stdin(Stdio::null()).spawn().context("cannot start nginx")?);
        server.wait(&log, || Ok(TcpStream::connect(address).is_ok()))?;
        Ok(server)
    }

    /// The most memory that its processes ever had, in KiB.
    ///
    /// # Errors
    ///
    /// It has ended.
    pub fn peak_kib(&self) -> Result<u64> {
        peak_kib(self.0.id())
    }

    fn wait(&mut self, log: &Path, is_ready: impl Fn() -> Result<bool>) -> Result<()> {
        let begin = Instant::now();
        while !is_ready()? {
            let is_over = self.0.try_wait()?.is_some() || begin.elapsed() > START;
            ensure!(!is_over, "a server did not start:\n{}", fs::read_to_string(log).unwrap_or_default());
            thread::sleep(POLL);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // nginx ends the processes that it has started.
        kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM).ok();
        self.0.wait().ok();
    }
}

fn dnsmasq(folder: &Path, tftp_root: &Path, rules: &[String]) -> Result<Server> {
    let (log, process) = (folder.join("dnsmasq.log"), folder.join("dnsmasq-process"));
    let mut dnsmasq = command("dnsmasq");
    dnsmasq.args(["--conf-file=/dev/null", "--port=0", "--keep-in-foreground", "--log-facility=-"]);
    // The folder of a run is not for everybody to read.
    dnsmasq.args(["--bind-interfaces", "--user=root", "--enable-tftp"]).args(rules);
    dnsmasq.arg(format!("--tftp-root={}", tftp_root.display()));
    dnsmasq.arg(format!("--pid-file={}", process.display()));
    let server = dnsmasq.stdin(Stdio::null()).stderr(File::create(&log)?).spawn();
    let mut server = Server(server.context("cannot start dnsmasq")?);
    // It is written when all sockets are open.
    server.wait(&log, || Ok(process.exists()))?;
    Ok(server)
}

fn nginx(folder: &Path, root: &Path, address: SocketAddr) -> String {
    let (folder, root) = (folder.display(), root.display());
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/nginx-{name};"))
        .join(" ");
    format!(
        "user root; daemon off; worker_processes auto; pid {folder}/nginx-process;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; sendfile on; default_type application/octet-stream; {temporary}\n\
         server {{ listen {address} backlog=1024; root {root}; }} }}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_serves_the_folder_at_the_address() {
        let text = nginx(Path::new("/run"), Path::new("/run/http"), "192.0.2.1:8080".parse().unwrap());
        assert!(text.contains("server { listen 192.0.2.1:8080 backlog=1024; root /run/http; }"), "{text}");
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }
}
