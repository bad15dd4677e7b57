//! What operators ask the interfaces of a node for by themselves, outside of any operation.

use crate::conductor::Machines;
use crate::error::Error;
use crate::evidence::console_log::{self, ConsolePart};
use farrier_conductor::hardware_type::Validity;
use farrier_conductor::interfaces::{
    BootDeviceSetting, ConsoleAccess, InterfaceError, VendorMethod, VirtualMedium,
};
use farrier_conductor::model::InterfaceKind::{self, Console, Management, Network, Vendor};
use farrier_conductor::model::{BootDevice, BootMode, Node};
use farrier_conductor::task::act::Call;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// Longest time that an interface may take while a client waits for the answer.
const LIMIT: Duration = Duration::from_secs(60);

/// Longest wait for a change of networks: each agent on a network card may take minutes (section 9.9).
const NETWORK_LIMIT: Duration = Duration::from_secs(600);

/// What an interface answers while a client waits.
pub(crate) async fn in_time<T>(
    node: &Node,
    kind: InterfaceKind,
    method: &'static str,
    answer: impl Future<Output = Result<T, InterfaceError>>,
) -> Result<T, Error> {
    Ok(Call::of(node, kind, method).answer(LIMIT, answer).await?)
}

impl Machines {
    /// What each interface of the node with this name or identity says about it.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`].
    pub async fn validate(&self, id: &str) -> Result<BTreeMap<InterfaceKind, Validity>, Error> {
        let mut node = self.0.find(id).await?.node;
        if let Err(reason) = self.0.check_driven(&node) {
            let refused = Validity { result: Some(false), reason: Some(reason.to_string()) };
            return Ok(InterfaceKind::ALL.iter().map(|kind| (*kind, refused.clone())).collect());
        }
        // An interface that cannot be resolved is reported by its validation.
        self.0.services().choose_deploy(&mut node).unwrap_or_default();
        Ok(self.0.services().hardware.validate(&node).await)
    }

    /// The keys of `driver_info` that a hardware type reads, with what they mean.
    ///
    /// # Errors
    ///
    /// [`Unresolved`](Error::Task) when there is no such type.
    pub fn properties(&self, hardware_type: &str) -> Result<BTreeMap<&'static str, &'static str>, Error> {
        Ok(self.0.services().hardware.properties(hardware_type)?)
    }

    /// The keys of a RAID volume that operators may set for nodes of a hardware type, with what they mean.
    ///
    /// # Errors
    ///
    /// [`Unresolved`](Error::Task) when there is no such type.
    pub fn logical_disk_properties(
        &self,
        hardware_type: &str,
    ) -> Result<BTreeMap<&'static str, &'static str>, Error> {
        Ok(self.0.services().hardware.logical_disk_properties(hardware_type)?)
    }

    /// The names of the hardware types that there are.
    pub fn hardware_types(&self) -> Vec<&str> {
        self.0.services().hardware.composition.hardware_types()
    }

    /// The interface of a kind that nodes of a hardware type have that choose none, and all that they may have.
    pub fn interfaces_of(&self, hardware_type: &str, kind: InterfaceKind) -> (Option<&str>, Vec<&str>) {
        self.0.services().hardware.composition.interfaces_of(hardware_type, kind)
    }

    /// What the machine of a node starts from.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Interface`](Error::Task).
    pub async fn boot_device(&self, id: &str) -> Result<BootDeviceSetting, Error> {
        let node = self.0.driven(id).await?;
        let management = self.0.services().hardware.management(&node)?;
        in_time(&node, Management, "get_boot_device", management.get_boot_device(&node)).await
    }

    /// The boot devices that the machine of a node supports.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Unresolved`](Error::Task).
    pub async fn boot_devices(&self, id: &str) -> Result<Vec<BootDevice>, Error> {
        let node = self.0.driven(id).await?;
        Ok(self.0.services().hardware.management(&node)?.get_supported_boot_devices(&node))
    }

    /// Has the machine of a node start from a device, once or from now on.
    ///
    /// # Errors
    ///
    /// [`Interface`](Error::Task), [`Error::Store`] when a conductor works on the node.
    pub async fn set_boot_device(&self, id: &str, device: BootDevice, persistent: bool) -> Result<(), Error> {
        let task = self.0.driven_task(id).await?;
        let management = self.0.services().hardware.management(&task.node)?;
        task.hold().await?;
        in_time(
            &task.node,
            Management,
            "set_boot_device",
            management.set_boot_device(&task.node, device, persistent),
        )
        .await?;
        task.leave().await
    }

    /// Has the machine of a node start by the boot sector or by UEFI.
    ///
    /// # Errors
    ///
    /// [`Invalid`](Error::Task) for a mode that it does not have, and as [`Self::set_boot_device`].
    pub async fn set_boot_mode(&self, id: &str, mode: BootMode) -> Result<(), Error> {
        let mut task = self.0.driven_task(id).await?;
        let management = self.0.services().hardware.management(&task.node)?;
        let supported = management.get_supported_boot_modes(&task.node);
        if !supported.contains(&mode) {
            let supported: Vec<_> = supported.iter().map(|mode| mode.as_str()).collect();
            let (mode, supported) = (mode.as_str(), supported.join(", "));
            let reason = format!("the BMC cannot set the boot mode {mode}; it supports: {supported}");
            return Err(Error::invalid("boot_mode", reason));
        }
        task.hold().await?;
        in_time(&task.node, Management, "set_boot_mode", management.set_boot_mode(&task.node, mode)).await?;
        task.node.boot_mode = Some(mode.as_str().to_owned());
        task.finish().await
    }

    /// Has the machine of a node start only what is signed, or anything.
    ///
    /// # Errors
    ///
    /// As [`Self::set_boot_device`].
    pub async fn set_secure_boot(&self, id: &str, on: bool) -> Result<(), Error> {
        let mut task = self.0.driven_task(id).await?;
        let management = self.0.services().hardware.management(&task.node)?;
        task.hold().await?;
        in_time(
            &task.node,
            Management,
            "set_secure_boot_state",
            management.set_secure_boot_state(&task.node, on),
        )
        .await?;
        task.node.secure_boot = Some(on);
        task.finish().await
    }

    /// What is in the virtual drives of a node's machine.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Interface`](Error::Task).
    pub async fn virtual_media(&self, id: &str) -> Result<Vec<VirtualMedium>, Error> {
        let node = self.0.driven(id).await?;
        let management = self.0.services().hardware.management(&node)?;
        in_time(&node, Management, "get_virtual_media", management.get_virtual_media(&node)).await
    }

    /// Has a virtual drive of a node's machine hold the medium at a URL.
    ///
    /// # Errors
    ///
    /// As [`Self::set_boot_device`].
    pub async fn attach_virtual_media(&self, id: &str, drive: BootDevice, url: &str) -> Result<(), Error> {
        let task = self.0.driven_task(id).await?;
        let management = self.0.services().hardware.management(&task.node)?;
        task.hold().await?;
        in_time(
            &task.node,
            Management,
            "attach_virtual_media",
            management.attach_virtual_media(&task.node, drive, url),
        )
        .await?;
        task.leave().await
    }

    /// Empties virtual drives of a node's machine: these, or all where none is named.
    ///
    /// # Errors
    ///
    /// As [`Self::set_boot_device`].
    pub async fn detach_virtual_media(&self, id: &str, drives: &[BootDevice]) -> Result<(), Error> {
        let task = self.0.driven_task(id).await?;
        let management = self.0.services().hardware.management(&task.node)?;
        task.hold().await?;
        in_time(
            &task.node,
            Management,
            "detach_virtual_media",
            management.detach_virtual_media(&task.node, drives),
        )
        .await?;
        task.leave().await
    }

    /// How users reach the serial console of a node's machine; nothing while it is closed to them.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Interface`](Error::Task).
    pub async fn console_access(&self, id: &str) -> Result<Option<ConsoleAccess>, Error> {
        let node = self.0.driven(id).await?;
        if !node.console_enabled {
            return Ok(None);
        }
        self.0.check_led(&node)?;
        let console = self.0.services().hardware.console(&node)?;
        in_time(&node, Console, "get_console", console.get_console(&node)).await.map(Some)
    }

    /// Opens the serial console of a node's machine to its users, or closes it.
    ///
    /// # Errors
    ///
    /// As [`Self::set_boot_device`].
    pub async fn set_console(&self, id: &str, enabled: bool) -> Result<(), Error> {
        let mut task = self.0.driven_task(id).await?;
        self.0.check_led(&task.node)?;
        let console = self.0.services().hardware.console(&task.node)?;
        task.hold().await?;
        match enabled {
            true => in_time(&task.node, Console, "start_console", console.start_console(&task.node)).await?,
            false => in_time(&task.node, Console, "stop_console", console.stop_console(&task.node)).await?,
        }
        self.0.services().consoles.note(task.node.uuid, enabled);
        task.node.console_enabled = enabled;
        task.finish().await
    }

    /// What stands on the serial console of a node's machine from a place on, or at its end.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Unresolved`](Error::Task), and [`Invalid`](Error::Task) where nothing is kept of it.
    pub async fn console_part(&self, id: &str, from: Option<u64>) -> Result<ConsolePart, Error> {
        let node = self.0.driven(id).await?;
        self.0.check_led(&node)?;
        let file = self.0.services().hardware.console(&node)?.log_file(&node);
        let part = file.and_then(|file| console_log::part(&file, from).ok());
        let reason =
            "nothing is kept of it: open it, choose another console_interface, or power the machine on";
        part.ok_or_else(|| Error::invalid("console", reason))
    }

    /// Types something at the serial console of a node's machine, also while a conductor works on the node.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Interface`](Error::Task).
    pub async fn write_console(&self, id: &str, typed: &[u8]) -> Result<(), Error> {
        let node = self.0.driven(id).await?;
        self.0.check_led(&node)?;
        let console = self.0.services().hardware.console(&node)?;
        in_time(&node, Console, "write_console", console.write_console(&node, typed)).await
    }

    /// Interrupts what runs on the machine of a node.
    ///
    /// # Errors
    ///
    /// As [`Self::set_boot_device`].
    pub async fn inject_nmi(&self, id: &str) -> Result<(), Error> {
        let task = self.0.driven_task(id).await?;
        let management = self.0.services().hardware.management(&task.node)?;
        task.hold().await?;
        in_time(&task.node, Management, "inject_nmi", management.inject_nmi(&task.node)).await?;
        task.leave().await
    }

    /// The virtual interfaces of a node.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Interface`](Error::Task).
    pub async fn vifs(&self, id: &str) -> Result<Vec<String>, Error> {
        let node = self.0.driven(id).await?;
        let network = self.0.services().hardware.network(&node)?;
        in_time(&node, Network, "vif_list", network.vif_list(&node)).await
    }

    /// Attaches a virtual interface to a node.
    ///
    /// # Errors
    ///
    /// As [`Self::set_boot_device`].
    pub async fn attach_vif(&self, id: &str, vif: &Map<String, Value>) -> Result<(), Error> {
        let mut task = self.0.driven_task(id).await?;
        let network = self.0.services().hardware.network(&task.node)?;
        task.hold().await?;
        task.read_port_groups().await?;
        Call::of(&task.node, Network, "vif_attach")
            .answer(NETWORK_LIMIT, network.vif_attach(&mut task.node, vif))
            .await?;
        task.finish().await
    }

    /// Detaches a virtual interface from a node.
    ///
    /// # Errors
    ///
    /// As [`Self::set_boot_device`].
    pub async fn detach_vif(&self, id: &str, vif: &str) -> Result<(), Error> {
        let mut task = self.0.driven_task(id).await?;
        let network = self.0.services().hardware.network(&task.node)?;
        task.hold().await?;
        Call::of(&task.node, Network, "vif_detach")
            .answer(NETWORK_LIMIT, network.vif_detach(&mut task.node, vif))
            .await?;
        task.finish().await
    }

    /// The methods of a node's vendor interface.
    ///
    /// # Errors
    ///
    /// [`Error::NodeNotFound`], [`Unresolved`](Error::Task).
    pub async fn vendor_methods(&self, id: &str) -> Result<Vec<&'static VendorMethod>, Error> {
        let node = self.0.driven(id).await?;
        Ok(self.0.services().hardware.vendor(&node)?.methods().iter().collect())
    }

    /// Calls a method of a node's vendor interface.
    ///
    /// # Errors
    ///
    /// As [`Self::set_boot_device`].
    pub async fn call_vendor(&self, id: &str, method: &str, body: &Value) -> Result<Value, Error> {
        let task = self.0.driven_task(id).await?;
        let vendor = self.0.services().hardware.vendor(&task.node)?;
        task.hold().await?;
        let answer =
            in_time(&task.node, Vendor, "passthru", vendor.passthru(&task.node, method, body)).await?;
        task.leave().await?;
        Ok(answer)
    }
}
