//! Machines that exist in memory: powered on with the ramdisk, they run a fake agent.

use super::agent::{Agent, Script};
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootCapability, BootContext, BootExtension, BootInterface, ConsoleInterface, DriverStep, Interface,
    InterfaceError, PowerInterface, Properties,
};
use farrier_conductor::model::{Node, PlannedStep, PowerState, RamdiskInstance, StepKind};
use farrier_conductor::plan::KnownStep;
use farrier_conductor::{Drivers, HardwareType, Settings};
use farrier_engine::store::Store;
use farrier_engine::{Builder, Conductor};
use farrier_media::KernelParameters;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// What a machine starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Boot {
    Ramdisk(KernelParameters),
    Disk,
    /// An instance that is a ramdisk, and its config drive.
    Memory(RamdiskInstance, Option<String>),
}

/// What one machine is doing.
#[derive(Debug)]
pub struct State {
    pub power: PowerState,
    pub boot: Option<Boot>,
    pub power_ons: Vec<Option<Boot>>,
    pub agent: Option<AbortHandle>,
    /// How often it went off.
    pub offs: usize,
    /// Its power when it was made to start its instance, each time.
    pub prepared: Vec<PowerState>,
}

/// The only machine of a stage, and what its agent will do.
#[derive(Clone)]
pub struct FakeMachine {
    pub state: Arc<Mutex<State>>,
    pub script: Arc<Mutex<Script>>,
    pub console: Option<PathBuf>,
    /// Where its agents run: a machine outlives its conductor.
    pub runtime: Handle,
    /// Power-offs wait here while it is taken.
    pub power_off: Arc<tokio::sync::Mutex<()>>,
    /// Notified by each order to go off.
    pub told_to_go_off: Arc<Notify>,
    /// Orders to go off that are not carried out, and not given up.
    pub waiting: Arc<AtomicUsize>,
}

/// An order to go off, until it is carried out or given up.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeMachine {
    pub fn new(script: Script) -> Self {
        let power = PowerState::Off;
        let (boot, power_ons, agent, offs, prepared) = Default::default();
        let state = State { power, boot, power_ons, agent, offs, prepared };
        Self {
            state: Arc::new(Mutex::new(state)),
            script: Arc::new(Mutex::new(script)),
            console: None,
            runtime: Handle::current(),
            power_off: Arc::default(),
            told_to_go_off: Arc::default(),
            waiting: Arc::default(),
        }
    }

    /// Drivers by which nodes have this machine.
    pub fn drivers(&self) -> Drivers {
        let fake = HardwareType::new("fake").power(["fake"]).boot(["fake"]);
        let fake = fake.deploy(["direct", "ramdisk", "custom-agent", "bootc", "autodetect"]);
        let fake = fake.rescue(["agent", "no-rescue"]).inspect(["agent", "no-inspect"]);
        let fake = fake.raid(["agent", "no-raid"]);
        Drivers::default()
            .power("fake", self.clone())
            .boot("fake", self.clone())
            .console("fake", self.clone())
            .hardware_type(fake.console(["fake"]))
    }

    /// A conductor whose nodes have this machine.
    pub fn conductor(&self, settings: Settings, store: Arc<dyn Store>) -> Builder {
        Conductor::builder(settings, store, self.drivers())
    }

    /// Cuts the power, as a guest does that powers itself off.
    pub fn go_off(&self) {
        let mut state = self.state.lock().unwrap();
        state.power = PowerState::Off;
        state.offs += 1;
        self.script.lock().unwrap().rescue_password = None;
        if let Some(agent) = state.agent.take() {
            agent.abort();
        }
    }

    /// Starts what it is to start from.
    fn start(&self, node: &Node) {
        let mut state = self.state.lock().unwrap();
        state.power = PowerState::On;
        let boot = state.boot.clone();
        state.power_ons.push(boot.clone());
        if let Some(Boot::Ramdisk(parameters)) = boot {
            let parameters = parameters.to_string();
            let given =
                |name| parameters.split(' ').find_map(|word| word.strip_prefix(name)).map(str::to_owned);
            let address = node.ports[0].address.as_str();
            let agent = Agent::new(self.clone(), given("ipa-api-url="), address)
                .with_token(given("ipa-agent-token="));
            let started = agent.live(given("ipa-inspection-callback-url="));
            state.agent = Some(self.runtime.spawn(started).abort_handle());
        }
    }

    /// Ends the agent alone.
    pub fn end_agent(&self) {
        if let Some(agent) = self.state.lock().unwrap().agent.take() {
            agent.abort();
        }
    }

    /// How many orders to go off wait for the lock.
    pub fn waiting_for_power_off(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    pub fn offs(&self) -> usize {
        self.state.lock().unwrap().offs
    }

    pub fn power_ons(&self) -> Vec<Option<Boot>> {
        self.state.lock().unwrap().power_ons.clone()
    }
}

#[async_trait]
impl Interface for FakeMachine {
    fn get_properties(&self) -> Properties {
        &[("fake_broken", "must not be set")]
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        match node.driver_text("fake_broken") {
            Some(_) => Err(InterfaceError::driver_info("fake_broken", "must not be set")),
            None => Ok(()),
        }
    }

    fn steps(&self, kind: StepKind, _node: &Node) -> Vec<KnownStep> {
        let known = |step| KnownStep { requires_ramdisk: false, ..KnownStep::new(kind, "power", step, 0) };
        match kind {
            StepKind::Deploy => Vec::new(),
            StepKind::Clean | StepKind::Service => ["at_once", "slow", "with_reboot"].map(known).into(),
        }
    }

    async fn execute_step(
        &self,
        _kind: StepKind,
        _node: &Node,
        step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        let mut script = self.script.lock().unwrap();
        script.driven.push(step.step.clone());
        Ok(match step.step.as_str() {
            "at_once" => DriverStep::Done,
            "slow" => DriverStep::Polls,
            _ => DriverStep::WantsReboot { runs_again: script.driven.len() < 3 },
        })
    }

    async fn poll_step(
        &self,
        _kind: StepKind,
        _node: &Node,
        _step: &PlannedStep,
    ) -> Result<DriverStep, InterfaceError> {
        let takes = self.script.lock().unwrap().poll_takes;
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
            return Ok(DriverStep::Polls);
        }
        let mut script = self.script.lock().unwrap();
        script.polls += 1;
        match script.polls {
            ..5 => Ok(DriverStep::Polls),
            _ if script.bmc_fails => Err(InterfaceError::driver_info("power", "is too weak")),
            _ => Ok(DriverStep::Done),
        }
    }
}

#[async_trait]
impl PowerInterface for FakeMachine {
    async fn power_state(&self, node: &Node) -> Result<PowerState, InterfaceError> {
        let hangs = {
            let script = self.script.lock().unwrap();
            script.bmc_hangs && script.accepted.iter().any(|(name, _)| name == "deploy.execute_deploy_step")
        };
        if hangs {
            std::future::pending::<()>().await;
        }
        let power = self.state.lock().unwrap().power;
        let mut script = self.script.lock().unwrap();
        if script.is_switched_by_hand {
            return Ok(node.power_state.unwrap_or(PowerState::Off));
        }
        if power == PowerState::On && script.misreads > 0 {
            script.misreads -= 1;
            return Ok(PowerState::Off);
        }
        Ok(power)
    }

    async fn power_on(&self, node: &Node) -> Result<(), InterfaceError> {
        assert!(!std::mem::take(&mut self.script.lock().unwrap().panics), "a driver panics");
        self.start(node);
        Ok(())
    }

    fn supports_reset(&self, node: &Node) -> bool {
        node.driver_text("fake_hard").is_none()
    }

    async fn reset(&self, node: &Node) -> Result<(), InterfaceError> {
        self.end_agent();
        self.start(node);
        Ok(())
    }

    fn supports_power_sync(&self, _node: &Node) -> bool {
        !self.script.lock().unwrap().is_switched_by_hand
    }

    fn supports_soft_power_off(&self, node: &Node) -> bool {
        node.driver_text("fake_hard").is_none()
    }

    async fn soft_power_off(&self, _node: &Node) -> Result<(), InterfaceError> {
        if !self.script.lock().unwrap().stays_on {
            self.go_off();
        }
        Ok(())
    }

    async fn power_off(&self, _node: &Node) -> Result<(), InterfaceError> {
        let _waiting = Waiting::begin(&self.waiting);
        self.told_to_go_off.notify_waiters();
        let _free = self.power_off.lock().await;
        {
            let mut script = self.script.lock().unwrap();
            let is_cleaned = script.accepted.iter().any(|(name, _)| name == "clean.execute_clean_step");
            if is_cleaned && script.power_off_fails > 0 {
                script.power_off_fails -= 1;
                return Err(InterfaceError::driver(std::io::Error::other("its BMC is busy")));
            }
        }
        self.go_off();
        Ok(())
    }
}

#[async_trait]
impl BootInterface for FakeMachine {
    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::RamdiskBoot, BootCapability::RamdiskBootConfigdrive]
    }

    fn extension(&self) -> &dyn BootExtension {
        self
    }

    async fn prepare_ramdisk(
        &self,
        _boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        self.state.lock().unwrap().boot = Some(Boot::Ramdisk(parameters.clone()));
        Ok(())
    }

    async fn clean_up_ramdisk(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        self.state.lock().unwrap().boot.take_if(|boot| matches!(boot, Boot::Ramdisk(_)));
        Ok(())
    }

    async fn prepare_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        let mut state = self.state.lock().unwrap();
        state.boot = Some(Boot::Disk);
        let power = state.power;
        state.prepared.push(power);
        Ok(())
    }

    async fn validate_rescue(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn validate_inspection(&self, _node: &Node) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn clean_up_instance(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        self.state.lock().unwrap().boot.take_if(|boot| !matches!(boot, Boot::Ramdisk(_)));
        Ok(())
    }
}

#[async_trait]
impl BootExtension for FakeMachine {
    fn serves_medium(&self) -> bool {
        self.script.lock().unwrap().serves_medium
    }

    fn can_provide_config(&self) -> bool {
        self.script.lock().unwrap().has_own_media
    }

    fn runs_from_medium(&self) -> bool {
        self.script.lock().unwrap().has_own_media
    }

    async fn prepare_ramdisk_instance(
        &self,
        _boot: BootContext<'_>,
        instance: &RamdiskInstance,
        config_drive: Option<&str>,
    ) -> Result<(), InterfaceError> {
        let boot = Boot::Memory(instance.clone(), config_drive.map(str::to_owned));
        self.state.lock().unwrap().boot = Some(boot);
        Ok(())
    }
}

impl ConsoleInterface for FakeMachine {
    fn log_file(&self, _node: &Node) -> Option<PathBuf> {
        self.console.clone()
    }
}
