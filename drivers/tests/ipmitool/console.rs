//! Consoles by serial over LAN: kept, typed at, opened again when they are lost, and ended.

use crate::fake_program::install;
use crate::simulator::Simulator;
use crate::{info, node, settings};
use farrier_conductor::interfaces::{ConsoleInterface, VendorInterface};
use farrier_conductor::model::Node;
use farrier_drivers::ipmitool::{Bmcs, IpmiConsole, IpmiSettings, IpmiVendor, Reopening};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Longest time any test waits for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// Its consoles are below a folder, where the number of the process stands that has the last one.
fn consoles(folder: &Path) -> IpmiConsole {
    let ms = Duration::from_millis;
    let console_reopening = Reopening { first: ms(20), longest: ms(200) };
    let (program, process) = (folder.join("ipmitool"), process(folder));
    let noted = format!("case \"$*\" in *'sol activate') echo $$ > '{}' ;; esac", process.display());
    std::fs::create_dir_all(folder).unwrap();
    install(&program, &format!("#!/bin/sh\n{noted}\nexec ipmitool \"$@\"\n"));
    let program = program.to_str().unwrap().to_owned();
    IpmiConsole::new(Bmcs::new(IpmiSettings { program, console_reopening, ..settings() }), folder)
}

fn process(folder: &Path) -> PathBuf {
    folder.join("process")
}

/// The machine at its serial console.
async fn machine(simulator: &Simulator) -> TcpStream {
    let serial = simulator.serial.try_clone().unwrap();
    serial.set_nonblocking(true).unwrap();
    let serial = TcpListener::from_std(serial).unwrap();
    timeout(PATIENCE, serial.accept()).await.unwrap().unwrap().0
}

/// Waits until so much of a text is in the log, while the machine says something again and again: what it says while
/// nobody listens is lost.
async fn kept(console: &IpmiConsole, node: &Node, text: &str, count: usize, machine: &mut TcpStream) {
    let end = Instant::now() + PATIENCE;
    loop {
        machine.write_all(b"horse login: ").await.unwrap();
        let log = console.log_file(node).map(|log| std::fs::read_to_string(log).unwrap()).unwrap_or_default();
        if log.matches(text).count() >= count {
            return;
        }
        assert!(Instant::now() < end, "waited for {text:?} in {log:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn process_a_console_is_kept_and_typed_at_and_opened_again_when_it_is_lost() {
    let (simulator, folder) = (Simulator::start(), tempfile::tempdir().unwrap());
    let (node, console) = (node(&info(&simulator), "uefi"), consoles(folder.path()));
    let mut machine = machine(&simulator).await;
    let error = console.write_console(&node, b"x").await.unwrap_err().to_string();
    assert!(error.contains("is not open; open it by `farrier console NODE --open`"), "{error}");
    assert_eq!(console.log_file(&node), None);
    console.start_console(&node).await.unwrap();
    console.start_console(&node).await.unwrap();
    kept(&console, &node, "horse login: ", 1, &mut machine).await;
    console.write_console(&node, b"~.root\r").await.unwrap();
    let mut typed = vec![0; 7];
    timeout(PATIENCE, machine.read_exact(&mut typed)).await.unwrap().unwrap();
    assert_eq!(typed, b"~.root\r");

    // The process ends, and the BMC knows of no console any more, as one that restarts.
    let vendor = IpmiVendor::new(Bmcs::new(settings()));
    let deactivate = json!({"raw_bytes": "0x06 0x49 1 1 0 0 0 0"});
    vendor.passthru(&node, "send_raw", &deactivate).await.unwrap();
    let number = std::fs::read_to_string(process(folder.path())).unwrap().trim().parse().unwrap();
    kill(Pid::from_raw(number), Signal::SIGTERM).unwrap();
    kept(&console, &node, "[farrier: the console session ended: ", 1, &mut machine).await;
    kept(&console, &node, "SOL Session operational", 2, &mut machine).await;

    // The BMC has one console for one, and the next is let in when this one has ended.
    console.shut_down().await;
    let other = consoles(&folder.path().join("other"));
    other.start_console(&node).await.unwrap();
    kept(&other, &node, "horse login: ", 1, &mut machine).await;
    other.forget(&node).await.unwrap();
    assert_eq!(other.log_file(&node), None);
    console.forget(&node).await.unwrap();
    assert_eq!(std::fs::read_dir(folder.path().join("consoles")).unwrap().count(), 0);
}

#[tokio::test]
async fn process_a_wrong_password_is_tried_once_for_a_console_too() {
    let (simulator, folder) = (Simulator::start(), tempfile::tempdir().unwrap());
    let mut wrong = info(&simulator);
    wrong["ipmi_password"] = json!("hay and oats");
    let (node, console) = (node(&wrong, "uefi"), consoles(folder.path()));
    console.start_console(&node).await.unwrap();
    let end = Instant::now() + PATIENCE;
    let log = loop {
        let log = std::fs::read_to_string(console.log_file(&node).unwrap()).unwrap();
        // What the BMC said is said again in its place.
        if log.matches("refuses the user or the password (RAKP 2").count() >= 3 {
            break log;
        }
        assert!(Instant::now() < end, "{log}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert!(!log.contains("hay and oats"), "{log}");
    console.stop_console(&node).await.unwrap();
}
