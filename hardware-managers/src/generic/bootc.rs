//! The step that has an operating system install itself from a container image (section 12.1).

use crate::container::bootc::Order;
use crate::error::StepError;
use crate::manager::{Argument, StepCall, StepDeclaration};
use farrier_protocol::step::Phase;
use serde_json::Value;

/// Installs onto the root disk. Its result is a text in the contract's words.
pub const INSTALL: StepDeclaration = StepDeclaration {
    step: "execute_bootc_install",
    interface: "deploy",
    priorities: &[(Phase::Deploy, 0), (Phase::Service, 0)],
    reboot_requested: false,
    abortable: &[],
    arguments: &[
        Argument {
            name: "image_source",
            description: "Image: oci://registry/path with a tag or digest",
            required: true,
        },
        Argument {
            name: "configdrive",
            description: "Config drive as base64 text of a gzip file, or its URL",
            required: false,
        },
        Argument {
            name: "oci_pull_secret",
            description: "Base64 of the credentials for the registry",
            required: false,
        },
    ],
    run: &install,
};

fn install(call: &StepCall<'_>) -> Result<Value, StepError> {
    let text = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let order = Order {
        image_source: text("image_source").unwrap_or_default(),
        instance_info: &call.node.instance_info,
        pull_secret: text("oci_pull_secret").filter(|secret| !secret.is_empty()),
        config_drive: text("configdrive"),
    };
    call.host.install_bootc(&order).map_err(StepError::Failed)
}
