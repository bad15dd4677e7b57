//! The simulator of OpenIPMI as the BMC of a machine that is a file with its power.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub const USER: &str = "stable-hand";
pub const PASSWORD: &str = "oats+hay=horse";

/// Longest time for it to answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// The BMC. Dropping it ends it.
pub struct Simulator {
    pub port: u16,
    /// Where it reaches the serial console of its machine.
    pub serial: TcpListener,
    child: Child,
    folder: TempDir,
}

impl Simulator {
    /// One whose machine is off.
    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let serial = TcpListener::bind("127.0.0.1:0").unwrap();
        let serial_port = serial.local_addr().unwrap().port();
        let path = |name: &str| folder.path().join(name);
        let chassis = path("chassis");
        let levels = ["callback", "user", "operator", "admin"];
        let allowed = levels.map(|level| format!("allowed_auths_{level} none md2 md5 straight\n")).concat();
        let lan = format!(
            "name \"horse\"\nset_working_mc 0x20\nstartlan 1\naddr 127.0.0.1 {port}\npriv_limit admin\n{allowed}\
             guid a123456789abcdefa123456789abcdef\nendlan\nsol \"tcp:127.0.0.1:{serial_port}\" 115200\nchassis_control \"{} 0x20\"\n\
             user 2 true \"{USER}\" \"{PASSWORD}\" admin 10 none md2 md5 straight\n",
            chassis.display()
        );
        fs::write(path("lan.conf"), lan).unwrap();
        let machine = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\n\
                       sel_enable 0x20 1000 0x0a\nmc_enable 0x20\n";
        fs::write(path("machine.emu"), machine).unwrap();
        fs::write(&chassis, chassis_program(folder.path().to_str().unwrap())).unwrap();
        fs::set_permissions(&chassis, fs::Permissions::from_mode(0o755)).unwrap();
        for (name, content) in [("power", "0"), ("boot", "default"), ("forgotten", "0"), ("told", "")] {
            fs::write(path(name), content).unwrap();
        }
        fs::create_dir(path("state")).unwrap();
        let mut command = Command::new("ipmi_sim");
        command.arg("-c").arg(path("lan.conf")).arg("-f").arg(path("machine.emu"));
        command.arg("-s").arg(path("state")).arg("-n").stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let simulator = Self { port, serial, child, folder };
        simulator.wait_until_ready();
        simulator
    }

    /// Any answer to a presence ping (ASF) will do.
    fn wait_until_ready(&self) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let end = Instant::now() + PATIENCE;
        let ping = [0x06, 0x00, 0xff, 0x06, 0x00, 0x00, 0x11, 0xbe, 0x80, 0x00, 0x00, 0x00];
        loop {
            socket.send_to(&ping, ("127.0.0.1", self.port)).unwrap();
            if socket.recv(&mut [0; 512]).is_ok() {
                return;
            }
            assert!(Instant::now() < end, "ipmi_sim does not answer");
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The power of the machine: 0 or 1.
    pub fn power(&self) -> String {
        fs::read_to_string(self.file("power")).unwrap().trim().to_owned()
    }

    /// What the machine was told, as `set power 1`.
    pub fn commands(&self) -> Vec<String> {
        fs::read_to_string(self.file("told")).unwrap().lines().map(str::to_owned).collect()
    }

    /// Has the machine forget so many orders to go on or off.
    pub fn forget_orders(&self, count: u32) {
        fs::write(self.file("forgotten"), count.to_string()).unwrap();
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The program that the simulator has its machine by.
fn chassis_program(folder: &str) -> String {
    format!(
        "#!/bin/sh\ncd '{folder}' || exit 1\nshift\necho \"$@\" >> told\ncase \"$1 $2\" in\n\
         'get power') echo \"power:$(cat power)\" ;;\n'get boot') echo \"boot:$(cat boot)\" ;;\n\
         'set boot') echo \"$3\" > boot ;;\n\
         'set power') left=$(cat forgotten)\n\
         if [ \"$left\" -gt 0 ]; then echo $((left - 1)) > forgotten; else echo \"$3\" > power; fi ;;\n\
         esac\nexit 0\n"
    )
}
