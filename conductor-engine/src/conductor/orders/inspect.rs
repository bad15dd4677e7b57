//! What operators ask for: an inspection, and what the last one told.

use crate::conductor::Conductor;
use crate::error::Error;
use crate::records::Verb;
use crate::store::ConfigDrive;
use farrier_conductor::heartbeat::SessionEnd;
use farrier_conductor::in_band;
use farrier_conductor::model::Event;

impl Conductor {
    pub(super) async fn inspect(&self, id: &str) -> Result<(), Error> {
        let mut task = self.begin_operation(id, Event::Inspect).await?;
        let drives = self.drives(&task.node);
        if drives {
            task.validate_power().await?;
            let inspect = self.services().inspect_interface(&task.node)?;
            inspect.validate(&task.node).await?;
            in_band::add_ports_of_bmc(&mut task).await?;
            inspect.validate_inspection(&task).await?;
        }
        // An agent that switches its machine itself is forgotten when it has done so.
        if !(drives && task.is_switched_by_agent()?) {
            task.end_session(SessionEnd::Inspection);
        }
        self.write_order(task, Verb::Inspect, ConfigDrive::Keep).await
    }
}
