//! Logs of ramdisks, pictures of screens, and the console of a machine. All of them may have secrets of an instance, so
//! readers get names alone.

use super::parts::NodePage;
use crate::html;
use crate::refusal::{Refusal, no_such_page};
use crate::session::Visitor;
use axum::extract::{Extension, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use farrier_access::{Denial, sees_consoles};
use farrier_conductor::interfaces::PictureFormat;
use farrier_engine::{Conductor, KeptLog};
use maud::{Markup, html};
use serde_json::Value;
use time::OffsetDateTime;

const HEAD: [&str; 3] = ["File", "Kept", "Size"];

/// `GET /page/nodes/{node}/logs`
pub(crate) async fn show(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Markup, Refusal> {
    let page = NodePage::open(&conductor, &id).await?;
    let uuid = page.node.uuid.to_string();
    let logs = conductor.evidence().logs(&uuid).await?;
    let may_read = sees_consoles(Some(&visitor.identity));
    let content = html! {
        (files(&uuid, &logs, may_read, page.now))
        h2 { "Console" }
        @if !may_read {
            p.notice { "The console and the content of the files need the role admin: they may have secrets." }
        } @else {
            @match conductor.machines().console_part(&uuid, None).await {
                Ok(part) => pre { (html::text(&part.text)) },
                Err(error) => p { (html::text(&error.to_string())) },
            }
        }
    };
    Ok(page.show(&visitor, "/logs", &content))
}

/// The newest first.
fn files(uuid: &str, logs: &[KeptLog], may_read: bool, now: OffsetDateTime) -> Markup {
    html! {
        table {
            caption { "Logs of ramdisks and pictures of screens, the newest first" }
            (html::head(&HEAD))
            tbody { @for log in logs.iter().rev() {
                tr {
                    th scope="row" {
                        @if may_read { a href=(format!("/page/nodes/{uuid}/logs/{}", log.name)) { (html::text(&log.name)) } }
                        @else { (html::text(&log.name)) }
                    }
                    td data-label=(HEAD[1]) { (html::when(log.kept_at, now)) }
                    td data-label=(HEAD[2]) { (html::size(Some(&Value::from(log.size_bytes)))) }
                }
            } }
        }
        @if logs.is_empty() { p { "No logs are kept of the node." } }
    }
}

/// `GET /page/nodes/{node}/logs/{name}`
pub(crate) async fn file(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    Path((id, name)): Path<(String, String)>,
) -> Result<impl IntoResponse, Refusal> {
    if !sees_consoles(Some(&visitor.identity)) {
        let reason = "Logs may have secrets: reading them needs the role admin.".to_owned();
        return Err(Denial::Forbidden { reason }.into());
    }
    let Some(content) = conductor.evidence().log(&id, &name).await? else { return Err(no_such_page().await) };
    let media_type = PictureFormat::of_file(&name).map_or("application/gzip", PictureFormat::media_type);
    Ok(([(CONTENT_TYPE, media_type)], content))
}
