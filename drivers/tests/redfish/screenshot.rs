//! What is on the screen of a machine, in the ways of those makers that show it. None of them is part of the schema:
//! a BMC that has not got it shows nothing.

use crate::stage::{Stage, settings};
use crate::stand_in::Mockup;
use axum::http::Method;
use farrier_conductor::interfaces::{InterfaceError, ManagementInterface};
use farrier_drivers::redfish::RedfishSettings;
use serde_json::{Value, json};
use std::time::Duration;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n no bootable device";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0 no bootable device";

/// The machine of the iRMC, and its action.
const IRMC: &str = "/redfish/v1/Systems/0";
const IRMC_TARGET: &str = "/redfish/v1/Systems/0/Actions/Oem/FTSComputerSystem.Screenshot";
const IRMC_INFO: &str = "/redfish/v1/Systems/0/Oem/ts_fujitsu/FTSComputerSystemScreenshotActionInfo";

/// What the service for dumps of a Supermicro BMC may be told.
const SUPERMICRO_INFO: &str = "/redfish/v1/Oem/Supermicro/DumpService/CollectActionInfo";

/// An iRMC whose action is this one.
fn irmc(name: &str, action: &Value) -> Mockup {
    Mockup::read("fujitsu-irmc").with(IRMC, "/Actions/Oem", json!({name: action}))
}

/// The picture, and what the BMC was told for it.
async fn screen(stage: &Stage) -> (Result<Vec<u8>, InterfaceError>, Vec<Value>) {
    let picture = stage.management.get_screenshot(&stage.node).await;
    let sent = stage.bmc.bodies(&Method::POST).into_iter().filter(|body| body.get("UserName").is_none());
    (picture, sent.collect())
}

#[tokio::test]
async fn the_screen_is_had_in_the_way_of_each_maker() {
    let dump = |what: &str| json!({"DumpType": "ScreenCapture", "ActionType": what});
    let make = |then: &str| vec![json!({"FTSScreenshotType": "Make"}), json!({"FTSScreenshotType": then})];
    for (name, picture, expected) in [
        ("dell-idrac9", PNG, vec![json!({"FileType": "ServerScreenShot"})]),
        ("fujitsu-irmc", JPEG, make("Save")),
        ("supermicro-dumps", JPEG, vec![dump("Create"), dump("Download")]),
    ] {
        let stage = Stage::of(Mockup::read(name).showing(picture, Some(3))).await;
        let (read_picture, sent) = screen(&stage).await;
        assert_eq!(read_picture.unwrap(), picture, "{name}");
        assert_eq!(sent, expected, "{name}");
    }
}

/// The list is beside the action, behind it, or nowhere; the names are those of a version of the firmware.
#[tokio::test]
async fn an_irmc_is_understood_whatever_its_firmware_calls_the_action_and_its_parameter() {
    let of_schema = "http://ts.fujitsu.com/redfish-schemas/v1/FTSSchema.v1_0_0#FTSComputerSystem.Screenshot";
    let (list, old_list) =
        ("FTSScreenshotType@Redfish.AllowableValues", "ScreenshotType@Redfish.AllowableValues");
    for (name, action, parameter) in [
        (of_schema, json!({"target": IRMC_TARGET, list: ["Make"]}), "FTSScreenshotType"),
        (
            "#FTSComputerSystem.Screenshot",
            json!({"target": IRMC_TARGET, old_list: ["Make"]}),
            "ScreenshotType",
        ),
        (
            "#FTSComputerSystem.Screenshot",
            json!({"target": IRMC_TARGET, "@Redfish.ActionInfo": IRMC_INFO}),
            "FTSScreenshotType",
        ),
        ("#FTSComputerSystem.Screenshot", json!({"target": IRMC_TARGET}), "FTSScreenshotType"),
    ] {
        let stage = Stage::of(irmc(name, &action).showing(JPEG, Some(0))).await;
        let (picture, sent) = screen(&stage).await;
        assert_eq!(picture.unwrap(), JPEG, "{name} {action}");
        assert_eq!(sent, [json!({parameter: "Make"}), json!({parameter: "Save"})], "{name} {action}");
    }
}

/// Nobody is told anything.
#[tokio::test]
async fn a_bmc_that_has_none_of_these_ways_shows_nothing() {
    let has_no_pictures = Mockup::read("supermicro-dumps").with(
        SUPERMICRO_INFO,
        "/Parameters/0/AllowableValues",
        json!(["HGXLogDump"]),
    );
    let without = Mockup::read("fujitsu-irmc").with(IRMC, "/Actions/Oem", json!({}));
    let others = ["hpe-ilo5", "lenovo-xcc", "supermicro-x12", "openbmc-gb300", "dmtf-rackmount1"];
    for mockup in others.map(Mockup::read).into_iter().chain([has_no_pictures, without]) {
        let stage = Stage::of(mockup).await;
        let (none, sent) = screen(&stage).await;
        let none = none.unwrap_err();
        assert!(matches!(none, InterfaceError::Unsupported { .. }), "{none}");
        assert_eq!(sent, Vec::<Value>::new());
    }
}

#[tokio::test]
async fn what_is_no_picture_or_too_long_a_one_is_refused() {
    let long = [JPEG, &vec![0; 5 << 20]].concat();
    for name in ["dell-idrac9", "fujitsu-irmc", "supermicro-dumps"] {
        for (picture, expected) in [
            (&b"<html>log in</html>"[..], "has a screen that it shows as neither PNG nor JPEG; look whether"),
            (b"{}", "has a screen that it shows as neither PNG nor JPEG; look whether"),
            (b"", "has a screen that it shows as neither PNG nor JPEG; look whether"),
            (&long, "with more than 4194304 bytes; check"),
        ] {
            let stage = Stage::of(Mockup::read(name).showing(picture, Some(0))).await;
            let error = screen(&stage).await.0.unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }
}

/// One that is told again and again answers nothing for minutes.
#[tokio::test]
async fn an_irmc_that_makes_no_picture_is_asked_once() {
    let brief = RedfishSettings { screen_wait: Duration::from_millis(100), ..settings() };
    let stage = Stage::of_with(Mockup::read("fujitsu-irmc").showing(JPEG, None), brief).await;
    let (error, sent) = screen(&stage).await;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("accepted the order to take a screenshot, and reports that it has none after 0 s"),
        "{error}"
    );
    assert_eq!(sent, [json!({"FTSScreenshotType": "Make"})]);

    let off = Mockup::read("fujitsu-irmc").with(IRMC, "/PowerState", json!("Off"));
    let (error, sent) = screen(&Stage::of(off).await).await;
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("has a machine that is off and shows nothing; power the machine on"), "{error}");
    assert_eq!(sent, Vec::<Value>::new());
}
