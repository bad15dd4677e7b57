//! Lists of nodes: filters, order, fields, and where the next part is.

use super::kept::KeptNode;
use crate::wire::asked::Asked;
use crate::wire::fields::{NODE, NODE_BRIEF};
use crate::wire::listing::{Paging, Piece, Reading, Source, answer, take_descending};
use crate::wire::reply::Refusal;
use crate::wire::view::{Shown, View};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use farrier_conductor::model::{Fault, ProvisionState};
use farrier_engine::Conductor;
use farrier_engine::Error;
use farrier_engine::records::ResourceKind;
use farrier_engine::store::{Documents, Filter, NodeColumn, Outline, Position, Selection, StoreError};
use serde_json::{Value, json};
use tokio::task::{JoinHandle, yield_now};

/// Nodes that are read at a time: of their columns alone, and with their documents.
const OUTLINES: u32 = 250;
const RECORDS: u32 = 50;

/// What a processor makes ready at a time is this part of them. In between it serves other requests: one that changes a node
/// needs a processor for each of its ten statements, and must not wait for a whole list each time.
const PARTS: usize = 12;

/// How a word of the query chooses nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    /// A text of a column.
    Text(&'static str),
    /// Any of some texts of a column, with commas between them.
    Texts(&'static str),
    /// A flag.
    Flag(&'static str),
    /// Whether a column has a value.
    IsSet(&'static str),
    /// A text of any of these columns.
    TextOfAny(&'static [&'static str]),
    /// A part of a text of the record.
    Part(&'static str),
}

/// Words that choose nodes, and the first version that has each.
const FILTERS: &[(&str, u16, By)] = &[
    ("chassis_uuid", 1, By::Text("chassis_uuid")),
    ("instance_uuid", 1, By::Text("instance_uuid")),
    ("associated", 1, By::IsSet("instance_uuid")),
    ("maintenance", 1, By::Flag("maintenance")),
    ("provision_state", 9, By::Text("provision_state")),
    ("driver", 16, By::Text("driver")),
    ("resource_class", 21, By::Text("resource_class")),
    ("fault", 42, By::Text("fault")),
    ("conductor_group", 46, By::Text("conductor_group")),
    ("owner", 50, By::Text("owner")),
    ("description_contains", 51, By::Part("description")),
    ("retired", 61, By::Flag("retired")),
    ("project", 65, By::TextOfAny(&["owner", "lessee"])),
    ("lessee", 65, By::Text("lessee")),
    ("shard", 82, By::Texts("shard")),
    ("sharded", 82, By::IsSet("shard")),
    ("parent_node", 83, By::Text("parent_node")),
    ("instance_name", 104, By::Text("instance_name")),
];

/// `GET /nodes`
pub(super) async fn brief(State(conductor): State<Conductor>, asked: Asked) -> Result<Response, Refusal> {
    list(conductor, asked, "nodes", Vec::new(), Some(NODE_BRIEF)).await
}

/// `GET /nodes/detail`
pub(super) async fn detail(
    State(conductor): State<Conductor>,
    mut asked: Asked,
) -> Result<Response, Refusal> {
    if asked.take("fields", 1)?.is_some() {
        return Err(Refusal::bad_request("fields: /nodes/detail has all of them; ask /nodes for some"));
    }
    list(conductor, asked, "nodes/detail", Vec::new(), None).await
}

/// `GET /chassis/{chassis}/nodes`
pub(super) async fn of_chassis(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let chassis = conductor.catalogue().resource(ResourceKind::Chassis, &id).await?.uuid.to_string();
    let filters = vec![Filter::IsOneOf(column("chassis_uuid"), vec![chassis])];
    list(conductor, asked, &format!("chassis/{id}/nodes"), filters, Some(NODE_BRIEF)).await
}

async fn list(
    conductor: Conductor,
    mut asked: Asked,
    path: &str,
    among: Vec<Filter>,
    usual: Option<&'static [&'static str]>,
) -> Result<Response, Refusal> {
    let url = asked.same_list(path);
    let view = View::new(&asked, asked.clone().take_fields(NODE, usual)?);
    for word in ["fields", "detail"] {
        asked.take(word, 1)?;
    }
    let paging = Paging::take(&mut asked)?;
    let mut selection = Selection::first(0);
    selection.filters = among;
    selection.filters.extend(filters(&mut asked)?);
    let led_by = asked.take("conductor", 49)?;
    (selection.sort, selection.descending) = order(&mut asked)?;
    asked.done()?;
    if let Some(marker) = &paging.marker {
        selection.after = Some(place(&conductor, marker, selection.sort).await?);
    }
    let columns_tell_leader = conductor.leaders_are_alike();
    let is_brief = (columns_tell_leader || led_by.is_none())
        && view.needs_only(|field| match field {
            "reservation" => true,
            "conductor" => columns_tell_leader,
            field => NodeColumn::named(field).is_some(),
        });
    if is_brief {
        let (sort, tells_leader) = (selection.sort, led_by.is_some() || view.shows("conductor"));
        selection.columns.retain(|column| {
            let name = column.name();
            *column == sort
                || view.shows(name)
                || (tells_leader && Conductor::COLUMNS_OF_LEADER.contains(&name))
        });
    }
    let source = Nodes { conductor, view, selection, is_brief, led_by, ahead: None };
    answer("nodes", source, if is_brief { OUTLINES } else { RECORDS }, &paging, url).await
}

fn column(field: &str) -> NodeColumn {
    NodeColumn::named(field).expect("filters are columns")
}

fn filters(asked: &mut Asked) -> Result<Vec<Filter>, Refusal> {
    let mut filters = Vec::new();
    for (word, since, by) in FILTERS {
        let filter = match by {
            By::Text(field) => {
                asked.take(word, *since)?.map(|text| Filter::IsOneOf(column(field), vec![text]))
            }
            By::Texts(field) => asked
                .take(word, *since)?
                .map(|texts| Filter::IsOneOf(column(field), texts.split(',').map(str::to_owned).collect())),
            By::Flag(field) => asked.take_flag(word, *since)?.map(|flag| Filter::Flag(column(field), flag)),
            By::IsSet(field) => asked.take_flag(word, *since)?.map(|is| Filter::IsSet(column(field), is)),
            By::TextOfAny(fields) => asked
                .take(word, *since)?
                .map(|text| Filter::AnyIs(fields.iter().map(|field| column(field)).collect(), text)),
            By::Part(field) => asked.take(word, *since)?.map(|part| Filter::Contains(field, part)),
        };
        if let Some(Filter::IsOneOf(_, texts)) = &filter {
            check_word(word, &texts[0])?;
        }
        filters.extend(filter);
    }
    let has_parent =
        filters.iter().any(|filter| matches!(filter, Filter::IsOneOf(by, _) if *by == column("parent_node")));
    // Parts of other machines are left out unless they are asked for.
    if asked.take_flag("include_children", 83)? != Some(true) && !has_parent {
        filters.push(Filter::IsSet(column("parent_node"), false));
    }
    Ok(filters)
}

/// Unknown states and faults would select nothing without an error.
fn check_word(word: &str, text: &str) -> Result<(), Refusal> {
    let known: Vec<_> = match word {
        "provision_state" => ProvisionState::ALL.iter().map(|state| state.as_str()).collect(),
        "fault" => Fault::ALL.iter().map(|fault| fault.as_str()).collect(),
        _ => return Ok(()),
    };
    match known.contains(&text) {
        true => Ok(()),
        false => Err(Refusal::bad_request(format!("{word}: {text:?} must be one of: {}", known.join(", ")))),
    }
}

fn order(asked: &mut Asked) -> Result<(NodeColumn, bool), Refusal> {
    let column = match asked.take("sort_key", 1)?.as_deref() {
        None | Some("id") => NodeColumn::CREATED_AT,
        Some(field) => NodeColumn::named(field)
            .ok_or_else(|| Refusal::bad_request(format!("sort_key: nodes cannot be sorted by {field:?}")))?,
    };
    Ok((column, take_descending(asked)?))
}

/// The place of the node that a list begins after.
async fn place(conductor: &Conductor, marker: &str, sort: NodeColumn) -> Result<Position, Refusal> {
    let uuid = conductor.find(marker).await?.node.uuid.to_string();
    let filters = vec![Filter::IsOneOf(NodeColumn::UUID, vec![uuid])];
    let selection = Selection { filters, sort, ..Selection::first(1) };
    let found = conductor.store().outlines(&selection).await.map_err(Error::from)?;
    let found = found.first().ok_or_else(|| Error::NodeNotFound(marker.to_owned()))?;
    Ok(position(found, sort))
}

fn position(outline: &Outline, sort: NodeColumn) -> Position {
    let value = outline.field(sort.name()).cloned().unwrap_or_default();
    Position { value, uuid: outline.uuid }
}

/// Nodes as they look in the answer. While some are made ready, the next ones are read.
struct Nodes {
    conductor: Conductor,
    view: View,
    selection: Selection,
    is_brief: bool,
    /// The conductor that leads them, where those of one are asked for.
    led_by: Option<String>,
    ahead: Option<JoinHandle<Found>>,
}

/// Nodes that were read, those without documents for a brief list.
type Found = Result<Vec<(Outline, Option<Documents>)>, StoreError>;

impl Source for Nodes {
    fn next(&mut self, most: u32, then: u32) -> Reading<'_> {
        Box::pin(async move {
            let found = match self.ahead.take() {
                Some(ahead) => ahead.await.map_err(|error| {
                    Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("a list was not read: {error}"))
                })?,
                None => self.reading(most).await,
            };
            let found = found.map_err(Error::from)?;
            if let Some((outline, _)) = found.last() {
                self.selection.after = Some(position(outline, self.selection.sort));
            }
            let (count, last) = (found.len(), found.last().map(|(outline, _)| outline.uuid));
            if then > 0 && count == most as usize {
                self.ahead = Some(tokio::spawn(self.reading(then)));
            }
            let (mut members, part) = (Vec::with_capacity(count), most as usize / PARTS);
            for (at, (outline, documents)) in found.into_iter().enumerate() {
                if at > 0 && at % part.max(1) == 0 {
                    yield_now().await;
                }
                members.extend(self.shown(outline, documents));
            }
            Ok(Piece { members, count, last })
        })
    }
}

impl Nodes {
    /// Reads the next nodes, at most so many.
    fn reading(&self, most: u32) -> impl Future<Output = Found> + Send + use<> {
        let (conductor, is_brief) = (self.conductor.clone(), self.is_brief);
        let selection = Selection { limit: most, ..self.selection.clone() };
        async move {
            Ok(if is_brief {
                let found = conductor.store().outlines(&selection).await?;
                found.into_iter().map(|outline| (outline, None)).collect()
            } else {
                let found = conductor.store().documents(&selection).await?;
                found.into_iter().map(|(outline, documents)| (outline, Some(documents))).collect()
            })
        }
    }

    /// How a node looks, unless it cannot be read.
    fn shown(&self, outline: Outline, documents: Option<Documents>) -> Option<Shown> {
        let outline = self.conductor.catalogue().outlined(outline, documents.as_ref());
        let leader = outline.field("conductor").and_then(Value::as_str);
        if self.led_by.as_deref().is_some_and(|name| leader != Some(name)) {
            return None;
        }
        let uuid = outline.uuid.to_string();
        let Some(documents) = documents else { return Some(self.view.of("nodes", &uuid, &outline)) };
        match KeptNode::read(&outline, &documents) {
            Ok(node) => Some(self.view.of("nodes", &uuid, &node)),
            Err(error) => {
                tracing::error!(node = uuid, "a node cannot be read and is left out: {error}");
                None
            }
        }
    }
}
/// First version with shards.
const SHARDS: u16 = 82;

/// `GET /shards`: how many nodes are in each, the largest first.
pub(super) async fn shards(State(conductor): State<Conductor>, asked: Asked) -> Result<Json<Value>, Refusal> {
    asked.since(SHARDS)?;
    asked.done()?;
    let mut counted = conductor.store().shards().await.map_err(Error::from)?;
    counted.sort_by(|(one, least), (other, most)| most.cmp(least).then_with(|| one.cmp(other)));
    let shards: Vec<_> = counted.iter().map(|(name, count)| json!({"name": name, "count": count})).collect();
    Ok(Json(json!({"shards": shards})))
}
