//! What a node waits for, as its machine, its agent and its BMC say now. They may take some seconds.

use super::overview::explained;
use super::parts::NodePage;
use crate::html;
use crate::refusal::Refusal;
use crate::session::Visitor;
use axum::extract::{Extension, Path, State};
use farrier_access::sees_consoles;
use farrier_engine::Conductor;
use maud::{Markup, html};

/// `GET /page/nodes/{node}/explanation`
pub(crate) async fn show(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Markup, Refusal> {
    let page = NodePage::open(&conductor, &id).await?;
    let (node, now) = (&page.node, page.now);
    let explanation = conductor.evidence().explain(&node.uuid.to_string()).await?;
    let explanation = match sees_consoles(Some(&visitor.identity)) {
        true => explanation,
        false => explanation.without_console(),
    };
    let content = html! {
        p { "The conductor has asked the agent and the BMC of the machine." }
        (explained(&explanation, now))
        @if let Some(diagnosis) = &explanation.diagnosis {
            section aria-labelledby="diagnosis" {
                h2 #diagnosis { "Records of the machine" }
                @if !diagnosis.log.is_empty() {
                    h3 { "Event log of the BMC" }
                    ul { @for entry in &diagnosis.log {
                        li { @if let Some(at) = entry.at { (html::when(at, now)) " " } (html::text(&entry.said)) }
                    } }
                }
                @if !diagnosis.console.is_empty() {
                    h3 { "Console" }
                    pre { @for line in &diagnosis.console { (html::text(line)) "\n" } }
                }
                @if !diagnosis.missing.is_empty() {
                    h3 { "Not available" }
                    ul { @for missing in &diagnosis.missing { li { (html::text(missing)) } } }
                }
            }
        }
    };
    Ok(page.show(&visitor, "/explanation", &content))
}
