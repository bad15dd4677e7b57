//! Deploy templates and runbooks: steps by name.

use super::asked::Asked;
use super::fields::{DEPLOY_TEMPLATE, Field, RUNBOOK, read_new, settable};
use super::json_patch::{self, Op, Operation};
use super::listing::{Paging, Piece, Reading, Source, answer};
use super::reply::{Refusal, read_json};
use super::view::{View, links};
use crate::conductor::Conductor;
use crate::error::Error;
use crate::model::{Workflow, WorkflowKind};
use crate::store::WorkflowSelection;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use serde_json::{Map, Value, json};
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

/// The fields in a list where nobody asks for others.
const BRIEF: &[&str] = &["uuid", "name", "links"];

/// Those that are read at a time.
const STEP: u32 = 500;

/// A kind of them, as the interface has it.
#[derive(Debug)]
struct Collection {
    kind: WorkflowKind,
    /// Name of a list, and path of all of them.
    name: &'static str,
    /// Minor number of the first version that has it.
    since: u16,
    fields: &'static [Field],
}

static TEMPLATES: Collection = Collection {
    kind: WorkflowKind::DeployTemplate,
    name: "deploy_templates",
    since: 55,
    fields: DEPLOY_TEMPLATE,
};

static RUNBOOKS: Collection =
    Collection { kind: WorkflowKind::Runbook, name: "runbooks", since: 92, fields: RUNBOOK };

pub(super) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![
        ("/deploy_templates", TEMPLATES.all()),
        ("/deploy_templates/{template}", TEMPLATES.one()),
        ("/runbooks", RUNBOOKS.all()),
        ("/runbooks/{runbook}", RUNBOOKS.one()),
    ]
}

impl Collection {
    fn all(&'static self) -> MethodRouter<Conductor> {
        get(move |State(conductor): State<Conductor>, asked: Asked| self.list(conductor, asked)).post(
            move |State(conductor): State<Conductor>, asked: Asked, body: Bytes| {
                self.create(conductor, asked, body)
            },
        )
    }

    fn one(&'static self) -> MethodRouter<Conductor> {
        get(move |State(conductor): State<Conductor>, asked: Asked, Path(id): Path<String>| {
            self.show(conductor, asked, id)
        })
        .patch(
            move |State(conductor): State<Conductor>, asked: Asked, Path(id): Path<String>, body: Bytes| {
                self.update(conductor, asked, id, body)
            },
        )
        .delete(move |State(conductor): State<Conductor>, asked: Asked, Path(id): Path<String>| {
            self.delete(conductor, asked, id)
        })
    }

    async fn list(&'static self, conductor: Conductor, mut asked: Asked) -> Result<Response, Refusal> {
        asked.since(self.since)?;
        let url = asked.same_list(self.name);
        let fields = asked.take_fields(self.fields, Some(BRIEF))?;
        let view = View::new(&asked, fields);
        let paging = Paging::take(&mut asked)?;
        asked.done()?;
        let after = match &paging.marker {
            Some(marker) => Some(conductor.workflow(self.kind, marker).await?.uuid),
            None => None,
        };
        let selection = WorkflowSelection { kind: self.kind, after, limit: 0 };
        answer(self.name, Listed { of: self, conductor, view, selection }, STEP, &paging, url).await
    }

    async fn show(
        &'static self,
        conductor: Conductor,
        mut asked: Asked,
        id: String,
    ) -> Result<Json<Value>, Refusal> {
        asked.since(self.since)?;
        let fields = asked.take_fields(self.fields, None)?;
        asked.done()?;
        let found = conductor.workflow(self.kind, &id).await?;
        Ok(Json(self.shown(&View::new(&asked, fields), found)))
    }

    async fn create(
        &'static self,
        conductor: Conductor,
        mut asked: Asked,
        body: Bytes,
    ) -> Result<Response, Refusal> {
        asked.since(self.since)?;
        let fields = asked.take_fields(self.fields, None)?;
        asked.done()?;
        let mut given = read_new(self.fields, read_json(&body)?, asked.version)?;
        if let Some(missing) = ["name", "steps"].iter().find(|name| !given.contains_key(**name)) {
            return Err(Refusal::bad_request(format!("{missing}: is missing; a {} has one", self.kind)));
        }
        given.retain(|_, value| !value.is_null());
        given.entry("uuid").or_insert_with(|| json!(Uuid::new_v4()));
        given.insert("kind".into(), self.kind.as_str().into());
        given.insert("created_at".into(), conductor.now().format(&Rfc3339).unwrap_or_default().into());
        let made = conductor.create_workflow(self.read(given)?).await?;
        let place = links(&asked.url, &format!("{}/{}", self.name, made.uuid))[0]["href"].clone();
        let place = place.as_str().unwrap_or_default().to_owned();
        let shown = self.shown(&View::new(&asked, fields), made);
        Ok((StatusCode::CREATED, [(LOCATION, place)], Json(shown)).into_response())
    }

    async fn update(
        &'static self,
        conductor: Conductor,
        mut asked: Asked,
        id: String,
        body: Bytes,
    ) -> Result<Json<Value>, Refusal> {
        asked.since(self.since)?;
        let fields = asked.take_fields(self.fields, None)?;
        asked.done()?;
        let patch: Vec<Operation> = read_json(&body)?;
        json_patch::check_length(&patch)?;
        let mut changed = Vec::new();
        for operation in &patch {
            let may = |field: &Field| field.on_patch || operation.op == Op::Test;
            changed.push(settable(self.fields, &operation.field()?, asked.version, may, "by a patch")?);
        }
        let change = |before: Workflow| {
            let mut record = document(&before);
            for operation in &patch {
                operation.apply(&mut record)?;
            }
            for field in &changed {
                let value = record.remove(field.name).unwrap_or_default();
                record.insert(field.name.to_owned(), field.read(value)?);
            }
            self.read(record)
        };
        let after = conductor.update_workflow(self.kind, &id, change).await?;
        Ok(Json(self.shown(&View::new(&asked, fields), after)))
    }

    async fn delete(
        &'static self,
        conductor: Conductor,
        asked: Asked,
        id: String,
    ) -> Result<StatusCode, Refusal> {
        asked.since(self.since)?;
        conductor.delete_workflow(self.kind, &id).await?;
        Ok(StatusCode::NO_CONTENT)
    }

    fn read(&self, record: Map<String, Value>) -> Result<Workflow, Refusal> {
        serde_json::from_value(Value::Object(record)).map_err(|error| {
            Refusal::bad_request(format!("the {} cannot be as it is asked for: {error}", self.kind))
        })
    }

    fn shown(&self, view: &View, workflow: Workflow) -> Value {
        view.of(self.name, &workflow.uuid.to_string(), document(&workflow.shown()))
    }
}

/// A list of them as it looks in the answer.
struct Listed {
    of: &'static Collection,
    conductor: Conductor,
    view: View,
    selection: WorkflowSelection,
}

impl Source for Listed {
    fn next(&mut self, most: u32) -> Reading<'_> {
        Box::pin(async move {
            self.selection.limit = most;
            let found = self.conductor.store().workflows(&self.selection).await.map_err(Error::from)?;
            let last = found.last().map(|workflow| workflow.uuid);
            self.selection.after = last.or(self.selection.after);
            let count = found.len();
            let members = found.into_iter().map(|workflow| self.of.shown(&self.view, workflow)).collect();
            Ok(Piece { count, members, last })
        })
    }
}

fn document(workflow: &Workflow) -> Map<String, Value> {
    match serde_json::to_value(workflow) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
