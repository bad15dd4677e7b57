//! The serial console of a machine: read part by part, typed at, and opened again by the next conductor.

use crate::stand_ins::agent::Script;
use crate::stand_ins::operator::{ask, get};
use crate::stand_ins::stage::{Stage, quick};
use async_trait::async_trait;
use farrier_conductor::interfaces::{ConsoleAccess, ConsoleInterface, Interface, InterfaceError};
use farrier_conductor::model::Node;
use farrier_conductor::{Drivers, HardwareType};
use farrier_engine::Conductor;
use farrier_engine::records::Order;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const CONSOLE: &str = "/farrier/v1/nodes/n1/console";

/// A console that writes down what it is told.
#[derive(Debug, Clone, Default)]
struct Told(Arc<Mutex<Vec<String>>>);

impl Told {
    fn note(&self, what: impl Into<String>) -> Result<(), InterfaceError> {
        self.0.lock().unwrap().push(what.into());
        Ok(())
    }

    async fn is(&self, expected: &[&str]) {
        let end = Instant::now() + Duration::from_secs(60);
        while *self.0.lock().unwrap() != expected {
            assert!(Instant::now() < end, "waited for {expected:?} in {:?}", self.0.lock().unwrap());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn with(self) -> impl Fn(Drivers) -> Drivers {
        move |drivers| {
            let hardware = HardwareType::new("told").power(["fake"]).boot(["fake"]).deploy(["direct"]);
            drivers.console("told", self.clone()).hardware_type(hardware.console(["told"]))
        }
    }
}

impl Interface for Told {}

#[async_trait]
impl ConsoleInterface for Told {
    /// Also asked for where it is open: by a conductor that opens at its start what was open, and is late with it.
    async fn start_console(&self, _: &Node) -> Result<(), InterfaceError> {
        let is_open = self.0.lock().unwrap().iter().any(|told| told == "start");
        if is_open { Ok(()) } else { self.note("start") }
    }

    async fn stop_console(&self, _: &Node) -> Result<(), InterfaceError> {
        self.note("stop")
    }

    async fn get_console(&self, _: &Node) -> Result<ConsoleAccess, InterfaceError> {
        Ok(ConsoleAccess { kind: "farrier".into(), url: CONSOLE.into() })
    }

    async fn write_console(&self, _: &Node, typed: &[u8]) -> Result<(), InterfaceError> {
        self.note(String::from_utf8_lossy(typed))
    }

    async fn forget(&self, _: &Node) -> Result<(), InterfaceError> {
        self.note("forget")
    }

    async fn shut_down(&self) {
        self.note("shut down").unwrap();
    }
}

#[tokio::test]
async fn a_console_is_read_from_its_end_on() {
    let stage = Stage::new(Script::default()).await;
    let part = get(&stage, CONSOLE).await;
    assert_eq!(part["text"], "farrier-agent: link eth0 is down\r\n");
    let next = get(&stage, &format!("{CONSOLE}?from={}", part["next"])).await;
    assert_eq!(next, json!({"text": "", "next": part["next"]}));
    let console = stage.machine.console.as_ref().unwrap();
    let mut file = std::fs::OpenOptions::new().append(true).open(console).unwrap();
    file.write_all(b"it is up").unwrap();
    assert_eq!(get(&stage, &format!("{CONSOLE}?from={}", part["next"])).await["text"], "it is up");
    std::fs::remove_file(console).unwrap();
    let reply = ask(&stage, Method::GET, CONSOLE, &Value::Null).await;
    assert_eq!(reply.status(), 400);
    assert!(reply.text().await.unwrap().contains("nothing is kept of it: open it"));
    // This one can only be looked at.
    let typed = stage.http.post(format!("{}{CONSOLE}", stage.node_api)).body("x").send().await.unwrap();
    assert!(typed.text().await.unwrap().contains("write_console is not supported"));
}

#[tokio::test]
async fn a_console_stays_open_for_the_next_conductor_until_it_is_closed() {
    let told = Told::default();
    let stage = Stage::composed(Script::default(), "told", told.clone().with()).await;
    let switch = async |enabled: bool| {
        let body = json!({"enabled": enabled});
        let reply = ask(&stage, Method::PUT, "/v1/nodes/n1/states/console", &body).await;
        assert_eq!(reply.status(), 202);
    };
    switch(true).await;
    let typed = stage.http.post(format!("{}{CONSOLE}", stage.node_api)).body("root\r").send().await.unwrap();
    assert_eq!(typed.status(), 204);
    told.is(&["start", "root\r"]).await;

    stage.conductor.shut_down().await;
    told.is(&["start", "root\r", "shut down"]).await;
    let next = Told::default();
    let drivers = next.clone().with()(stage.machine.drivers());
    let settings = quick(&stage.ramdisk_api);
    let conductor = Conductor::builder(settings, stage.store.clone(), drivers).start().await.unwrap();
    let running = conductor.clone();
    tokio::spawn(async move { running.run().await });
    next.is(&["start"]).await;
    conductor.machines().set_console("n1", false).await.unwrap();
    next.is(&["start", "stop"]).await;
    conductor.order("n1", Order::Delete).await.unwrap();
    stage.gone("n1").await;
    next.is(&["start", "stop", "forget"]).await;
    conductor.shut_down().await;
    next.is(&["start", "stop", "forget", "shut down"]).await;
}
