//! One wrong answer of Keystone or Neutron, whatever they are asked for.

use crate::ports;
use crate::stage::{CARD, Stage, settings};
use crate::stand_in::StandIn;
use crate::wrong_answers::cells::{Operation, one_answer_is_wrong as one_is_wrong};
use crate::wrong_answers::http::{PATIENCE, Spoiler, Wrong};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use farrier_conductor::interfaces::{
    DhcpOption, DhcpProvider, Interface, InterfaceError, NetworkInterface, NetworkKind,
};
use farrier_conductor::model::ProvisionState;
use farrier_drivers::dhcp::neutron::NeutronDhcp;
use farrier_drivers::network::NeutronNetwork;
use farrier_drivers::openstack::OpenStackSettings;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The name of the note of a card with the virtual interface of an instance.
const TENANT: &str = "tenant_vif_port_id";

/// A stage, and what has answers be wrong there.
struct Spoilt {
    stage: Stage,
    spoiler: Spoiler,
    /// The virtual interface of an instance, and its own address.
    vif: (String, Value),
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Validate,
    /// Keystone has forgotten the token.
    Renew,
    Connect(NetworkKind),
    Disconnect(NetworkKind),
    /// Cleaning with the interface `flat`.
    ConnectFlat,
    DisconnectFlat,
    /// The card has an agent of its own.
    ConnectSmart,
    Attach,
    /// The machine is on the networks of its instance.
    AttachAndBind,
    Detach,
    Bind,
    Unbind,
    SetOptions,
    EndOptions,
    ReadAddresses,
}

const ALL: [Done; 17] = [
    Done::Validate,
    Done::Renew,
    Done::Connect(NetworkKind::Provisioning),
    Done::Disconnect(NetworkKind::Provisioning),
    Done::Connect(NetworkKind::Cleaning),
    Done::Disconnect(NetworkKind::Cleaning),
    Done::ConnectFlat,
    Done::DisconnectFlat,
    Done::ConnectSmart,
    Done::Attach,
    Done::AttachAndBind,
    Done::Detach,
    Done::Bind,
    Done::Unbind,
    Done::SetOptions,
    Done::EndOptions,
    Done::ReadAddresses,
];

/// Those that are tried each time.
const USUAL: [Done; 3] = [Done::Renew, Done::Connect(NetworkKind::Provisioning), Done::EndOptions];

impl Done {
    /// The operation whose ports these are.
    fn kind(self) -> NetworkKind {
        match self {
            Self::Connect(kind) | Self::Disconnect(kind) => kind,
            Self::ConnectFlat | Self::DisconnectFlat => NetworkKind::Cleaning,
            _ => NetworkKind::Provisioning,
        }
    }

    fn network(self, stage: &Stage) -> NeutronNetwork {
        match self {
            Self::ConnectFlat | Self::DisconnectFlat => stage.flat.clone(),
            _ => stage.network.clone(),
        }
    }
}

impl Operation for Done {
    type Stage = Spoilt;
    type Wrong = Wrong;

    fn subject(self) -> &'static str {
        "Keystone and Neutron"
    }

    fn name(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Renew => "renew the token",
            Self::Connect(NetworkKind::Cleaning) => "connect for cleaning",
            Self::Connect(_) => "connect for provisioning",
            Self::Disconnect(NetworkKind::Cleaning) => "disconnect after cleaning",
            Self::Disconnect(_) => "disconnect after provisioning",
            Self::ConnectFlat => "connect for cleaning, flat",
            Self::DisconnectFlat => "disconnect after cleaning, flat",
            Self::ConnectSmart => "connect a smart NIC for provisioning",
            Self::Attach => "attach a virtual interface",
            Self::AttachAndBind => "attach a virtual interface to an instance that runs",
            Self::Detach => "detach a virtual interface",
            Self::Bind => "bind the virtual interfaces of an instance",
            Self::Unbind => "unbind the virtual interfaces of an instance",
            Self::SetOptions => "set DHCP options",
            Self::EndOptions => "remove DHCP options",
            Self::ReadAddresses => "read addresses",
        }
    }

    async fn prepare(self) -> Result<Spoilt, InterfaceError> {
        let (cloud, spoiler) = cloud().await;
        let impatient = OpenStackSettings { request_timeout: PATIENCE, ..settings() };
        let mut stage = Stage::at(cloud, impatient);
        let (network, dhcp) = (self.network(&stage), dhcp(&stage));
        let vif = stage.foreign(json!({"network_id": "net-1"}));
        let own = stage.port(&vif)["mac_address"].clone();
        let node = &mut stage.node;
        match self {
            Self::Validate | Self::Connect(_) | Self::ConnectFlat | Self::Attach => {}
            Self::Renew => {
                network.validate(node).await?;
                stage.cloud.inner().forget();
                return Ok(Spoilt { stage, spoiler, vif: (vif, own) });
            }
            Self::ConnectSmart => {
                let link = json!({"hostname": "nic7", "port_id": "rep0-0"});
                node.ports[0].is_smartnic = true;
                node.ports[0].local_link_connection = link.as_object().unwrap().clone();
                stage.cloud.inner().agents.push(json!({"host": "nic7", "alive": true}));
            }
            Self::AttachAndBind => node.provision_state = ProvisionState::Active,
            Self::Disconnect(kind) => network.add_network(node, kind).await?,
            Self::DisconnectFlat => network.add_network(node, NetworkKind::Cleaning).await?,
            Self::Detach | Self::Bind => network.vif_attach(node, &wish(&vif)).await?,
            Self::Unbind => {
                network.vif_attach(node, &wish(&vif)).await?;
                network.configure_tenant_networks(node).await?;
            }
            Self::SetOptions | Self::ReadAddresses => network.add_network(node, self.kind()).await?,
            Self::EndOptions => {
                network.add_network(node, self.kind()).await?;
                dhcp.update_dhcp_opts(node, &options()).await?;
            }
        }
        Ok(Spoilt { stage: stage.without_token(impatient), spoiler, vif: (vif, own) })
    }

    async fn run(self, spoilt: &mut Spoilt) -> Result<(), InterfaceError> {
        let (network, dhcp) = (self.network(&spoilt.stage), dhcp(&spoilt.stage));
        let (node, (vif, _)) = (&mut spoilt.stage.node, &spoilt.vif);
        match self {
            Self::Validate | Self::Renew => network.validate(node).await,
            Self::Connect(_) | Self::ConnectFlat | Self::ConnectSmart => {
                network.add_network(node, self.kind()).await
            }
            Self::Disconnect(_) | Self::DisconnectFlat => network.remove_network(node, self.kind()).await,
            Self::Attach | Self::AttachAndBind => network.vif_attach(node, &wish(vif)).await,
            Self::Detach => network.vif_detach(node, vif).await,
            Self::Bind => network.configure_tenant_networks(node).await,
            Self::Unbind => network.unconfigure_tenant_networks(node).await,
            Self::SetOptions => dhcp.update_dhcp_opts(node, &options()).await,
            Self::EndOptions => dhcp.clean_dhcp_opts(node).await,
            Self::ReadAddresses => dhcp.get_ip_addresses(node).await.map(drop),
        }
    }

    /// What is attached cannot be attached again, and what is detached not be detached.
    async fn run_again(self, spoilt: &mut Spoilt) -> Result<(), InterfaceError> {
        let (network, (vif, _)) = (spoilt.stage.network.clone(), &spoilt.vif);
        let is_attached = !network.vif_list(&spoilt.stage.node).await?.is_empty();
        match self {
            Self::Attach | Self::AttachAndBind if is_attached => {
                network.vif_detach(&mut spoilt.stage.node, vif).await?;
            }
            Self::Detach if !is_attached => return Ok(()),
            _ => {}
        }
        self.run(spoilt).await
    }

    fn asked(spoilt: &Spoilt) -> Vec<String> {
        spoilt.spoiler.asked()
    }

    fn spoil(spoilt: &Spoilt, wrong: Option<(usize, Wrong)>) {
        spoilt.spoiler.spoil(wrong);
    }

    fn names(wrong: Wrong, request: &str, error: &str) -> bool {
        let says = |parts: &[&str]| parts.iter().any(|part| error.contains(part));
        let path = request.rsplit(' ').next().unwrap_or_default();
        says(&[path])
            && match wrong {
                Wrong::Status(status) => says(&[&format!("answered with {status} ")]),
                Wrong::Silence | Wrong::Late => says(&["not within"]),
                Wrong::Closed => says(&["is not answered"]),
                Wrong::Page | Wrong::Half => says(&["what is no JSON"]),
                Wrong::Empty => says(&["no list", "no port", "a token without"]),
                Wrong::Packed => false,
            }
    }

    async fn check(self, spoilt: &mut Spoilt, has_succeeded: bool) -> Result<(), String> {
        let (stage, (vif, own)) = (&spoilt.stage, &spoilt.vif);
        let kind = self.kind();
        let note = stage.note(0, &format!("{kind}_vif_port_id"));
        let own_ports = stage.ports(&format!("farrier-{kind}"));
        let is_none = note.is_none() && own_ports.is_empty();
        let port = stage.port(vif);
        let is_attached = stage.note(0, TENANT).as_ref() == Some(vif);
        let is_bound = port["binding:host_id"] == stage.node.uuid.to_string();
        let is_free = port["binding:host_id"] == "" && port["mac_address"] != CARD;
        let options = own_ports.first().map_or(&Value::Null, |(_, port)| &port["extra_dhcp_opts"]);
        let is_right = match (self, has_succeeded) {
            (Self::Validate | Self::Renew | Self::ReadAddresses, _) => true,
            (Self::Connect(_) | Self::ConnectFlat | Self::ConnectSmart, true) => {
                matches!(&own_ports[..], [(id, _)] if note.as_ref() == Some(id))
            }
            (Self::Connect(_) | Self::ConnectFlat | Self::ConnectSmart, false) => is_none,
            (Self::Disconnect(_) | Self::DisconnectFlat, true) => is_none,
            (Self::Attach, true) => is_attached && port["mac_address"] == CARD,
            (Self::AttachAndBind, true) => is_attached && is_bound && port["mac_address"] == CARD,
            (Self::Attach | Self::AttachAndBind, false) => {
                !is_attached && port["binding:host_id"] == "" && port["mac_address"] == *own
            }
            (Self::Detach, true) => !is_attached && is_free,
            (Self::Bind, true) => is_attached && is_bound,
            (Self::Unbind, true) => is_attached && is_free,
            (Self::SetOptions, true) => options.as_array().is_some_and(|options| options.len() == 1),
            (Self::EndOptions, true) => *options == json!([]),
            (_, false) => true,
        };
        match is_right {
            true => Ok(()),
            false => Err(format!("is not as it should be: note {note:?}, ports {own_ports:?}, {port}")),
        }
    }

    /// Nothing of ours is left once the machine is disconnected.
    async fn left(self, mut spoilt: Spoilt, _: Wrong, _: &str) -> Result<(), String> {
        let stage = &mut spoilt.stage;
        let removed = self.network(stage).remove_network(&mut stage.node, self.kind()).await;
        removed.map_err(|error| format!("it cannot be disconnected: {error}"))?;
        let ids: Vec<_> = stage.cloud.inner().ports.all.keys().cloned().collect();
        match &ids[..] {
            [vif] if *vif == spoilt.vif.0 => Ok(()),
            _ => Err(format!("ports are left: {ids:?}")),
        }
    }
}

/// A cloud, and what has its answers be wrong.
async fn cloud() -> (StandIn, Spoiler) {
    let spoiler = Spoiler::new(|status: StatusCode| -> Response {
        (status, ports::refusal("Sad", "wrong once").to_string()).into_response()
    });
    (StandIn::behind(|router| spoiler.before(router)).await, spoiler)
}

fn wish(vif: &str) -> Map<String, Value> {
    json!({"id": vif}).as_object().unwrap().clone()
}

fn dhcp(stage: &Stage) -> NeutronDhcp {
    NeutronDhcp::new(stage.neutron.clone(), Duration::ZERO)
}

fn options() -> [DhcpOption; 1] {
    [DhcpOption { name: "67".into(), value: "http://192.0.2.5/boot.ipxe".into(), ip_version: 4 }]
}

#[tokio::test]
async fn one_answer_is_wrong() {
    one_is_wrong(ALL.to_vec(), USUAL.to_vec()).await;
}

#[tokio::test]
async fn c11_packed_answers_are_unpacked() {
    let (cloud, spoiler) = cloud().await;
    spoiler.spoil_all(Wrong::Packed);
    Stage::at(cloud, settings()).neutron.network("stable").await.unwrap();
}
