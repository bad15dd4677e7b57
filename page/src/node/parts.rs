//! What each page of a node has above its content.

use super::timeline::done;
use crate::address::EVENTS;
use crate::address::part::STANDING;
use crate::frame::{self, Live};
use crate::html;
use crate::live::events::node_version;
use crate::nodes::rows;
use crate::refusal::Refusal;
use crate::session::Visitor;
use farrier_conductor::model::Node;
use farrier_engine::Conductor;
use farrier_engine::evidence::timeline::Timeline;
use maud::{Markup, html};
use time::OffsetDateTime;
use uuid::Uuid;

/// The ends of the paths of the pages that show changes of more than the state.
const OVERVIEW: &str = "";
const TIMELINE: &str = "/timeline";

/// The pages of a node: the end of each path, and its name.
const PAGES: [(&str, &str); 7] = [
    (OVERVIEW, "Overview"),
    (TIMELINE, "Timeline"),
    ("/explanation", "Ask the machine"),
    ("/hardware", "Hardware"),
    ("/interfaces", "Interfaces"),
    ("/history", "History"),
    ("/logs", "Logs and console"),
];

/// A node as its pages show it.
pub(super) struct NodePage {
    pub(super) node: Node,
    pub(super) timeline: Timeline,
    pub(super) now: OffsetDateTime,
    /// The version of its row in the list.
    pub(super) row: String,
    /// The version of its state and its progress.
    pub(super) version: String,
}

impl NodePage {
    /// Reads the node with this name or identity. The version is read first: what changes meanwhile has another one.
    pub(super) async fn open(conductor: &Conductor, id: &str) -> Result<Self, Refusal> {
        let uuid = match id.parse::<Uuid>() {
            Ok(uuid) => uuid,
            Err(_) => conductor.find(id).await?.node.uuid,
        };
        let row = rows::of(conductor, &[uuid]).await?;
        let row = row.first().map(|row| row.version_of_node().to_string()).unwrap_or_default();
        let version = node_version(conductor, uuid, &row);
        let node = conductor.node(&uuid.to_string()).await?;
        let timeline = conductor.evidence().timeline(&uuid.to_string()).await?;
        Ok(Self { node, timeline, now: conductor.now(), row, version })
    }

    /// One of its pages. `path` is the end of its own path.
    pub(super) fn show(&self, visitor: &Visitor, path: &str, content: &Markup) -> Markup {
        let node = &self.node;
        let address = |path: &str| format!("/page/nodes/{}{path}", node.uuid);
        let whole = html! {
            nav.parts aria-label="Pages of the node" {
                @for (end, name) in PAGES {
                    a href=(address(end)) aria-current=[(end == path).then_some("page")] { (name) }
                }
                a href=(address(path)) { "Load again" }
            }
            (self.standing())
            (content)
        };
        let live = Live {
            events: format!("{EVENTS}?node={}", node.uuid),
            parts: None,
            // The others may ask a machine, and the state is on every page.
            page: Some(address(if path == OVERVIEW { OVERVIEW } else { TIMELINE })),
        };
        frame::live_page(&node.label(), visitor, &live, &whole)
    }

    /// The state of the node, and how far its operation is.
    fn standing(&self) -> Markup {
        let node = &self.node;
        let phase = self.timeline.current();
        let step = phase.and_then(|phase| phase.steps.last()).filter(|step| step.ended_at.is_none());
        html! {
            p #(STANDING) .standing data-version=(self.version) {
                (html::state(node.provision_state))
                " since " (html::when(node.provision_updated_at, self.now))
                @if node.provision_state.needs_operator(node.maintenance) { " " strong.mark { "Needs an operator" } }
                @if let Some(step) = step { ", step " (html::text(&step.step)) }
                @if let Some(percent) = phase.and_then(|phase| phase.percent).filter(|_| step.is_some()) { ": " (done(percent)) }
            }
        }
    }
}
