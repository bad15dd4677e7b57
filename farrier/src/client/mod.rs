//! The operator's side of the REST interface, which is Ironic's, and of its extensions.

mod allocations;
mod answer;
mod conductors;
mod extension;
mod hardware;
mod history;
pub(crate) mod record;
mod workflows;

pub(crate) use allocations::{AllocationRecord, Wanted};
pub(crate) use conductors::ConductorState;
pub(crate) use workflows::{Workflow, Workflows};

use crate::access::{self, Connection};
use crate::client::record::{NodeRecord, PortRecord};
use crate::failure::{INVALID_OPTION, UNREADABLE_RESPONSE, coded};
use anyhow::Context;
use farrier_conductor::hardware_type::Validity;
use farrier_conductor::model::{InspectionData, InterfaceKind, MacAddress, PowerAction, split_code};
use farrier_engine::error::TAKEN;
use farrier_node_api::ERROR_CODE_HEADER;
use farrier_node_api::nodes::{MaintenanceRequest, PowerRequest, ProvisionRequest};
use reqwest::header::HeaderValue;
use reqwest::{Client, Method, StatusCode, Url};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

/// The version that is spoken.
const VERSION: &str = "1.110";

/// The last version whose new nodes are ready for instances at once.
const READY_VERSION: &str = "1.10";

/// Fields that it has already.
const READY_FIELDS: &[&str] = &["name", "driver", "driver_info", "properties"];

const VERSION_HEADER: &str = "X-OpenStack-Ironic-API-Version";

/// The interval between checks of a node during an operation.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What lists of nodes show.
const LIST_FIELDS: &[&str] = &[
    "uuid",
    "name",
    "instance_uuid",
    "power_state",
    "provision_state",
    "provision_updated_at",
    "maintenance",
    "fault",
    "reservation",
    "last_error",
    "clean_step",
    "deploy_step",
    "service_step",
    "driver_internal_info",
];

/// Nodes of one request of a list, and most such requests.
const PAGE: usize = 1000;
const MOST_PAGES: usize = 1000;

/// The node API of one conductor.
#[derive(Debug)]
pub(crate) struct NodeApi {
    http: Client,
    url: Url,
    has_credentials: bool,
}

#[derive(Deserialize)]
struct Nodes {
    nodes: Vec<NodeRecord>,
    /// The link to the next page.
    #[serde(default)]
    next: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Ports {
    ports: Vec<PortRecord>,
}

impl NodeApi {
    pub(crate) fn new(Connection { http, url, has_credentials }: Connection) -> Self {
        Self { http, url, has_credentials }
    }

    /// Creates a node with its ports: in the state `enroll`, or ready for instances at once.
    pub(crate) async fn create(
        &self,
        fields: Map<String, Value>,
        ports: &[MacAddress],
        is_enrolled: bool,
    ) -> anyhow::Result<NodeRecord> {
        for address in ports {
            self.check_free(address).await?;
        }
        let (first, later): (Map<_, _>, Map<_, _>) =
            fields.into_iter().partition(|(field, _)| is_enrolled || READY_FIELDS.contains(&field.as_str()));
        let version = if is_enrolled { VERSION } else { READY_VERSION };
        let request = self.http.post(self.path(&["nodes"])?).header(VERSION_HEADER, version);
        let node: NodeRecord = answer::read(&self.request(request.json(&first)).await?)?;
        let completed = self.complete(&node.uuid, later, ports).await;
        completed.with_context(|| {
            format!(
                "node {0} was created incompletely; delete it with `farrier node delete {0}`",
                node.label()
            )
        })?;
        self.show(&node.uuid).await
    }

    /// Gives a new node what belongs to it.
    async fn complete(
        &self,
        node: &str,
        fields: Map<String, Value>,
        ports: &[MacAddress],
    ) -> anyhow::Result<()> {
        if !fields.is_empty() {
            self.patch(node, fields.into_iter().map(|(field, value)| (format!("/{field}"), value))).await?;
        }
        for address in ports {
            let port = json!({"node_uuid": node, "address": address});
            self.send(Method::POST, &["ports"], Some(&port)).await?;
        }
        Ok(())
    }

    /// A machine that has a node already gets no second one.
    async fn check_free(&self, address: &MacAddress) -> anyhow::Result<()> {
        let mut url = self.path(&["ports"])?;
        url.set_query(Some(&format!("address={address}")));
        let ports: Ports = answer::read(&self.request(self.http.get(url)).await?)?;
        match ports.ports.is_empty() {
            true => Ok(()),
            false => Err(coded(
                TAKEN,
                format!(
                    "a port with MAC address {address} already exists; choose another address, or delete that port first"
                ),
            )),
        }
    }

    /// Sets fields, or what is in them, by their paths.
    pub(crate) async fn patch(
        &self,
        node: &str,
        values: impl IntoIterator<Item = (String, Value)>,
    ) -> anyhow::Result<()> {
        let set = |(path, value)| json!({"op": "add", "path": path, "value": value});
        let patch: Vec<_> = values.into_iter().map(set).collect();
        self.send(Method::PATCH, &["nodes", node], Some(&patch)).await.map(drop)
    }

    pub(crate) async fn list(&self) -> anyhow::Result<Vec<NodeRecord>> {
        let mut listed: Vec<NodeRecord> = Vec::new();
        for _ in 0..MOST_PAGES {
            let mut url = self.path(&["nodes"])?;
            let marker = listed.last().map_or_else(String::new, |node| format!("&marker={}", node.uuid));
            let fields = LIST_FIELDS.join(",");
            url.set_query(Some(&format!("sort_key=name&limit={PAGE}{marker}&fields={fields}")));
            let page: Nodes = answer::read(&self.request(self.http.get(url)).await?)?;
            let is_last = page.next.is_none() || page.nodes.is_empty();
            listed.extend(page.nodes);
            if is_last {
                return Ok(listed);
            }
        }
        let text = format!("the conductor lists more than {} nodes", PAGE * MOST_PAGES);
        Err(coded(UNREADABLE_RESPONSE, text))
    }

    pub(crate) async fn show(&self, node: &str) -> anyhow::Result<NodeRecord> {
        self.read(Method::GET, &["nodes", node], None::<&()>).await
    }

    /// The whole answer about a node.
    pub(crate) async fn describe(&self, node: &str) -> anyhow::Result<Value> {
        self.read(Method::GET, &["nodes", node], None::<&()>).await
    }

    pub(crate) async fn ports(&self, node: &str) -> anyhow::Result<Vec<PortRecord>> {
        Ok(self.read::<Ports>(Method::GET, &["nodes", node, "ports"], None::<&()>).await?.ports)
    }

    pub(crate) async fn validate(&self, node: &str) -> anyhow::Result<BTreeMap<InterfaceKind, Validity>> {
        self.read(Method::GET, &["nodes", node, "validate"], None::<&()>).await
    }

    pub(crate) async fn set_target_raid_config(
        &self,
        node: &str,
        target: &Map<String, Value>,
    ) -> anyhow::Result<()> {
        self.send(Method::PUT, &["nodes", node, "states", "raid"], Some(target)).await.map(drop)
    }

    pub(crate) async fn inventory(&self, node: &str) -> anyhow::Result<InspectionData> {
        self.read(Method::GET, &["nodes", node, "inventory"], None::<&()>).await
    }

    /// The node; nothing when it is gone.
    pub(crate) async fn look(&self, node: &str) -> anyhow::Result<Option<NodeRecord>> {
        let request = self.http.get(self.path(&["nodes", node])?);
        let body = self.find(request).await?;
        body.map(|body| answer::read(&body)).transpose()
    }

    pub(crate) async fn delete(&self, node: &str) -> anyhow::Result<()> {
        self.send(Method::DELETE, &["nodes", node], None::<&()>).await.map(drop)
    }

    pub(crate) async fn power(
        &self,
        node: &str,
        action: PowerAction,
        timeout: Option<NonZeroU64>,
    ) -> anyhow::Result<()> {
        let request = PowerRequest { target: action.as_str().to_owned(), timeout };
        self.send(Method::PUT, &["nodes", node, "states", "power"], Some(&request)).await.map(drop)
    }

    pub(crate) async fn provision(&self, node: &str, request: &ProvisionRequest) -> anyhow::Result<()> {
        self.send(Method::PUT, &["nodes", node, "states", "provision"], Some(request)).await.map(drop)
    }

    pub(crate) async fn begin_maintenance(&self, node: &str, reason: Option<String>) -> anyhow::Result<()> {
        let request = MaintenanceRequest { reason };
        self.send(Method::PUT, &["nodes", node, "maintenance"], Some(&request)).await.map(drop)
    }

    pub(crate) async fn end_maintenance(&self, node: &str) -> anyhow::Result<()> {
        self.send(Method::DELETE, &["nodes", node, "maintenance"], None::<&()>).await.map(drop)
    }

    async fn read<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&impl Serialize>,
    ) -> anyhow::Result<T> {
        let body = self.send(method, path, body).await?;
        answer::read(&body)
    }

    async fn send(
        &self,
        method: Method,
        path: &[&str],
        body: Option<&impl Serialize>,
    ) -> anyhow::Result<Vec<u8>> {
        self.send_to(method, self.path(path)?, body).await
    }

    async fn send_to(
        &self,
        method: Method,
        url: Url,
        body: Option<&impl Serialize>,
    ) -> anyhow::Result<Vec<u8>> {
        let request = self.http.request(method, url);
        self.request(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    async fn request(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Vec<u8>> {
        self.answer(request).await?.accepted()
    }

    /// As [`Self::request`]; nothing when there is no such node.
    async fn find(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Option<Vec<u8>>> {
        match self.answer(request).await? {
            Answer { status: StatusCode::NOT_FOUND, .. } => Ok(None),
            answer => answer.accepted().map(Some),
        }
    }

    async fn answer(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Answer> {
        let mut request = request.build()?;
        request.headers_mut().entry(VERSION_HEADER).or_insert(HeaderValue::from_static(VERSION));
        let answer = self.http.execute(request).await;
        let response = answer.map_err(|error| access::unreachable(&self.url, error))?;
        let status = response.status();
        let code = response.headers().get(ERROR_CODE_HEADER).and_then(|code| code.to_str().ok());
        let code = code.map(str::to_owned);
        let answer = Answer { status, code, body: answer::receive(response).await? };
        match access::advice(status, self.has_credentials) {
            Some(advice) => Err(coded(UNREADABLE_RESPONSE, format!("{advice}: {}", answer.fault()))),
            None => Ok(answer),
        }
    }

    /// Names go into the path escaped, whatever they hold.
    fn path(&self, parts: &[&str]) -> anyhow::Result<Url> {
        self.below("v1", parts)
    }

    fn below(&self, root: &str, parts: &[&str]) -> anyhow::Result<Url> {
        let mut url = self.url.clone();
        let mut segments = url.path_segments_mut().map_err(|()| {
            let text = format!("--url {} is not a usable base URL; give https://HOST:PORT", self.url);
            coded(INVALID_OPTION, text)
        })?;
        segments.pop_if_empty().push(root).extend(parts);
        drop(segments);
        Ok(url)
    }
}

/// An answer of the conductor.
struct Answer {
    status: StatusCode,
    /// The code of the error, when it is one.
    code: Option<String>,
    body: Vec<u8>,
}

impl Answer {
    /// The body, if the request was accepted.
    fn accepted(self) -> anyhow::Result<Vec<u8>> {
        match self.status.is_client_error() || self.status.is_server_error() {
            true => Err(coded(UNREADABLE_RESPONSE, self.fault())),
            false => Ok(self.body),
        }
    }

    /// The reason of the refusal, with the code of the error if a conductor sent one.
    fn fault(&self) -> String {
        let text = fault_text(&self.body);
        let text = text.unwrap_or_else(|| format!("the conductor answered {}", self.status));
        match &self.code {
            Some(code) if split_code(&text).1.is_none() => format!("{text} [{code}]"),
            _ => text,
        }
    }
}

/// The text of an error body: JSON inside JSON, with a key of its own where the version is refused.
fn fault_text(body: &[u8]) -> Option<String> {
    let outer: Value = answer::read(body).ok()?;
    let inner: Value = answer::read(outer.get("error_message")?.as_str()?.as_bytes()).ok()?;
    Some(inner.get("faultstring").or_else(|| inner.get("description"))?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped() {
        for base in ["http://h:1", "http://h:1/"] {
            let http = Client::builder().tls_certs_only([]).build().unwrap();
            let url = base.parse().unwrap();
            let api = NodeApi::new(Connection { http, url, has_credentials: false });
            assert_eq!(
                api.path(&["nodes", "a/../b?c"]).unwrap().as_str(),
                "http://h:1/v1/nodes/a%2F..%2Fb%3Fc"
            );
        }
    }

    #[test]
    fn the_text_of_a_fault_is_found() {
        let body = br#"{"error_message": "{\"faultcode\": \"Client\", \"faultstring\": \"no such node\"}"}"#;
        assert_eq!(fault_text(body).as_deref(), Some("no such node"));
        assert_eq!(fault_text(b"<html>"), None);
    }
}
