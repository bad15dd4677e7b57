//! What each page of a node has above its content.

use crate::session::Visitor;
use crate::{frame, html};
use farrier_conductor::model::Node;
use maud::{Markup, html};
use time::OffsetDateTime;

/// The pages of a node: the end of each path, and its name.
const PAGES: [(&str, &str); 5] = [
    ("", "Overview"),
    ("/explanation", "Ask the machine"),
    ("/hardware", "Hardware"),
    ("/interfaces", "Interfaces"),
    ("/history", "History"),
];

/// A page of a node. `path` is the end of its own path.
pub(super) fn page(
    visitor: &Visitor,
    node: &Node,
    now: OffsetDateTime,
    path: &str,
    content: &Markup,
) -> Markup {
    let address = |path: &str| format!("/page/nodes/{}{path}", node.uuid);
    let whole = html! {
        nav.parts aria-label="Pages of the node" {
            @for (end, name) in PAGES {
                a href=(address(end)) aria-current=[(end == path).then_some("page")] { (name) }
            }
            a href=(address(path)) { "Load again" }
        }
        p.standing {
            (html::state(node.provision_state))
            " since " (html::when(node.provision_updated_at, now))
            @if node.provision_state.needs_operator(node.maintenance) { " " strong.mark { "Needs an operator" } }
        }
        (content)
    };
    frame::page(&node.label(), Some(visitor), &whole)
}
