//! All nodes at once: who serves them, what happened to them lately, and which of them wait.

mod conductors;
mod happened;
mod picture;
mod waiting;

use crate::frame::{self, ESTATE};
use crate::html;
use crate::refusal::Refusal;
use crate::session::Visitor;
use axum::extract::{Extension, State};
use farrier_engine::Conductor;
use farrier_engine::evidence::estate::NamedNode;
use maud::{Markup, html};

/// `GET /page/estate`
pub(crate) async fn show(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
) -> Result<Markup, Refusal> {
    let estate = conductor.evidence().estate().await?;
    let now = conductor.now();
    let content = html! {
        p { "The figures are of the time since " (html::when(estate.since, now)) ". " a href=(ESTATE) { "Load again" } }
        (waiting::refusing(&conductor, now).await?)
        (waiting::longest(&conductor, now).await?)
        (happened::failures(&estate, now))
        (happened::deployments(&estate, now))
        (happened::steps(&estate))
        (happened::states(&estate))
        (conductors::all(&conductor, now).await?)
    };
    Ok(frame::page("Estate", Some(&visitor), &content))
}

/// The way to a node.
fn link(node: &NamedNode) -> Markup {
    html! { a href=(format!("/page/nodes/{}", node.uuid)) { (html::text(&node.label)) } }
}
