//! The boot interface `ipxe`: firmware loads a script from the conductor, and by that kernel and ramdisk (sections 6.5
//! and 6.6).
//!
//! DHCP names the URL of `boot.ipxe`, which asks for the script of the machine by the boot configuration API (section
//! 7). The parameters of the kernel hold no token, since anybody on the network could read it.

use super::images::{self, Images};
use super::templates::{Template, Templates};
use async_trait::async_trait;
use farrier_conductor::interfaces::{
    BootCapability, BootContext, BootInterface, Interface, InterfaceError, Properties,
};
use farrier_conductor::model::{BootDevice, Node};
use farrier_media::{KernelParameterError, KernelParameters};
use minijinja::context;
use std::sync::Arc;
use std::time::Duration;

/// The name of the script.
const SCRIPT: &str = "boot.ipxe";
/// How often a machine tries to load kernel and ramdisk.
const TRIES: u8 = 10;
/// In a node's parameters, what the conductor has configured.
const DEFAULT: &str = "%default%";

/// Boots machines by iPXE.
#[derive(Debug)]
pub struct Ipxe {
    templates: Arc<Templates>,
    kernel_append_params: KernelParameters,
    timeout: Option<Duration>,
}

impl Ipxe {
    /// With these templates; machines load for as long as it takes.
    pub fn new(templates: Arc<Templates>) -> Self {
        Self { templates, kernel_append_params: KernelParameters::default(), timeout: None }
    }

    /// Kernel parameters of nodes without any of their own (`[pxe]kernel_append_params`).
    #[must_use]
    pub fn kernel_append_params(self, kernel_append_params: KernelParameters) -> Self {
        Self { kernel_append_params, ..self }
    }

    /// How long kernel and ramdisk may each take to load before a machine tries again (`[pxe]ipxe_timeout`).
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: (!timeout.is_zero()).then_some(timeout), ..self }
    }

    /// What the kernel is told: the node's own words, or else the configured ones, and then the conductor's.
    fn parameters(&self, node: &Node, conductor: &str) -> Result<KernelParameters, InterfaceError> {
        let own = node.driver_info.get("kernel_append_params").and_then(|value| value.as_str());
        let own = own.unwrap_or(DEFAULT).replace(DEFAULT, &self.kernel_append_params.to_string());
        let refused = |error: KernelParameterError| {
            InterfaceError::driver_info("kernel_append_params", error.to_string())
        };
        let own: KernelParameters = own.parse().map_err(refused)?;
        own.followed_by(&conductor.parse().map_err(refused)?).map_err(refused)
    }

    fn script(&self, node: &Node, conductor: &str) -> Result<String, InterfaceError> {
        let Images { kernel, ramdisk } = Images::of_agent(node)?;
        let parameters = self.parameters(node, conductor)?.to_string();
        let timeout =
            self.timeout.map(|timeout| format!(" --timeout {}", timeout.as_millis())).unwrap_or_default();
        let values = context! { kernel, ramdisk, parameters, timeout, tries => TRIES };
        self.templates.render(Template::IpxeConfig, values).map_err(InterfaceError::driver)
    }
}

#[async_trait]
impl Interface for Ipxe {
    fn get_properties(&self) -> Properties {
        images::KEYS
    }

    async fn validate(&self, node: &Node) -> Result<(), InterfaceError> {
        if node.ports.is_empty() {
            return Err(InterfaceError::invalid(
                "ports",
                "there is none, so no firmware can be known by its address; create one",
            ));
        }
        self.script(node, "").map(drop)
    }
}

#[async_trait]
impl BootInterface for Ipxe {
    fn capabilities(&self) -> &[BootCapability] {
        &[BootCapability::IpxeBoot, BootCapability::PxeBoot]
    }

    async fn prepare_ramdisk(
        &self,
        boot: BootContext<'_>,
        parameters: &KernelParameters,
    ) -> Result<(), InterfaceError> {
        self.script(boot.node, &parameters.to_string())?;
        boot.set_boot_device(BootDevice::Pxe, false).await
    }

    async fn clean_up_ramdisk(&self, _boot: BootContext<'_>) -> Result<(), InterfaceError> {
        Ok(())
    }

    async fn validate_rescue(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }

    async fn validate_inspection(&self, node: &Node) -> Result<(), InterfaceError> {
        self.validate(node).await
    }

    async fn get_boot_config(&self, node: &Node, name: &str) -> Result<Option<String>, InterfaceError> {
        match &node.driver_internal_info.ramdisk_parameters {
            Some(parameters) if name == SCRIPT => self.script(node, parameters).map(Some),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use farrier_conductor::clock::{Clock, SystemClock};
    use farrier_conductor::model::NewNode;
    use serde_json::{Value, json};

    /// A node with one network card.
    pub(in super::super) fn node(info: &Value) -> Node {
        let new = NewNode {
            name: Some("n1".into()),
            driver: "qemu".into(),
            driver_info: info.as_object().unwrap().clone().into(),
            ports: vec!["52:54:00:00:00:01".parse().unwrap()],
            ..NewNode::default()
        };
        Node::enrol(new, SystemClock.now())
    }

    fn ipxe() -> Ipxe {
        Ipxe::new(Arc::new(Templates::load(None).unwrap()))
            .kernel_append_params("nofb vga=normal".parse().unwrap())
    }

    fn images(more: &Value) -> Value {
        let mut info = json!({"deploy_kernel": "http://h/k", "deploy_ramdisk": "http://h/r"});
        info.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        info
    }

    #[tokio::test]
    async fn a_script_is_there_while_the_ramdisk_is_to_be_booted() {
        let mut node = node(&images(&json!({})));
        assert_eq!(ipxe().get_boot_config(&node, SCRIPT).await.unwrap(), None);
        node.driver_internal_info.ramdisk_parameters = Some("ipa-api-url=http://192.0.2.5:6385".into());
        for name in ["boot.ipxx", "config", "../boot.ipxe", ""] {
            assert_eq!(ipxe().get_boot_config(&node, name).await.unwrap(), None, "{name}");
        }
        let script = ipxe().get_boot_config(&node, SCRIPT).await.unwrap().unwrap();
        let kernel = "kernel --name kernel http://h/k selinux=0 troubleshoot=0 text nofb vga=normal \
                      ipa-api-url=http://192.0.2.5:6385 BOOTIF=${mac} initrd=ramdisk || goto retry";
        assert!(script.lines().any(|line| line == kernel), "{script}");
        assert!(
            script.lines().any(|line| line == "initrd --name ramdisk http://h/r || goto retry"),
            "{script}"
        );
        assert!(script.contains("iseq ${try} 10 && goto failed"), "{script}");
    }

    #[test]
    fn s43_no_record_adds_a_word_that_ipxe_takes_for_its_own() {
        for (append, expected) in [
            (json!({}), Ok("nofb vga=normal x=1")),
            (json!({"kernel_append_params": "console=ttyS0"}), Ok("console=ttyS0 x=1")),
            (json!({"kernel_append_params": "%default% quiet"}), Ok("nofb vga=normal quiet x=1")),
            (json!({"kernel_append_params": "a\nshell"}), Err(())),
            (json!({"kernel_append_params": "a || shell"}), Err(())),
            (json!({"kernel_append_params": "a=${net0/mac}"}), Err(())),
        ] {
            let script = ipxe().script(&node(&images(&append)), "x=1");
            match expected {
                Ok(words) => {
                    let script = script.unwrap();
                    assert!(script.contains(&format!(" text {words} BOOTIF=")), "{script}");
                }
                Err(()) => {
                    let error = script.unwrap_err().to_string();
                    assert!(error.starts_with("driver_info kernel_append_params: "), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_timeout_holds_for_both_files() {
        let script = ipxe().timeout(Duration::from_secs(60)).script(&node(&images(&json!({}))), "").unwrap();
        assert_eq!(script.matches(" --timeout 60000 http://h/").count(), 2, "{script}");
    }

    #[tokio::test]
    async fn what_cannot_boot_is_refused() {
        let mut without_card = node(&images(&json!({})));
        without_card.ports.clear();
        for (node, part) in [
            (without_card, "ports: there is none"),
            (node(&json!({"deploy_ramdisk": "http://h/r"})), "driver_info deploy_kernel: is missing"),
        ] {
            let error = ipxe().validate(&node).await.unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
