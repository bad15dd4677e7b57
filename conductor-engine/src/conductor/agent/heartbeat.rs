//! Takes in the heartbeats of agents, and goes on with what waited for them (sections 2.2 and 2.4).

use crate::conductor::Ramdisks;
use crate::error::Error;
use farrier_conductor::heartbeat::{Next, accept, next};
use farrier_conductor::task::event::EventKind;
use farrier_protocol::heartbeat::Heartbeat;

/// How often a heartbeat is judged again because something happened to its session meanwhile. Once is enough: what
/// was out of date is refused the second time.
const ATTEMPTS: u32 = 3;

impl Ramdisks {
    /// Takes a heartbeat of the node with this name or identity. It is recorded no matter who works on the node, and
    /// never lost (lesson F40); what it sets off runs in the background.
    ///
    /// # Errors
    ///
    /// [`Heartbeat`](Error::Task) for a heartbeat that is not the agent's, [`Error::NodeNotFound`], [`Error::Store`].
    pub async fn heartbeat(&self, id: &str, heartbeat: Heartbeat) -> Result<(), Error> {
        for _ in 0..ATTEMPTS {
            let record = self.0.find(id).await?;
            let heard =
                accept(&record.session, &heartbeat, self.0.settings().agent.require_tls, self.0.now())?;
            let next = next(&self.0.services().situation(&record), None);
            if !next.records() {
                return Ok(());
            }
            let uuid = record.node.uuid;
            if self.0.store().hear(uuid, &heard).await? {
                if record.session.agent_url.is_none() {
                    self.0.events().push(uuid, EventKind::FirstHeartbeat);
                }
                if next != Next::Record && self.0.services().leads(&record.node) {
                    self.0.workers().begin(uuid);
                }
                return Ok(());
            }
            // Another session began since the record was read, or another heartbeat was first.
        }
        Err(Error::invalid("agent_token", "the session of this agent changes too often; send it again"))
    }
}
