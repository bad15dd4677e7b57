//! Plain resources: each is a table of fields, and has the same requests as all others.

use crate::wire::asked::Asked;
use crate::wire::fields::{
    CHASSIS, DEPLOY_TEMPLATE, Field, PORT_GROUP, RUNBOOK, VOLUME_CONNECTOR, VOLUME_TARGET, read_new,
};
use crate::wire::listing::{Paging, Successive, answer_successive};
use crate::wire::patch::Patch;
use crate::wire::reply::{Refusal, read_json};
use crate::wire::view::{Shown, View, created, links};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use farrier_engine::Conductor;
use farrier_engine::Error;
use farrier_engine::records::{Resource, ResourceKind};
use farrier_engine::store::ResourceSelection;
use serde_json::{Map, Value, json};
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

/// Those that are read at a time.
const STEP: u32 = 500;

/// A kind of them, as the interface has it.
#[derive(Debug)]
pub(crate) struct Collection {
    kind: ResourceKind,
    /// Path of all of them.
    path: &'static str,
    /// Name of a list.
    list: &'static str,
    /// Minor number of the first version that has it.
    since: u16,
    /// That of `detail` in its lists.
    detail_since: u16,
    fields: &'static [Field],
    /// Default fields in a list.
    brief: &'static [&'static str],
    /// Fields that each has.
    needed: &'static [&'static str],
    /// What is written down where nothing is said.
    defaults: &'static [(&'static str, &'static str)],
}

/// Deploy templates and runbooks are alike.
const fn of_steps(
    kind: ResourceKind,
    path: &'static str,
    since: u16,
    fields: &'static [Field],
) -> Collection {
    let (brief, needed): (&[&str], &[&str]) = (&["uuid", "name", "links"], &["name", "steps"]);
    Collection { kind, path, list: path, since, detail_since: since, fields, brief, needed, defaults: &[] }
}

static TEMPLATES: Collection =
    of_steps(ResourceKind::DeployTemplate, "deploy_templates", 55, DEPLOY_TEMPLATE);

static RUNBOOKS: Collection = of_steps(ResourceKind::Runbook, "runbooks", 92, RUNBOOK);

static CHASSES: Collection = Collection {
    kind: ResourceKind::Chassis,
    path: "chassis",
    list: "chassis",
    since: 1,
    detail_since: 43,
    fields: CHASSIS,
    brief: &["uuid", "description", "links"],
    needed: &[],
    defaults: &[],
};

static PORT_GROUPS: Collection = Collection {
    kind: ResourceKind::PortGroup,
    path: "portgroups",
    list: "portgroups",
    since: 23,
    detail_since: 43,
    fields: PORT_GROUP,
    brief: &["uuid", "name", "address", "links"],
    needed: &["node_uuid"],
    defaults: &[("mode", "active-backup")],
};

static CONNECTORS: Collection = Collection {
    kind: ResourceKind::VolumeConnector,
    path: "volume/connectors",
    list: "connectors",
    since: 32,
    detail_since: 32,
    fields: VOLUME_CONNECTOR,
    brief: &["uuid", "node_uuid", "type", "connector_id", "links"],
    needed: &["node_uuid", "type", "connector_id"],
    defaults: &[],
};

static TARGETS: Collection = Collection {
    kind: ResourceKind::VolumeTarget,
    path: "volume/targets",
    list: "targets",
    since: 32,
    detail_since: 32,
    fields: VOLUME_TARGET,
    brief: &["uuid", "node_uuid", "volume_type", "boot_index", "volume_id", "links"],
    needed: &["node_uuid", "volume_type", "boot_index", "volume_id"],
    defaults: &[],
};

pub(crate) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![
        ("/deploy_templates", TEMPLATES.all()),
        ("/deploy_templates/{template}", TEMPLATES.one()),
        ("/runbooks", RUNBOOKS.all()),
        ("/runbooks/{runbook}", RUNBOOKS.one()),
        ("/chassis", CHASSES.all()),
        ("/chassis/detail", CHASSES.detail()),
        ("/chassis/{chassis}", CHASSES.one()),
        ("/portgroups", PORT_GROUPS.all()),
        ("/portgroups/detail", PORT_GROUPS.detail()),
        ("/portgroups/{portgroup}", PORT_GROUPS.one()),
        ("/nodes/{node}/portgroups", PORT_GROUPS.of_node(24)),
        ("/nodes/{node}/portgroups/detail", PORT_GROUPS.detail_of_node(24)),
        ("/volume", get(volume)),
        ("/nodes/{node}/volume", get(volume_of_node)),
        ("/volume/connectors", CONNECTORS.all()),
        ("/volume/connectors/{connector}", CONNECTORS.one()),
        ("/nodes/{node}/volume/connectors", CONNECTORS.of_node(32)),
        ("/volume/targets", TARGETS.all()),
        ("/volume/targets/{target}", TARGETS.one()),
        ("/nodes/{node}/volume/targets", TARGETS.of_node(32)),
    ]
}

/// `GET /volume`
async fn volume(asked: Asked) -> Result<Json<Value>, Refusal> {
    asked.part_since(CONNECTORS.since)?;
    Ok(Json(volume_links(&asked.url, "volume")))
}

/// `GET /nodes/{node}/volume`
async fn volume_of_node(
    State(conductor): State<Conductor>,
    asked: Asked,
    Path(node): Path<String>,
) -> Result<Json<Value>, Refusal> {
    asked.part_since(CONNECTORS.since)?;
    conductor.node(&node).await?;
    Ok(Json(volume_links(&asked.url, &format!("nodes/{node}/volume"))))
}

fn volume_links(url: &str, path: &str) -> Value {
    let below = |list: &str| links(url, &format!("{path}/{list}"));
    json!({"links": links(url, path), "connectors": below("connectors"), "targets": below("targets")})
}

impl Collection {
    fn all(&'static self) -> MethodRouter<Conductor> {
        let list = move |State(conductor): State<Conductor>, asked: Asked| {
            self.list(conductor, asked, None, Some(self.brief))
        };
        get(list).post(move |State(conductor): State<Conductor>, asked: Asked, body: Bytes| {
            self.create(conductor, asked, body)
        })
    }

    fn detail(&'static self) -> MethodRouter<Conductor> {
        get(move |State(conductor): State<Conductor>, asked: Asked| self.list(conductor, asked, None, None))
    }

    /// Those of a node, from a version on.
    fn of_node(&'static self, since: u16) -> MethodRouter<Conductor> {
        get(move |State(conductor): State<Conductor>, asked: Asked, Path(node): Path<String>| async move {
            asked.part_since(since)?;
            self.list(conductor, asked, Some(node), Some(self.brief)).await
        })
    }

    fn detail_of_node(&'static self, since: u16) -> MethodRouter<Conductor> {
        get(move |State(conductor): State<Conductor>, asked: Asked, Path(node): Path<String>| async move {
            asked.part_since(since)?;
            self.list(conductor, asked, Some(node), None).await
        })
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

    async fn list(
        &'static self,
        conductor: Conductor,
        mut asked: Asked,
        node: Option<String>,
        usual: Option<&'static [&'static str]>,
    ) -> Result<Response, Refusal> {
        self.check_version(&asked)?;
        let path = match (&node, usual) {
            (Some(node), Some(_)) => format!("nodes/{node}/{}", self.path),
            (Some(node), None) => format!("nodes/{node}/{}/detail", self.path),
            (None, Some(_)) => self.path.to_owned(),
            (None, None) => format!("{}/detail", self.path),
        };
        let url = asked.same_list(&path);
        let fields = asked.take_fields_since(self.detail_since, self.fields, usual)?;
        let paging = Paging::take_sorted(&mut asked, self.fields)?;
        let view = View::new(&asked, fields).sorted_by(paging.sort_key());
        let mut selection = ResourceSelection::first(self.kind, 0);
        let has = |name| self.fields.iter().any(|field| field.name == name);
        if has("node_uuid")
            && let Some(node) = node.or(asked.take("node", self.since)?)
        {
            selection.node = Some(conductor.find(&node).await?.node.uuid);
        }
        if has("address") {
            let address = asked.take("address", self.since)?;
            selection.natural_key = address.map(|address| address.to_ascii_lowercase());
        }
        asked.done()?;
        let after = match &paging.marker {
            Some(marker) => Some(conductor.catalogue().resource(self.kind, marker).await?.uuid),
            None => None,
        };
        let read = move |after: Option<Uuid>, limit: u32| {
            let (conductor, view) = (conductor.clone(), view.clone());
            let selection = ResourceSelection { after, limit, ..selection.clone() };
            async move {
                let found = conductor.store().resources(&selection).await?;
                let members = found.into_iter().map(|resource| {
                    let shown = resource.shown();
                    view.member(self.path, shown.uuid, &document(&shown))
                });
                Ok::<_, Error>(members.collect())
            }
        };
        answer_successive(self.list, Successive { after, read }, STEP, &paging, url).await
    }

    async fn show(
        &'static self,
        conductor: Conductor,
        mut asked: Asked,
        id: String,
    ) -> Result<Json<Shown>, Refusal> {
        let view = self.view(&mut asked)?;
        self.check_ident(&id)?;
        Ok(Json(self.shown(&view, conductor.catalogue().resource(self.kind, &id).await?)))
    }

    async fn create(
        &'static self,
        conductor: Conductor,
        mut asked: Asked,
        body: Bytes,
    ) -> Result<Response, Refusal> {
        let view = self.view(&mut asked)?;
        let mut given = read_new(self.fields, read_json(&body)?, asked.version)?;
        given.retain(|_, value| !value.is_null());
        if let Some(missing) = self.needed.iter().find(|name| !given.contains_key(**name)) {
            return Err(Refusal::bad_request(format!("{missing}: is missing; a {} has one", self.kind)));
        }
        for (field, value) in self.defaults {
            given.entry(*field).or_insert_with(|| (*value).into());
        }
        given.entry("uuid").or_insert_with(|| json!(Uuid::new_v4()));
        given.insert("kind".into(), self.kind.as_str().into());
        given.insert("created_at".into(), conductor.now().format(&Rfc3339).unwrap_or_default().into());
        let made = conductor.catalogue().create_resource(self.read(given)?).await?;
        let path = format!("{}/{}", self.path, made.uuid);
        Ok(created(&asked.url, &path, self.shown(&view, made)))
    }

    async fn update(
        &'static self,
        conductor: Conductor,
        mut asked: Asked,
        id: String,
        body: Bytes,
    ) -> Result<Json<Shown>, Refusal> {
        let view = self.view(&mut asked)?;
        self.check_ident(&id)?;
        let patch = Patch::read(&body, self.fields, asked.version)?;
        let change = |before: Resource| self.read(patch.apply(document(&before))?);
        Ok(Json(self.shown(&view, conductor.catalogue().update_resource(self.kind, &id, change).await?)))
    }

    async fn delete(
        &'static self,
        conductor: Conductor,
        asked: Asked,
        id: String,
    ) -> Result<StatusCode, Refusal> {
        self.check_version(&asked)?;
        asked.done()?;
        self.check_ident(&id)?;
        conductor.catalogue().delete_resource(self.kind, &id).await?;
        Ok(StatusCode::NO_CONTENT)
    }

    /// Refuses versions from before there were any.
    fn check_version(&self, asked: &Asked) -> Result<(), Refusal> {
        match self.kind {
            ResourceKind::DeployTemplate | ResourceKind::Runbook => asked.since(self.since),
            _ => asked.part_since(self.since),
        }
    }

    /// Refuses what none of them could be called by.
    fn check_ident(&self, id: &str) -> Result<(), Refusal> {
        let has_name = self.fields.iter().any(|field| field.name == "name");
        match has_name || id.parse::<Uuid>().is_ok() {
            true => Ok(()),
            false => Err(Refusal::no_uuid(self.kind.as_str(), id)),
        }
    }

    /// The form of the last response.
    fn view(&self, asked: &mut Asked) -> Result<View, Refusal> {
        self.check_version(asked)?;
        let fields = asked.take_fields(self.fields, None)?;
        asked.done()?;
        Ok(View::new(asked, fields))
    }

    fn read(&self, record: Map<String, Value>) -> Result<Resource, Refusal> {
        serde_json::from_value(Value::Object(record)).map_err(|error| {
            Refusal::bad_request(format!("the {} cannot be as it is asked for: {error}", self.kind))
        })
    }

    fn shown(&self, view: &View, resource: Resource) -> Shown {
        view.of(self.path, &resource.uuid.to_string(), &document(&resource.shown()))
    }
}

fn document(resource: &Resource) -> Map<String, Value> {
    match serde_json::to_value(resource) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}
