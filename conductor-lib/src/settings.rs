//! Times and addresses that a conductor works with; the defaults are Ironic's.

use crate::agent::AgentSettings;
use crate::inventory::InspectionSettings;
use crate::model::{Activity, BadValue, Family, Node, PasswordHashAlgorithm, ProvisionState};
use crate::plan::StepPolicies;
use std::time::Duration;

/// Longest silence of an agent, whatever it is to do.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(1800);

/// Longest silence of an agent that stays between operations: agents call more often.
const MOST_FAST_TRACK_TIMEOUT: Duration = Duration::from_secs(300);

/// How recorded power states are kept true (section 12.4).
#[derive(Debug, Clone)]
pub struct PowerSyncSettings {
    /// Pause between two rounds over all machines; zero: there are none.
    pub sync_power_state_interval: Duration,
    /// How many machines are read at a time.
    pub sync_power_state_workers: usize,
    /// How often in a row a machine may not be read, or not follow its record, before its node is in maintenance.
    pub power_state_sync_max_retries: u32,
    /// Drives machines to the state that is recorded; else the record follows the machine.
    pub force_power_state_during_sync: bool,
    /// Pause between two looks for machines that can be read again; zero: their operator ends the maintenance.
    pub power_failure_recovery_interval: Duration,
}

impl Default for PowerSyncSettings {
    fn default() -> Self {
        Self {
            sync_power_state_interval: Duration::from_secs(120),
            sync_power_state_workers: 8,
            power_state_sync_max_retries: 3,
            force_power_state_during_sync: true,
            power_failure_recovery_interval: Duration::from_secs(300),
        }
    }
}

/// How many operations of a kind a conductor has under way at once; more wait in a queue (section 12.5). Zero: there is no
/// limit. The limits of deployments and cleanings are Ironic's, which has none of the others.
#[derive(Debug, Clone, Copy)]
pub struct OperationLimits {
    /// Deployments.
    pub max_concurrent_deploy: usize,
    /// Cleanings: erasing many disks at once may be a mistake.
    pub max_concurrent_clean: usize,
    /// Inspections.
    pub max_concurrent_inspect: usize,
    /// Rescues.
    pub max_concurrent_rescue: usize,
    /// Services.
    pub max_concurrent_service: usize,
}

impl Default for OperationLimits {
    fn default() -> Self {
        Self {
            max_concurrent_deploy: 250,
            max_concurrent_clean: 50,
            max_concurrent_inspect: 250,
            max_concurrent_rescue: 250,
            max_concurrent_service: 250,
        }
    }
}

/// How agents erase disks (section 1.8); the defaults are Ironic's.
#[derive(Debug, Clone)]
pub struct EraseSettings {
    /// How often a disk is overwritten that cannot erase itself.
    pub iterations: u32,
    /// Whether zeros are written last.
    pub zeroize: bool,
    /// Whether a disk whose own erasure failed is overwritten.
    pub continue_if_secure_erase_failed: bool,
    /// Whether ATA disks erase themselves.
    pub enable_ata_secure_erase: bool,
    /// Whether NVMe disks erase themselves.
    pub enable_nvme_secure_erase: bool,
    /// How many disks are erased at a time.
    pub disk_erasure_concurrency: u32,
    /// Whether disks that refuse to be written are left as they are.
    pub skip_read_only: bool,
}

impl Default for EraseSettings {
    fn default() -> Self {
        Self {
            iterations: 1,
            zeroize: true,
            continue_if_secure_erase_failed: false,
            enable_ata_secure_erase: true,
            enable_nvme_secure_erase: true,
            disk_erasure_concurrency: 4,
            skip_read_only: false,
        }
    }
}

/// Times and addresses that a conductor works with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// URL of the ramdisk API as seen on the conductor's own host, without a trailing slash.
    pub api_url: String,
    /// Base of the heartbeat interval that agents get, in whole seconds.
    pub heartbeat_timeout: Duration,
    /// Gives firmware a boot configuration only while its machine may be booting the ramdisk (section 7.1).
    pub restrict_boot_config: bool,
    /// Gives it also while an instance is on the disk, so that the loader sends the machine there
    /// (`[pxe]enable_netboot_fallback`).
    pub netboot_fallback: bool,
    /// Serves the ramdisk API; if false, lookups, heartbeats and inspection data get 403 (section 8.1).
    pub enable_ramdisk_endpoints: bool,
    /// Formats that agents may write, as they name them.
    pub permitted_image_formats: Vec<String>,
    /// Lets agents run programs of the deployed image, as root, where it needs a boot loader that only they can
    /// install.
    pub enable_bios_bootloader_install: bool,
    /// Longest silence of an agent before its deployment fails; zero, here and below: it is waited for until an
    /// operator ends that (section 1.6).
    pub deploy_callback_timeout: Duration,
    /// The same for cleaning.
    pub clean_callback_timeout: Duration,
    /// The same for service.
    pub service_callback_timeout: Duration,
    /// The same for rescue.
    pub rescue_callback_timeout: Duration,
    /// The same for inspection.
    pub inspect_wait_timeout: Duration,
    /// Time to wait for the agent after a boot before the next interface of `driver_info/boot_fallback` is tried. It
    /// must exceed the boot time of the slowest machine.
    pub boot_retry_timeout: Duration,
    /// Name by which other conductors know this one; two that run at the same time need two.
    pub conductor_name: String,
    /// The conductor group whose nodes this conductor leads (section 12.1); an empty text: those without a group.
    pub conductor_group: String,
    /// How many operations of a kind are under way at once.
    pub operations: OperationLimits,
    /// How long a conductor that stops waits for what is under way. Another one continues what takes longer.
    pub graceful_shutdown_timeout: Duration,
    /// How long the lease of a node lasts whose conductor is heard of no more; the same for all over one store.
    pub lease: Duration,
    /// How often waiting nodes are checked for silence.
    pub check_interval: Duration,
    /// How often the BMC of a waiting node is read. One whose agent cannot be reached, or that was read to be off, is read
    /// each [`check_interval`](Self::check_interval).
    pub power_check_interval: Duration,
    /// How often a running step is asked for its progress while a user watches it.
    pub progress_interval: Duration,
    /// How long a driver may take to power a machine on, or off.
    pub power_state_change_timeout: Duration,
    /// How long the system of a machine may take to shut down.
    pub soft_power_off_timeout: Duration,
    /// How long an agent may take to power its machine off before it is forced.
    pub power_off_timeout: Duration,
    /// How often the power state is read meanwhile.
    pub power_poll_interval: Duration,
    /// How long a driver may take to tell a power state.
    pub power_read_timeout: Duration,
    /// Longest time that any other call of an interface may take.
    pub interface_timeout: Duration,
    /// Longest time that the conductor may work on a node without a wait: longer than it takes to write an image to a
    /// disk that an agent exports.
    pub pass_timeout: Duration,
    /// How often the end of a cleaning or service is tried, whose steps are done.
    pub tear_down_attempts: u32,
    /// Pause between two attempts, about.
    pub tear_down_pause: Duration,
    /// How long the BMC of a silent machine may take to tell what it knows, before the operation fails.
    pub diagnosis_timeout: Duration,
    /// How recorded power states are kept true.
    pub power_sync: PowerSyncSettings,
    /// Attempts of an operator's request to lock a node.
    pub node_locked_attempts: u32,
    /// Pause between two such attempts.
    pub node_locked_pause: Duration,
    /// Whether machines are cleaned before they become available, unless their node says something else.
    pub automated_clean: bool,
    /// Priorities of steps, and steps that never run.
    pub steps: StepPolicies,
    /// The deploy interfaces among which `autodetect` chooses, the best one first
    /// (`[DEFAULT]autodetect_deploy_interfaces`).
    pub autodetect_deploy_interfaces: Vec<String>,
    /// How disks are erased.
    pub erase: EraseSettings,
    /// Longest time that a step `wait` takes.
    pub max_conductor_wait_step: Duration,
    /// Whether an operation pauses while its node is in maintenance; else it fails.
    pub allow_provisioning_in_maintenance: bool,
    /// Powers machines off whose deployment failed.
    pub power_off_after_deploy_failure: bool,
    /// Powers machines off whose cleaning failed.
    pub poweroff_in_cleanfail: bool,
    /// Powers machines off whose service failed.
    pub poweroff_in_servicefail: bool,
    /// How passwords of rescues are hashed.
    pub rescue_password_hash_algorithm: PasswordHashAlgorithm,
    /// Lets agents stay between operations, so that the next one needs no boot, unless their node says something else
    /// (section 2.3).
    pub fast_track: bool,
    /// How long an agent that stays is believed to be there after it was heard of; at most 300 s.
    pub fast_track_timeout: Duration,
    /// How machines are inspected.
    pub inspection: InspectionSettings,
    /// How agents are talked to.
    pub agent: AgentSettings,
}

impl Settings {
    /// The defaults, for a ramdisk API at `api_url`.
    pub fn new(api_url: impl Into<String>) -> Self {
        Self {
            api_url: api_url.into().trim_end_matches('/').to_owned(),
            heartbeat_timeout: Duration::from_secs(300),
            restrict_boot_config: true,
            netboot_fallback: false,
            enable_ramdisk_endpoints: true,
            permitted_image_formats: ["raw", "gpt", "qcow2"].map(str::to_owned).to_vec(),
            enable_bios_bootloader_install: false,
            deploy_callback_timeout: CALLBACK_TIMEOUT,
            clean_callback_timeout: CALLBACK_TIMEOUT,
            service_callback_timeout: CALLBACK_TIMEOUT,
            rescue_callback_timeout: CALLBACK_TIMEOUT,
            inspect_wait_timeout: CALLBACK_TIMEOUT,
            boot_retry_timeout: Duration::from_secs(300),
            conductor_name: "farrier".to_owned(),
            conductor_group: String::new(),
            operations: OperationLimits::default(),
            graceful_shutdown_timeout: Duration::from_secs(60),
            lease: Duration::from_secs(60),
            check_interval: Duration::from_secs(5),
            power_check_interval: Duration::from_secs(30),
            progress_interval: Duration::from_secs(1),
            power_state_change_timeout: Duration::from_secs(60),
            soft_power_off_timeout: Duration::from_secs(600),
            power_off_timeout: Duration::from_secs(35),
            power_poll_interval: Duration::from_millis(500),
            power_read_timeout: Duration::from_secs(60),
            interface_timeout: Duration::from_secs(1800),
            pass_timeout: Duration::from_secs(24 * 3600),
            tear_down_attempts: 5,
            tear_down_pause: Duration::from_secs(15),
            diagnosis_timeout: Duration::from_secs(20),
            power_sync: PowerSyncSettings::default(),
            node_locked_attempts: 3,
            node_locked_pause: Duration::from_secs(1),
            automated_clean: true,
            steps: StepPolicies::default(),
            autodetect_deploy_interfaces: ["ramdisk", "bootc", "direct"].map(str::to_owned).to_vec(),
            erase: EraseSettings::default(),
            max_conductor_wait_step: Duration::from_secs(30),
            allow_provisioning_in_maintenance: true,
            power_off_after_deploy_failure: true,
            poweroff_in_cleanfail: false,
            poweroff_in_servicefail: false,
            rescue_password_hash_algorithm: PasswordHashAlgorithm::default(),
            fast_track: false,
            fast_track_timeout: MOST_FAST_TRACK_TIMEOUT,
            inspection: InspectionSettings::default(),
            agent: AgentSettings::default(),
        }
    }

    /// Whether agents of a node stay between operations: by its `driver_info`, else as all do (section 2.3).
    ///
    /// # Errors
    ///
    /// [`BadValue`] where `driver_info` has something else than a boolean.
    pub fn has_fast_track(&self, node: &Node) -> Result<bool, BadValue> {
        Ok(node.driver_info.fast_track()?.unwrap_or(self.fast_track))
    }

    /// How long an agent that stays is believed to be there after it was heard of.
    pub fn fast_track_window(&self) -> Duration {
        self.fast_track_timeout.min(MOST_FAST_TRACK_TIMEOUT)
    }

    /// Longest silence of an agent in a state; nothing where it is not waited for, or for as long as it takes.
    pub fn callback_timeout(&self, state: ProvisionState) -> Option<Duration> {
        if state.activity() != Activity::Wait {
            return None;
        }
        let timeout = match state.family()? {
            Family::Deploy => self.deploy_callback_timeout,
            Family::Clean => self.clean_callback_timeout,
            Family::Service => self.service_callback_timeout,
            Family::Rescue => self.rescue_callback_timeout,
            Family::Inspect => self.inspect_wait_timeout,
            Family::Verify | Family::Delete | Family::Adopt | Family::Unrescue => return None,
        };
        Some(timeout).filter(|timeout| !timeout.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_that_waits_has_a_deadline_of_its_own_which_zero_disables() {
        let second = Duration::from_secs;
        let settings = Settings {
            deploy_callback_timeout: second(1),
            clean_callback_timeout: second(2),
            inspect_wait_timeout: second(3),
            rescue_callback_timeout: second(4),
            service_callback_timeout: second(5),
            ..Settings::new("http://c")
        };
        let timeouts = |settings: &Settings| {
            let of = |state: &ProvisionState| Some((*state, settings.callback_timeout(*state)?));
            ProvisionState::ALL.iter().filter_map(of).collect::<Vec<_>>()
        };
        use ProvisionState::{CleanWait, DeployWait, InspectWait, RescueWait, ServiceWait};
        let waits = [DeployWait, CleanWait, InspectWait, RescueWait, ServiceWait];
        assert_eq!(timeouts(&settings), waits.into_iter().zip((1..).map(second)).collect::<Vec<_>>());
        let disabled = Settings { clean_callback_timeout: Duration::ZERO, ..settings };
        assert!(timeouts(&disabled).iter().all(|(state, _)| *state != CleanWait));
        assert_eq!(timeouts(&disabled).len(), 4);
    }
}
