//! Inspection: what a ramdisk posts, and what operators read of it (contract 8.5).

use crate::ramdisk::lookup_reply;
use crate::ramdisk::spool::{Spool, Spooled};
use crate::wire::asked::Asked;
use crate::wire::body;
use crate::wire::reply::{Refusal, masked};
use crate::wire::routes::{everywhere, part};
use axum::extract::{DefaultBodyLimit, Extension, Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_LENGTH;
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use farrier_conductor::inventory::{LOGS, Report};
use farrier_conductor::untrusted::archive::{LogExtraction, Logs, Overrun, Place, Room};
use farrier_engine::Conductor;
use farrier_engine::Error;
use farrier_protocol::heartbeat::ApiVersion;
use farrier_protocol::json::{self, JsonError, Limits};
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::HashMap;
use uuid::Uuid;

/// The version of agents that name none.
const UNNAMED: ApiVersion = ApiVersion::v1(1);

/// First version that is answered like a lookup, and that may name the node.
const LIKE_LOOKUP: ApiVersion = ApiVersion::v1(84);

/// First version with inventories.
const INVENTORY: u16 = 81;

/// Longest report of a ramdisk, in bytes (Ironic's `max_json_body_size_inspection`): its logs are most of it (lesson S49).
const REPORT_LIMIT: usize = 16 << 20;

/// Limit of a report from an unidentified machine.
const ROOM: Room = Room { text: REPORT_LIMIT, logs: 4 << 20, depth: REPORT.depth };

/// What the values of a report may be.
const REPORT: Limits = Limits::USUAL;

/// Where its logs are.
const PLACE: Place = Place { key: LOGS, depth: Some(1) };

/// The route that ramdisks post to. What they post may be longer than anything else that they say.
pub(crate) fn ramdisk_routes() -> Router<Conductor> {
    everywhere([("/continue_inspection", post(continue_inspection).layer(DefaultBodyLimit::disable()))])
}

/// The route that operators read.
pub(crate) fn node_routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![("/nodes/{node}/inventory", part(INVENTORY, get(inventory)))]
}

/// A report identifies its machine only after it is read, so its size is bounded, and only a node that waits for it has it
/// read as values.
async fn continue_inspection(
    State(conductor): State<Conductor>,
    Extension(version): Extension<ApiVersion>,
    Query(parameters): Query<HashMap<String, String>>,
    request: Request,
) -> Result<(StatusCode, Json<Value>), Refusal> {
    if version != UNNAMED && version < LIKE_LOOKUP {
        return Err(Refusal::not_found());
    }
    let node_uuid = node_uuid(&parameters, version)?;
    let token = parameters.get("agent_token").cloned();
    let (text, logs) = receive(request).await?;
    let (text, identified) = text.examine(|text| Report::identified(text)).await;
    let claim = identified??.claim(node_uuid, token);
    let is_awaited = match conductor.ramdisks().awaits_report(&claim).await {
        Err(Error::LookupFailed) if conductor.ramdisks().may_discover(&claim).await? => false,
        awaited => awaited.map(|_| true)?,
    };
    let (_, report) = text.examine(read).await;
    let mut report = report?;
    report.logs = match logs {
        Logs::Archive(archive) if !archive.is_empty() => Some(archive),
        Logs::Archive(_) | Logs::None => None,
        Logs::Unusable => {
            tracing::warn!("the logs in an inspection report are no base64, or too long, and are not kept");
            None
        }
    };
    let like_lookup = version >= LIKE_LOOKUP;
    let answer = match is_awaited {
        true => conductor.ramdisks().continue_inspection(report, &claim, like_lookup).await?,
        false => conductor.ramdisks().discover(report).await?,
    };
    let reply = match like_lookup {
        true => lookup_reply(&conductor, answer),
        false => json!({"uuid": answer.node.uuid}),
    };
    Ok((StatusCode::ACCEPTED, Json(reply)))
}

fn read(text: &mut Spooled) -> Result<Report, Refusal> {
    let text = text.whole().map_err(unkept)?;
    Ok(Report::read(json::read(&text, &REPORT)?)?)
}

/// There is no room for what is posted.
fn unkept(error: std::io::Error) -> Refusal {
    tracing::error!(
        "an inspection report cannot be kept while it is read: {error}; look at the folder of temporary files"
    );
    Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "there is no room for the report now; send it again later")
}

/// The text of a report without its logs, and these.
async fn receive(request: Request) -> Result<(Spooled, Logs), Refusal> {
    let announced =
        request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > REPORT_LIMIT) {
        return Err(body::too_long(REPORT_LIMIT));
    }
    let (mut extraction, mut received) = (LogExtraction::new(PLACE, ROOM), 0);
    let mut spool = Spool::default();
    let mut parts = request.into_body().into_data_stream();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| body::too_long(REPORT_LIMIT))?;
        received += part.len();
        if received > REPORT_LIMIT {
            return Err(body::too_long(REPORT_LIMIT));
        }
        extraction.feed(&part).map_err(|overrun| match overrun {
            Overrun::TooLong => body::too_long(REPORT_LIMIT),
            Overrun::TooDeep => JsonError::TooDeep(ROOM.depth).into(),
        })?;
        spool.write(&extraction.take_text()).await.map_err(unkept)?;
    }
    let (text, logs) = extraction.end();
    spool.write(&text).await.map_err(unkept)?;
    Ok((spool.end().await.map_err(unkept)?, logs))
}

/// The node that a ramdisk says it runs on, which those of old do not know.
fn node_uuid(parameters: &HashMap<String, String>, version: ApiVersion) -> Result<Option<Uuid>, Refusal> {
    match parameters.get("node_uuid") {
        None => Ok(None),
        Some(_) if version < LIKE_LOOKUP => Err(Refusal::not_found()),
        Some(text) => {
            let uuid = text.parse();
            uuid.map(Some).map_err(|error| Refusal::bad_request(format!("node_uuid: {error}")))
        }
    }
}

async fn inventory(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.part_since(INVENTORY)?;
    let told = conductor.evidence().inventory(&id).await?;
    let nothing =
        || Refusal::new(StatusCode::NOT_FOUND, format!("node {id} was not inspected yet; order that first"));
    told.map(masked).ok_or_else(nothing)
}
