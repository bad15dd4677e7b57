//! The reference of the operators' interface: a page of the book and an OpenAPI document, both made of the tables that
//! the routers work by.

use crate::nodes::VERBS;
use crate::wire::fields::{
    ALLOCATION, CHASSIS, DEPLOY_TEMPLATE, Field, HISTORY, NODE, PORT, PORT_GROUP, RUNBOOK, VOLUME_CONNECTOR,
    VOLUME_TARGET,
};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A request that operators may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Method of HTTP.
    pub method: &'static str,
    /// Path below `/v1`, with names in braces for what differs.
    pub path: &'static str,
    /// Minor number of the first version that has it.
    pub since: u16,
    /// Status of its answer when it succeeds.
    pub status: u16,
    /// What it does.
    pub summary: &'static str,
}

const fn route(
    method: &'static str,
    path: &'static str,
    since: u16,
    status: u16,
    summary: &'static str,
) -> Route {
    Route { method, path, since, status, summary }
}

/// What operators may send.
pub const ROUTES: &[Route] = &[
    route("GET", "/nodes", 1, 200, "Lists nodes: by filters, in an order, in parts, with some fields"),
    route("POST", "/nodes", 1, 201, "Creates a node"),
    route("GET", "/nodes/detail", 1, 200, "Lists nodes with all of their fields"),
    route("GET", "/shards", 82, 200, "Tells how many nodes are in each shard"),
    route("GET", "/nodes/{node}", 1, 200, "Shows a node"),
    route("PATCH", "/nodes/{node}", 1, 200, "Changes a node by JSON Patch"),
    route("DELETE", "/nodes/{node}", 1, 204, "Forgets a node, and leaves its machine as it is"),
    route("GET", "/nodes/{node}/validate", 1, 200, "Tells for each interface what is missing"),
    route("PUT", "/nodes/{node}/maintenance", 1, 202, "Begins maintenance"),
    route("DELETE", "/nodes/{node}/maintenance", 1, 202, "Ends maintenance, and the fault it was for"),
    route("GET", "/nodes/{node}/states", 1, 200, "Shows the states of a node"),
    route("PUT", "/nodes/{node}/states/provision", 1, 202, "Orders an operation"),
    route("PUT", "/nodes/{node}/states/power", 1, 202, "Orders a change of power"),
    route("PUT", "/nodes/{node}/states/boot_mode", 76, 202, "Has the machine start by BIOS or UEFI"),
    route(
        "PUT",
        "/nodes/{node}/states/secure_boot",
        76,
        202,
        "Has it start only what is signed, or anything",
    ),
    route("GET", "/nodes/states/console/{node}", 1, 200, "The same, as old clients ask for it"),
    route("GET", "/nodes/{node}/states/console", 1, 200, "Tells how its serial console is reached"),
    route(
        "PUT",
        "/nodes/{node}/states/console",
        1,
        202,
        "Opens its serial console to its users, or closes it",
    ),
    route("PUT", "/nodes/{node}/states/raid", 12, 204, "Notes the RAID volumes that are wanted"),
    route("GET", "/nodes/{node}/management/boot_device", 1, 200, "Tells what the machine starts from"),
    route("PUT", "/nodes/{node}/management/boot_device", 1, 204, "Sets what the machine starts from"),
    route("GET", "/nodes/{node}/management/boot_device/supported", 1, 200, "Lists what it can start from"),
    route("PUT", "/nodes/{node}/management/inject_nmi", 29, 204, "Interrupts what runs on the machine"),
    route(
        "GET",
        "/nodes/{node}/management/indicators",
        63,
        200,
        "Lists what of the machine has lights that its BMC switches",
    ),
    route(
        "GET",
        "/nodes/{node}/management/indicators/{component}",
        63,
        200,
        "Lists the lights of one of these",
    ),
    route(
        "GET",
        "/nodes/{node}/management/indicators/{component}/{indicator}",
        63,
        200,
        "Tells what a light does",
    ),
    route(
        "PUT",
        "/nodes/{node}/management/indicators/{component}/{indicator}",
        63,
        204,
        "Has a light do something, such as blink",
    ),
    route("GET", "/nodes/{node}/traits", 37, 200, "Lists the traits of a node"),
    route("PUT", "/nodes/{node}/traits", 37, 204, "Replaces the traits of a node"),
    route("DELETE", "/nodes/{node}/traits", 37, 204, "Takes all traits away"),
    route("PUT", "/nodes/{node}/traits/{trait}", 37, 204, "Gives a node a trait"),
    route("DELETE", "/nodes/{node}/traits/{trait}", 37, 204, "Takes a trait away"),
    route("GET", "/nodes/{node}/vifs", 28, 200, "Lists virtual interfaces"),
    route("POST", "/nodes/{node}/vifs", 28, 204, "Attaches a virtual interface"),
    route("DELETE", "/nodes/{node}/vifs/{vif}", 28, 204, "Detaches a virtual interface"),
    route("GET", "/nodes/{node}/vendor_passthru/methods", 1, 200, "Lists methods of the vendor interface"),
    route("POST", "/nodes/{node}/vendor_passthru", 1, 200, "Calls the method that the query names"),
    route("PUT", "/nodes/{node}/vendor_passthru", 1, 200, "As POST"),
    route("DELETE", "/nodes/{node}/vendor_passthru", 1, 200, "As POST"),
    route("GET", "/nodes/{node}/inventory", 81, 200, "Shows what the last inspection told"),
    route("GET", "/nodes/{node}/history", 78, 200, "Lists what happened to a node, the oldest first"),
    route("GET", "/nodes/{node}/history/{entry}", 78, 200, "Shows one entry of it"),
    route("GET", "/nodes/{node}/vmedia", 93, 200, "Tells what is in virtual drives"),
    route("POST", "/nodes/{node}/vmedia", 89, 204, "Has a virtual drive hold a medium"),
    route(
        "DELETE",
        "/nodes/{node}/vmedia",
        89,
        204,
        "Empties virtual drives: those in `device_types`, or all",
    ),
    route("GET", "/nodes/{node}/bios", 40, 200, "An empty list: no interface tells settings of firmware"),
    route("GET", "/nodes/{node}/bios/{setting}", 40, 404, "No interface tells settings of firmware"),
    route("GET", "/nodes/{node}/firmware", 86, 200, "Lists the versions of firmware that the BMC tells"),
    route("GET", "/nodes/{node}/ports", 1, 200, "Lists the ports of a node"),
    route("GET", "/nodes/{node}/ports/detail", 1, 200, "Lists them with all of their fields"),
    route("GET", "/nodes/{node}/portgroups", 24, 200, "Lists the port groups of a node"),
    route("GET", "/nodes/{node}/portgroups/detail", 24, 200, "Lists them with all of their fields"),
    route("GET", "/nodes/{node}/volume", 32, 200, "Tells where the volumes of a node are listed"),
    route("GET", "/nodes/{node}/volume/connectors", 32, 200, "Lists the volume connectors of a node"),
    route("GET", "/nodes/{node}/volume/targets", 32, 200, "Lists the volumes of a node"),
    route("GET", "/ports", 1, 200, "Lists ports"),
    route("POST", "/ports", 1, 201, "Gives a node a port"),
    route("GET", "/ports/detail", 1, 200, "Lists ports with all of their fields"),
    route("GET", "/ports/{port}", 1, 200, "Shows a port"),
    route("PATCH", "/ports/{port}", 1, 200, "Changes a port by JSON Patch"),
    route("DELETE", "/ports/{port}", 1, 204, "Takes a port away"),
    route("GET", "/allocations", 52, 200, "Lists allocations"),
    route("POST", "/allocations", 52, 201, "Wants a node; whether there is one is told by its state"),
    route("GET", "/allocations/{allocation}", 52, 200, "Shows an allocation"),
    route("PATCH", "/allocations/{allocation}", 57, 200, "Changes name or extra of an allocation"),
    route("DELETE", "/allocations/{allocation}", 52, 204, "Ends an allocation, and frees its node"),
    route("GET", "/nodes/{node}/allocation", 52, 200, "Shows the allocation that has a node"),
    route("DELETE", "/nodes/{node}/allocation", 52, 204, "Ends the allocation that has a node"),
    route("GET", "/deploy_templates", 55, 200, "Lists deploy templates"),
    route("POST", "/deploy_templates", 55, 201, "Creates a deploy template"),
    route("GET", "/deploy_templates/{template}", 55, 200, "Shows a deploy template"),
    route("PATCH", "/deploy_templates/{template}", 55, 200, "Changes a deploy template by JSON Patch"),
    route("DELETE", "/deploy_templates/{template}", 55, 204, "Forgets a deploy template"),
    route("GET", "/runbooks", 92, 200, "Lists runbooks"),
    route("POST", "/runbooks", 92, 201, "Creates a runbook"),
    route("GET", "/runbooks/{runbook}", 92, 200, "Shows a runbook"),
    route("PATCH", "/runbooks/{runbook}", 92, 200, "Changes a runbook by JSON Patch"),
    route("DELETE", "/runbooks/{runbook}", 92, 204, "Forgets a runbook"),
    route("GET", "/chassis", 1, 200, "Lists chassis"),
    route("POST", "/chassis", 1, 201, "Creates a chassis"),
    route("GET", "/chassis/detail", 1, 200, "Lists chassis with all of their fields"),
    route("GET", "/chassis/{chassis}", 1, 200, "Shows a chassis"),
    route("PATCH", "/chassis/{chassis}", 1, 200, "Changes a chassis by JSON Patch"),
    route("DELETE", "/chassis/{chassis}", 1, 204, "Forgets a chassis in which no node is"),
    route("GET", "/chassis/{chassis}/nodes", 1, 200, "Lists the nodes in a chassis"),
    route("GET", "/portgroups", 23, 200, "Lists port groups"),
    route("POST", "/portgroups", 23, 201, "Gives a node a port group"),
    route("GET", "/portgroups/detail", 23, 200, "Lists port groups with all of their fields"),
    route("GET", "/portgroups/{portgroup}", 23, 200, "Shows a port group"),
    route("PATCH", "/portgroups/{portgroup}", 23, 200, "Changes a port group by JSON Patch"),
    route("DELETE", "/portgroups/{portgroup}", 23, 204, "Forgets a port group that has no port"),
    route("GET", "/portgroups/{portgroup}/ports", 24, 200, "Lists the ports of a port group"),
    route("GET", "/volume", 32, 200, "Tells where volumes are listed"),
    route("GET", "/volume/connectors", 32, 200, "Lists what machines are known by where volumes are"),
    route("POST", "/volume/connectors", 32, 201, "Gives a node a volume connector"),
    route("GET", "/volume/connectors/{connector}", 32, 200, "Shows a volume connector"),
    route("PATCH", "/volume/connectors/{connector}", 32, 200, "Changes it, of a node that is off"),
    route("DELETE", "/volume/connectors/{connector}", 32, 204, "Takes it away, of a node that is off"),
    route("GET", "/volume/targets", 32, 200, "Lists volumes of other machines"),
    route("POST", "/volume/targets", 32, 201, "Gives a node a volume"),
    route("GET", "/volume/targets/{target}", 32, 200, "Shows a volume"),
    route("PATCH", "/volume/targets/{target}", 32, 200, "Changes it, of a node that is off"),
    route("DELETE", "/volume/targets/{target}", 32, 204, "Takes it away, of a node that is off"),
    route("GET", "/drivers", 1, 200, "Lists hardware types"),
    route("GET", "/drivers/{driver}", 1, 200, "Shows a hardware type"),
    route("GET", "/drivers/{driver}/properties", 1, 200, "Lists keys of `driver_info`"),
    route("GET", "/drivers/{driver}/raid/logical_disk_properties", 12, 200, "Lists keys of RAID volumes"),
    route("GET", "/conductors", 49, 200, "Lists conductors"),
    route("GET", "/conductors/{conductor}", 49, 200, "Shows a conductor"),
];

/// What else operators may send, below `/farrier/v1`: what no version of Ironic has.
pub const EXTENSIONS: &[Route] = &[
    route("GET", "/nodes/{node}/events", 1, 200, "What happened in the operation under way, from `since` on"),
    route(
        "GET",
        "/nodes/{node}/explanation",
        1,
        200,
        "What a node waits for, on what evidence, and what to do",
    ),
    route("GET", "/nodes/{node}/certificates", 1, 200, "Certificates of erasure, and what they prove"),
    route("GET", "/nodes/{node}/logs", 1, 200, "Lists the logs that were kept of its ramdisks"),
    route("GET", "/nodes/{node}/logs/{name}", 1, 200, "One archive of them, for administrators alone"),
    route(
        "GET",
        "/nodes/{node}/console",
        1,
        200,
        "What is kept of its serial console, the end or `from` a place on, for administrators alone",
    ),
    route("GET", "/nodes/{node}/sensors", 1, 200, "What the sensors of its machine say, by kind and name"),
    route("POST", "/nodes/{node}/console", 1, 204, "Types the body of the request at its serial console"),
    route(
        "PUT",
        "/nodes/{node}/deployment",
        1,
        202,
        "Orders a deployment, with `instance_info` and `deploy_steps`",
    ),
    route(
        "PUT",
        "/nodes/{node}/disk/export",
        1,
        200,
        "Has its agent export its disk by iSCSI, with `read_only`; tells portal, names and secret",
    ),
    route("DELETE", "/nodes/{node}/disk/export", 1, 204, "Ends that export"),
];

/// Both documents, each with its path below `docs/`.
pub fn documents() -> [(&'static str, String); 2] {
    [("src/reference/node-api.md", page()), ("node-openapi.json", format!("{:#}\n", openapi()))]
}

/// The page of the book.
fn page() -> String {
    let mut page = String::from(
        "# Nodes over REST\n\n\
         The REST interface of operators is Ironic's, versions 1.1 to 1.110; a request asks for one by the header \
         `X-OpenStack-Ironic-API-Version`, and gets 1.1 where it asks for none. Each path works with and without `/v1`, \
         and with and without a slash at its end. [node-openapi.json](../../node-openapi.json) has the same for \
         machines.\n\n\
         A list without `limit` is answered in full. A node that is locked answers 409, and so does a change that has \
         to wait; a verb that its state does not allow answers 400.\n\n\
         ## Requests\n\n| request | since | status | what it does |\n| --- | --- | --- | --- |\n",
    );
    for Route { method, path, since, status, summary } in ROUTES {
        let _ = writeln!(page, "| `{method} /v1{path}` | 1.{since} | {status} | {summary} |");
    }
    page.push_str(
        "\n## Verbs\n\nWhat `target` of a provision request may be. `retry` is an extension.\n\n\
         | verb | since | arguments, each with its first version |\n| --- | --- | --- |\n",
    );
    for verb in VERBS {
        let arguments = verb.arguments.iter().map(|(name, since)| format!("`{name}` 1.{since}"));
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        let _ = writeln!(page, "| `{}` | 1.{} | {arguments} |", verb.target, verb.since);
    }
    page.push_str("\n## Extensions\n\nOf Farrier alone, below `/farrier/v1`, in every version.\n\n");
    page.push_str("| request | status | what it does |\n| --- | --- | --- |\n");
    for Route { method, path, status, summary, .. } in EXTENSIONS {
        let _ = writeln!(page, "| `{method} /farrier/v1{path}` | {status} | {summary} |");
    }
    for (title, fields) in [
        ("Fields of a node", NODE),
        ("Fields of a port", PORT),
        ("Fields of an allocation", ALLOCATION),
        ("Fields of a deploy template", DEPLOY_TEMPLATE),
        ("Fields of a runbook", RUNBOOK),
        ("Fields of a chassis", CHASSIS),
        ("Fields of a port group", PORT_GROUP),
        ("Fields of a volume connector", VOLUME_CONNECTOR),
        ("Fields of a volume target", VOLUME_TARGET),
        ("Fields of an entry of a node's history", HISTORY),
    ] {
        let _ = write!(
            page,
            "\n## {title}\n\n| field | type | since | set by | secrets |\n| --- | --- | --- | --- | --- |\n"
        );
        for field in fields {
            let masked = if field.is_masked { "masked" } else { "" };
            let _ = writeln!(
                page,
                "| `{}` | {} | 1.{} | {} | {masked} |",
                field.name,
                field.kind.article(),
                field.since,
                set_by(field)
            );
        }
    }
    page
}

fn set_by(field: &Field) -> &'static str {
    match (field.on_create, field.on_patch) {
        (true, true) => "POST, PATCH",
        (true, false) => "POST",
        (false, true) => "PATCH",
        (false, false) => "",
    }
}

/// The OpenAPI document.
fn openapi() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let parameters: Vec<_> = names
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
            .collect();
        let mut operation = json!({
            "summary": route.summary,
            "description": format!("Since version 1.{}.", route.since),
            "parameters": parameters,
            "responses": {
                route.status.to_string(): {"description": "It succeeded."},
                "default": {"$ref": "#/components/responses/Error"},
            },
        });
        if let Some(schema) = body_of(route) {
            operation["requestBody"] =
                json!({"required": true, "content": {"application/json": {"schema": schema}}});
        }
        let path = paths.entry(format!("/v1{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation;
    }
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Nodes over REST", "version": "1.110"},
        "paths": paths,
        "components": {
            "responses": {"Error": {
                "description": "It did not; the text says why, as JSON within JSON.",
                "content": {"application/json": {"schema": reference("Error")}},
            }},
            "schemas": {
                "Node": schema(NODE, |_| true),
                "NewNode": schema(NODE, |field| field.on_create),
                "Port": schema(PORT, |_| true),
                "NewPort": schema(PORT, |field| field.on_create),
                "Allocation": schema(ALLOCATION, |_| true),
                "NewAllocation": schema(ALLOCATION, |field| field.on_create),
                "DeployTemplate": schema(DEPLOY_TEMPLATE, |_| true),
                "NewDeployTemplate": schema(DEPLOY_TEMPLATE, |field| field.on_create),
                "Runbook": schema(RUNBOOK, |_| true),
                "NewRunbook": schema(RUNBOOK, |field| field.on_create),
                "Chassis": schema(CHASSIS, |_| true),
                "NewChassis": schema(CHASSIS, |field| field.on_create),
                "PortGroup": schema(PORT_GROUP, |_| true),
                "NewPortGroup": schema(PORT_GROUP, |field| field.on_create),
                "VolumeConnector": schema(VOLUME_CONNECTOR, |_| true),
                "NewVolumeConnector": schema(VOLUME_CONNECTOR, |field| field.on_create),
                "VolumeTarget": schema(VOLUME_TARGET, |_| true),
                "NewVolumeTarget": schema(VOLUME_TARGET, |field| field.on_create),
                "Patch": {"type": "array", "items": {
                    "type": "object",
                    "required": ["op", "path"],
                    "properties": {
                        "op": {"enum": ["add", "replace", "remove", "test"]},
                        "path": {"type": "string"},
                        "value": {},
                    },
                }},
                "Provision": {
                    "type": "object",
                    "required": ["target"],
                    "properties": {"target": {"enum": VERBS.iter().map(|verb| verb.target).collect::<Vec<_>>()}},
                },
                "Error": {"type": "object", "properties": {"error_message": {"type": "string"}}},
            },
        },
    })
}

/// The body that a request needs, where it is one of those that are described.
fn body_of(route: &Route) -> Option<Value> {
    let name = match (route.method, route.path) {
        ("POST", "/nodes") => "NewNode",
        ("POST", "/ports") => "NewPort",
        ("POST", "/allocations") => "NewAllocation",
        ("POST", "/deploy_templates") => "NewDeployTemplate",
        ("POST", "/runbooks") => "NewRunbook",
        ("POST", "/chassis") => "NewChassis",
        ("POST", "/portgroups") => "NewPortGroup",
        ("POST", "/volume/connectors") => "NewVolumeConnector",
        ("POST", "/volume/targets") => "NewVolumeTarget",
        ("PATCH", _) => "Patch",
        ("PUT", "/nodes/{node}/states/provision") => "Provision",
        _ => return None,
    };
    Some(json!({"$ref": format!("#/components/schemas/{name}")}))
}

fn schema(fields: &[Field], which: impl Fn(&Field) -> bool) -> Value {
    let properties = fields.iter().filter(|field| which(field)).map(|field| {
        let mut property = field.kind.schema();
        property["description"] = format!("Since version 1.{}.", field.since).into();
        (field.name.to_owned(), property)
    });
    json!({"type": "object", "properties": properties.collect::<Map<_, _>>()})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn the_committed_documents_say_what_is_served() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        for (path, text) in documents() {
            let committed = std::fs::read_to_string(docs.join(path)).unwrap_or_default();
            assert!(committed == text, "docs/{path} is out of date: run cargo xtask reference");
        }
    }

    #[test]
    fn every_path_is_described() {
        let routes = crate::nodes::all_routes().into_iter().map(|(path, _)| path);
        let described: BTreeSet<_> = ROUTES.iter().map(|route| route.path).collect();
        assert_eq!(routes.collect::<BTreeSet<_>>(), described);
        let extensions = crate::extension::routes().into_iter().map(|(path, _)| path);
        let described: BTreeSet<_> = EXTENSIONS.iter().map(|route| route.path).collect();
        assert_eq!(extensions.collect::<BTreeSet<_>>(), described);
    }

    /// What clients really send: every tool that is driven by this interface needs these requests.
    #[test]
    fn what_clients_send_is_served() {
        for (methods, path) in [
            ("GET", "/drivers"),
            ("GET", "/drivers/{driver}"),
            ("GET", "/drivers/{driver}/properties"),
            ("GET", "/conductors"),
            ("GET", "/conductors/{conductor}"),
            ("GET POST", "/nodes"),
            ("GET", "/nodes/detail"),
            ("GET PATCH DELETE", "/nodes/{node}"),
            ("GET", "/nodes/{node}/validate"),
            ("PUT DELETE", "/nodes/{node}/maintenance"),
            ("GET", "/nodes/{node}/states"),
            ("PUT", "/nodes/{node}/states/provision"),
            ("PUT", "/nodes/{node}/states/power"),
            ("PUT", "/nodes/{node}/states/raid"),
            ("PUT", "/nodes/{node}/states/boot_mode"),
            ("PUT", "/nodes/{node}/states/secure_boot"),
            ("GET PUT", "/nodes/{node}/states/console"),
            ("GET PUT", "/nodes/{node}/management/boot_device"),
            ("GET", "/nodes/{node}/management/boot_device/supported"),
            ("PUT", "/nodes/{node}/management/inject_nmi"),
            ("GET", "/nodes/{node}/inventory"),
            ("GET", "/nodes/{node}/bios"),
            ("GET", "/nodes/{node}/bios/{setting}"),
            ("GET", "/nodes/{node}/firmware"),
            ("GET POST DELETE", "/nodes/{node}/vmedia"),
            ("GET POST", "/nodes/{node}/vifs"),
            ("DELETE", "/nodes/{node}/vifs/{vif}"),
            ("GET PUT DELETE", "/nodes/{node}/traits"),
            ("PUT DELETE", "/nodes/{node}/traits/{trait}"),
            ("GET", "/nodes/{node}/history"),
            ("GET", "/nodes/{node}/history/{entry}"),
            ("GET", "/nodes/{node}/vendor_passthru/methods"),
            ("POST DELETE", "/nodes/{node}/vendor_passthru"),
            ("GET POST", "/ports"),
            ("GET", "/ports/detail"),
            ("GET PATCH DELETE", "/ports/{port}"),
            ("GET", "/nodes/{node}/ports"),
            ("GET", "/nodes/{node}/ports/detail"),
            ("GET POST", "/allocations"),
            ("GET PATCH DELETE", "/allocations/{allocation}"),
            ("GET DELETE", "/nodes/{node}/allocation"),
            ("GET", "/portgroups"),
            ("GET", "/portgroups/detail"),
            ("GET", "/volume/connectors"),
            ("GET", "/volume/targets"),
        ] {
            for method in methods.split(' ') {
                let is_it = |route: &Route| route.method == method && route.path == path;
                assert!(ROUTES.iter().any(is_it), "{method} {path}");
            }
        }
    }
}
