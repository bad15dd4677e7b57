//! What operators ask when a node does not do what they expect.

use crate::conductor::KeptEvidence;
use crate::error::Error;
use crate::evidence::diagnosis::Diagnosis;
use crate::evidence::erasing::{ErasureRecord, InspectedDisk};
use crate::evidence::log_files::{self, KeptLog};
use crate::evidence::timeline::Timeline;
use crate::explain::boot_progress::BootProgress;
use crate::explain::gather::gather;
use crate::explain::{CONSOLE, Evidence, Explanation, explain};
use crate::placement::Place;
use crate::services::ENDED;
use crate::store::Record;
use farrier_conductor::agent::AgentSettings;
use farrier_conductor::agent::{AgentClient, failure_text};
use farrier_conductor::interfaces::HandWork;
use farrier_conductor::model::InspectionData;
use farrier_conductor::model::{Activity, Node, PowerState, masked_text};
use farrier_conductor::untrusted::log::last_line;
use farrier_protocol::command::CommandStatus;
use std::time::Duration;

/// How long an agent is asked for what it does: the client waits for the answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long a BMC is asked for what it knows of a machine: many are slow.
const PATIENCE_WITH_BMC: Duration = Duration::from_secs(12);

impl KeptEvidence {
    /// The data of the last inspection, of the node with this name or identity; nothing when none was.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Error::Store`].
    pub async fn inventory(&self, id: &str) -> Result<Option<InspectionData>, Error> {
        let node = self.0.find(id).await?.node;
        Ok(self.0.store().inspection(node.uuid).await?)
    }

    /// What the node with this name or identity waits for, with what its agent and its console say now.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Error::Store`].
    pub async fn explain(&self, id: &str) -> Result<Explanation, Error> {
        let record = self.0.find(id).await?;
        let mut explanation = self.recorded(&record);
        if record.node.provision_state.activity() != Activity::Rest {
            let progress = BootProgress::of(self.0.services(), &record.node).await?;
            let progress = progress.map(|progress| Evidence::new("boot", progress.told()));
            explanation.evidence.extend(progress);
            let (command, words, power) =
                tokio::join!(self.last_command(&record), self.diagnosis(&record), self.power(&record.node));
            explanation.add_power(power);
            explanation.evidence.extend(command);
            explanation.evidence.extend(self.console(&record));
            if let Some(words) = words? {
                explanation.add_diagnosis(words);
            }
        }
        Ok(explanation)
    }

    /// As [`Self::explain`], without a question to the machine, its agent or its BMC: at once, and as true as the record.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Error::Store`].
    pub async fn explain_record(&self, id: &str) -> Result<Explanation, Error> {
        let record = self.0.find(id).await?;
        let mut explanation = self.recorded(&record);
        if let Some(words) = self.0.store().diagnosis(record.node.uuid).await? {
            explanation.add_diagnosis(words);
        }
        Ok(explanation)
    }

    fn recorded(&self, record: &Record) -> Explanation {
        let mut explanation = explain(record, self.0.settings(), self.0.now());
        self.add_leader(&mut explanation, record);
        if let Some(work) = self.hand_work(record) {
            explanation.add_hand_work(&work);
        }
        explanation
    }

    /// Adds who leads a node that has no lease and more to come: its queue here, another conductor, or none.
    fn add_leader(&self, explanation: &mut Explanation, record: &Record) {
        let services = self.0.services();
        let activity = record.node.provision_state.activity();
        let is_under_way = record.order.is_some() || matches!(activity, Activity::Work | Activity::Wait);
        let has_lease = record.lease_expires_at.is_some_and(|until| until > ENDED);
        if !is_under_way || has_lease {
            return;
        }
        match services.placement.of(&record.node) {
            Place::Here => {
                if let Some(place) = services.limits.place(record.node.uuid) {
                    explanation.waits_in_queue(&record.node, &place);
                }
            }
            Place::At(conductor) => explanation.is_led_by(&conductor, activity != Activity::Wait),
            Place::Nowhere(unserved) => explanation.is_led_by_none(&unserved),
        }
    }

    /// What is known of the erasure of the disks of the node with this name or identity.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`].
    pub async fn certificates(&self, id: &str) -> Result<ErasureRecord, Error> {
        let node = self.0.find(id).await?.node;
        let inspection = self.0.store().inspection(node.uuid).await?;
        Ok(ErasureRecord {
            node: node.uuid.to_string(),
            erasure: node.driver_internal_info.erasure,
            certificates: self.0.store().certificates(node.uuid).await?,
            inspected: inspection.map(|found| InspectedDisk::of(&found.inventory)).unwrap_or_default(),
        })
    }

    /// The life of the node with this name or identity: its phases and steps.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Error::Store`].
    pub async fn timeline(&self, id: &str) -> Result<Timeline, Error> {
        let node = self.0.find(id).await?.node;
        let history = self.0.store().history(node.uuid).await?;
        Ok(Timeline::of(&node, &history, &self.0.events().since(node.uuid, 0)))
    }

    /// The logs that were kept of the ramdisks of the node with this name or identity, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Error::Logs`].
    pub async fn logs(&self, id: &str) -> Result<Vec<KeptLog>, Error> {
        let node = self.0.find(id).await?.node.uuid;
        match &self.0.settings().agent.deploy_logs_local_path {
            Some(folder) => Ok(log_files::of(folder, node).await?),
            None => Ok(Vec::new()),
        }
    }

    /// One archive of them; nothing when there is none of this name.
    ///
    /// # Errors
    ///
    /// As [`Self::logs`].
    pub async fn log(&self, id: &str, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let node = self.0.find(id).await?.node.uuid;
        match &self.0.settings().agent.deploy_logs_local_path {
            Some(folder) => Ok(log_files::read(folder, node, name).await?),
            None => Ok(None),
        }
    }

    /// What the agent ran last.
    async fn last_command(&self, record: &Record) -> Option<Evidence> {
        record.session.agent_url.as_ref()?;
        let once = AgentSettings { max_command_attempts: 1, ..self.0.settings().agent.clone() };
        let client = AgentClient::new(&record.session, &once).ok()?;
        let said = match tokio::time::timeout(PATIENCE, client.commands()).await {
            Ok(Ok(commands)) => match commands.last() {
                Some(last) if last.command_error.is_some() => failure_text(&last.command_name, last),
                Some(last) => format!("{} {}", last.command_name, status(&last.command_status)),
                None => "none: it waits for one".to_owned(),
            },
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("the agent did not answer within {} s", PATIENCE.as_secs()),
        };
        Some(Evidence::new("last command", said))
    }

    /// What an operator has to do to the machine of a node. An agent that has called since proves that it is done.
    fn hand_work(&self, record: &Record) -> Option<HandWork> {
        let work = self.0.services().hardware.power(&record.node).ok()?.hand_work(&record.node)?;
        let has_called = record.session.agent_last_heartbeat.is_some_and(|heard| heard > work.since);
        (!has_called).then_some(work)
    }

    /// What could be had of a machine that stayed silent; of one that is waited for and was never heard of, what can
    /// be had now.
    async fn diagnosis(&self, record: &Record) -> Result<Option<Diagnosis>, Error> {
        let node = &record.node;
        let kept = self.0.store().diagnosis(node.uuid).await?;
        let is_silent = record.session.agent_last_heartbeat.is_none();
        if kept.is_some() || !is_silent || node.provision_state.activity() != Activity::Wait {
            return Ok(kept);
        }
        Ok(Some(gather(self.0.services(), node, PATIENCE_WITH_BMC).await))
    }

    /// The power of a machine now, as its BMC says: the record has the last one that was read, and power may have failed
    /// since.
    async fn power(&self, node: &Node) -> Result<PowerState, String> {
        match tokio::time::timeout(PATIENCE_WITH_BMC, self.0.services().power_state(node)).await {
            Ok(Ok(power)) => Ok(power),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the BMC did not answer within {} s", PATIENCE_WITH_BMC.as_secs())),
        }
    }

    /// Where the console is written to, and its last line.
    fn console(&self, record: &Record) -> Option<Evidence> {
        let console = self.0.services().hardware.console(&record.node).ok()?;
        let file = console.log_file(&record.node)?;
        let said = match last_line(&file) {
            Some(line) => format!("{} ends with: {}", file.display(), masked_text(&line)),
            None => format!("{} is empty", file.display()),
        };
        Some(Evidence::new(CONSOLE, said))
    }
}

/// A status as it is on the wire.
fn status(status: &CommandStatus) -> String {
    serde_json::to_value(status).ok().and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
}
