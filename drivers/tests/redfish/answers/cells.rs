//! One wrong answer of a BMC, whatever it is asked for.

use super::sequence::{Sequence, has_medium, impatient};
use crate::stage::Stage;
use crate::stand_in::{Mockup, StandIn};
use crate::wrong_answers::cells::{Operation, one_answer_is_wrong as one_is_wrong};
use crate::wrong_answers::http::Wrong;
use farrier_conductor::interfaces::{InterfaceError, ManagementInterface, PowerInterface};
use farrier_conductor::model::{BootDevice, PowerState};
use serde_json::json;

/// The BMCs whose replies were recorded or published.
const MOCKUPS: [&str; 14] = [
    "dell-idrac10",
    "dell-idrac9",
    "dmtf-rackmount1",
    "fujitsu-irmc",
    "hpe-cray-ex235a",
    "hpe-ilo5",
    "hpe-ilo6",
    "hpe-ilo7",
    "lenovo-se450",
    "lenovo-xcc",
    "nokia-ami",
    "openbmc-gb300",
    "supermicro-x10",
    "supermicro-x12",
];

/// Something that is done to a machine whose BMC is our own, or has the replies of another.
#[derive(Debug, Clone, Copy)]
struct Done {
    mockup: Option<&'static str>,
    sequence: Sequence,
}

impl Operation for Done {
    type Stage = Stage;
    type Wrong = Wrong;

    fn subject(self) -> &'static str {
        self.mockup.unwrap_or("own")
    }

    fn name(self) -> &'static str {
        self.sequence.name()
    }

    /// Not every BMC that was recorded has drives or boot devices.
    fn may_fail_with_right_answers(self) -> bool {
        self.mockup.is_some()
    }

    async fn prepare(self) -> Result<Stage, InterfaceError> {
        let mut stage = match self.mockup {
            None => Stage::at(StandIn::start([]).await, None, impatient()),
            Some(name) => Stage::of_with(Mockup::read(name), impatient()).await,
        };
        // Nothing is encrypted here, and each cell would read the certificates of all authorities.
        stage.node.driver_info.insert("redfish_verify_ca".into(), json!(false));
        self.sequence.prepare(&stage).await?;
        stage.power.shut_down().await;
        Ok(stage)
    }

    async fn run(self, stage: &mut Stage) -> Result<(), InterfaceError> {
        self.sequence.run(stage).await
    }

    fn asked(stage: &Stage) -> Vec<String> {
        stage.bmc.spoiler.asked()
    }

    fn spoil(stage: &Stage, wrong: Option<(usize, Wrong)>) {
        stage.bmc.spoiler.spoil(wrong);
    }

    fn names(wrong: Wrong, request: &str, error: &str) -> bool {
        let says = |parts: &[&str]| parts.iter().any(|part| error.contains(part));
        let path = request.rsplit(' ').next().unwrap_or_default();
        match wrong {
            Wrong::Status(401) if says(&["refuses user"]) => true,
            // The number of a port may hold the same digits.
            Wrong::Status(status) => says(&[&format!(" {status} "), &format!("({status} ")]),
            Wrong::Silence | Wrong::Late => says(&["not within"]) && says(&[path]),
            Wrong::Closed => says(&["does not answer"]) && says(&[path]),
            Wrong::Page | Wrong::Half => {
                says(&["what is no JSON", "what is no resource", "a session that has no token"])
            }
            Wrong::Empty => says(&["what is no resource", "a session that has no token"]),
            Wrong::Packed => false,
        }
    }

    async fn check(self, stage: &mut Stage, has_succeeded: bool) -> Result<(), String> {
        if !has_succeeded {
            return Ok(());
        }
        let Stage { node, power, management, .. } = stage;
        let power = async |wanted: PowerState| match power.power_state(node).await {
            Ok(state) if state == wanted => Ok(()),
            other => Err(format!("the machine is not {wanted}: {other:?}")),
        };
        let device = async |wanted: BootDevice| match management.get_boot_device(node).await {
            Ok(now) if now.device.is_none_or(|device| device == wanted) => Ok(()),
            other => Err(format!("the machine does not start from {wanted}: {other:?}")),
        };
        match self.sequence {
            Sequence::PowerOn | Sequence::Reboot => power(PowerState::On).await,
            Sequence::PowerOff => power(PowerState::Off).await,
            Sequence::BootFromCd => device(BootDevice::Cdrom).await,
            Sequence::BootFromDisk => device(BootDevice::Disk).await,
            Sequence::Media if has_medium(stage).await => Err("a medium is left in its drive".to_owned()),
            Sequence::Media | Sequence::Manage | Sequence::Sensors | Sequence::EventLog => Ok(()),
        }
    }

    async fn left(self, stage: Stage, wrong: Wrong, request: &str) -> Result<(), String> {
        stage.power.shut_down().await;
        // Nobody knows of a session whose beginning was answered too late.
        let unknown = usize::from(wrong == Wrong::Late && request.ends_with("/Sessions"));
        match stage.bmc.inner().open_sessions() {
            open if open <= unknown => Ok(()),
            open => Err(format!("{open} sessions are left")),
        }
    }
}

#[tokio::test]
async fn one_answer_is_wrong() {
    let bmcs = [None].into_iter().chain(MOCKUPS.map(Some));
    let all = bmcs.flat_map(|mockup| Sequence::ALL.map(|sequence| Done { mockup, sequence }));
    let usual = Sequence::USUAL.map(|sequence| Done { mockup: None, sequence });
    one_is_wrong(all.collect(), usual.to_vec()).await;
}
