//! The reference of the operators' interface: a page of the book and an OpenAPI document, both made of the tables that
//! the routers work by. Beside them is the page of provision states.

mod states;

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
    route("GET", "/nodes", 1, 200, "Lists nodes, with filters, sorting, pages and a choice of fields"),
    route("POST", "/nodes", 1, 201, "Creates a node"),
    route("GET", "/nodes/detail", 1, 200, "Lists nodes with all of their fields"),
    route("GET", "/shards", 82, 200, "Lists shards with the number of their nodes"),
    route("GET", "/nodes/{node}", 1, 200, "Shows a node"),
    route("PATCH", "/nodes/{node}", 1, 200, "Changes a node by JSON Patch"),
    route("DELETE", "/nodes/{node}", 1, 204, "Deletes a node; its machine stays as it is"),
    route("GET", "/nodes/{node}/validate", 1, 200, "Validates the interfaces of a node"),
    route("PUT", "/nodes/{node}/maintenance", 1, 202, "Sets maintenance"),
    route("DELETE", "/nodes/{node}/maintenance", 1, 202, "Clears maintenance and the fault"),
    route("GET", "/nodes/{node}/states", 1, 200, "Shows the states of a node"),
    route("PUT", "/nodes/{node}/states/provision", 1, 202, "Starts an operation"),
    route("PUT", "/nodes/{node}/states/power", 1, 202, "Changes the power state"),
    route("PUT", "/nodes/{node}/states/boot_mode", 76, 202, "Changes the boot mode: BIOS or UEFI"),
    route("PUT", "/nodes/{node}/states/secure_boot", 76, 202, "Switches Secure Boot on or off"),
    route("GET", "/nodes/states/console/{node}", 1, 200, "The same, for old clients"),
    route("GET", "/nodes/{node}/states/console", 1, 200, "Shows the connection of the serial console"),
    route("PUT", "/nodes/{node}/states/console", 1, 202, "Enables or disables the serial console"),
    route("PUT", "/nodes/{node}/states/raid", 12, 204, "Sets the target RAID configuration"),
    route("GET", "/nodes/{node}/management/boot_device", 1, 200, "Shows the boot device"),
    route("PUT", "/nodes/{node}/management/boot_device", 1, 204, "Sets the boot device"),
    route(
        "GET",
        "/nodes/{node}/management/boot_device/supported",
        1,
        200,
        "Lists the supported boot devices",
    ),
    route("PUT", "/nodes/{node}/management/inject_nmi", 29, 204, "Injects a non-maskable interrupt"),
    route("GET", "/nodes/{node}/management/indicators", 63, 200, "Lists the components with indicators"),
    route(
        "GET",
        "/nodes/{node}/management/indicators/{component}",
        63,
        200,
        "Lists the indicators of a component",
    ),
    route(
        "GET",
        "/nodes/{node}/management/indicators/{component}/{indicator}",
        63,
        200,
        "Shows the state of an indicator",
    ),
    route(
        "PUT",
        "/nodes/{node}/management/indicators/{component}/{indicator}",
        63,
        204,
        "Sets the state of an indicator",
    ),
    route("GET", "/nodes/{node}/traits", 37, 200, "Lists the traits of a node"),
    route("PUT", "/nodes/{node}/traits", 37, 204, "Replaces the traits of a node"),
    route("DELETE", "/nodes/{node}/traits", 37, 204, "Removes all traits"),
    route("PUT", "/nodes/{node}/traits/{trait}", 37, 204, "Adds a trait"),
    route("DELETE", "/nodes/{node}/traits/{trait}", 37, 204, "Removes a trait"),
    route("GET", "/nodes/{node}/vifs", 28, 200, "Lists virtual interfaces"),
    route("POST", "/nodes/{node}/vifs", 28, 204, "Attaches a virtual interface"),
    route("DELETE", "/nodes/{node}/vifs/{vif}", 28, 204, "Detaches a virtual interface"),
    route(
        "GET",
        "/nodes/{node}/vendor_passthru/methods",
        1,
        200,
        "Lists the methods of the vendor interface",
    ),
    route("POST", "/nodes/{node}/vendor_passthru", 1, 200, "Calls the method in the query"),
    route("PUT", "/nodes/{node}/vendor_passthru", 1, 200, "As POST"),
    route("DELETE", "/nodes/{node}/vendor_passthru", 1, 200, "As POST"),
    route("GET", "/nodes/{node}/inventory", 81, 200, "Shows the inventory of the last inspection"),
    route("GET", "/nodes/{node}/history", 78, 200, "Lists the history of a node, the oldest entry first"),
    route("GET", "/nodes/{node}/history/{entry}", 78, 200, "Shows one entry of the history"),
    route("GET", "/nodes/{node}/vmedia", 93, 200, "Lists the attached virtual media"),
    route("POST", "/nodes/{node}/vmedia", 89, 204, "Attaches virtual media"),
    route(
        "DELETE",
        "/nodes/{node}/vmedia",
        89,
        204,
        "Detaches virtual media, of all drives or of those in `device_types`",
    ),
    route("GET", "/nodes/{node}/bios", 40, 200, "Returns an empty list: no interface supports BIOS settings"),
    route("GET", "/nodes/{node}/bios/{setting}", 40, 404, "No interface supports BIOS settings"),
    route("GET", "/nodes/{node}/firmware", 86, 200, "Lists the firmware versions that the BMC reports"),
    route("GET", "/nodes/{node}/ports", 1, 200, "Lists the ports of a node"),
    route("GET", "/nodes/{node}/ports/detail", 1, 200, "Lists them with all fields"),
    route("GET", "/nodes/{node}/portgroups", 24, 200, "Lists the port groups of a node"),
    route("GET", "/nodes/{node}/portgroups/detail", 24, 200, "Lists them with all fields"),
    route("GET", "/nodes/{node}/volume", 32, 200, "Links to the volumes of a node"),
    route("GET", "/nodes/{node}/volume/connectors", 32, 200, "Lists the volume connectors of a node"),
    route("GET", "/nodes/{node}/volume/targets", 32, 200, "Lists the volumes of a node"),
    route("GET", "/ports", 1, 200, "Lists ports"),
    route("POST", "/ports", 1, 201, "Creates a port"),
    route("GET", "/ports/detail", 1, 200, "Lists ports with all of their fields"),
    route("GET", "/ports/{port}", 1, 200, "Shows a port"),
    route("PATCH", "/ports/{port}", 1, 200, "Changes a port by JSON Patch"),
    route("DELETE", "/ports/{port}", 1, 204, "Deletes a port"),
    route("GET", "/allocations", 52, 200, "Lists allocations"),
    route("POST", "/allocations", 52, 201, "Creates an allocation; its state shows the result"),
    route("GET", "/allocations/{allocation}", 52, 200, "Shows an allocation"),
    route("PATCH", "/allocations/{allocation}", 57, 200, "Changes name or extra of an allocation"),
    route("DELETE", "/allocations/{allocation}", 52, 204, "Deletes an allocation, and frees its node"),
    route("GET", "/nodes/{node}/allocation", 52, 200, "Shows the allocation of a node"),
    route("DELETE", "/nodes/{node}/allocation", 52, 204, "Deletes the allocation of a node"),
    route("GET", "/deploy_templates", 55, 200, "Lists deploy templates"),
    route("POST", "/deploy_templates", 55, 201, "Creates a deploy template"),
    route("GET", "/deploy_templates/{template}", 55, 200, "Shows a deploy template"),
    route("PATCH", "/deploy_templates/{template}", 55, 200, "Changes a deploy template by JSON Patch"),
    route("DELETE", "/deploy_templates/{template}", 55, 204, "Deletes a deploy template"),
    route("GET", "/runbooks", 92, 200, "Lists runbooks"),
    route("POST", "/runbooks", 92, 201, "Creates a runbook"),
    route("GET", "/runbooks/{runbook}", 92, 200, "Shows a runbook"),
    route("PATCH", "/runbooks/{runbook}", 92, 200, "Changes a runbook by JSON Patch"),
    route("DELETE", "/runbooks/{runbook}", 92, 204, "Deletes a runbook"),
    route("GET", "/chassis", 1, 200, "Lists chassis"),
    route("POST", "/chassis", 1, 201, "Creates a chassis"),
    route("GET", "/chassis/detail", 1, 200, "Lists chassis with all of their fields"),
    route("GET", "/chassis/{chassis}", 1, 200, "Shows a chassis"),
    route("PATCH", "/chassis/{chassis}", 1, 200, "Changes a chassis by JSON Patch"),
    route("DELETE", "/chassis/{chassis}", 1, 204, "Deletes a chassis without nodes"),
    route("GET", "/chassis/{chassis}/nodes", 1, 200, "Lists the nodes in a chassis"),
    route("GET", "/portgroups", 23, 200, "Lists port groups"),
    route("POST", "/portgroups", 23, 201, "Creates a port group"),
    route("GET", "/portgroups/detail", 23, 200, "Lists port groups with all of their fields"),
    route("GET", "/portgroups/{portgroup}", 23, 200, "Shows a port group"),
    route("PATCH", "/portgroups/{portgroup}", 23, 200, "Changes a port group by JSON Patch"),
    route("DELETE", "/portgroups/{portgroup}", 23, 204, "Deletes a port group without ports"),
    route("GET", "/portgroups/{portgroup}/ports", 24, 200, "Lists the ports of a port group"),
    route("GET", "/volume", 32, 200, "Links to the volumes"),
    route("GET", "/volume/connectors", 32, 200, "Lists volume connectors"),
    route("POST", "/volume/connectors", 32, 201, "Creates a volume connector"),
    route("GET", "/volume/connectors/{connector}", 32, 200, "Shows a volume connector"),
    route("PATCH", "/volume/connectors/{connector}", 32, 200, "Changes it; the node must be powered off"),
    route("DELETE", "/volume/connectors/{connector}", 32, 204, "Deletes it; the node must be powered off"),
    route("GET", "/volume/targets", 32, 200, "Lists volume targets"),
    route("POST", "/volume/targets", 32, 201, "Creates a volume target"),
    route("GET", "/volume/targets/{target}", 32, 200, "Shows a volume target"),
    route("PATCH", "/volume/targets/{target}", 32, 200, "Changes it; the node must be powered off"),
    route("DELETE", "/volume/targets/{target}", 32, 204, "Deletes it; the node must be powered off"),
    route("GET", "/drivers", 1, 200, "Lists hardware types"),
    route("GET", "/drivers/{driver}", 1, 200, "Shows a hardware type"),
    route("GET", "/drivers/{driver}/properties", 1, 200, "Lists the keys of `driver_info`"),
    route("GET", "/drivers/{driver}/raid/logical_disk_properties", 12, 200, "Lists the keys of RAID volumes"),
    route("GET", "/conductors", 49, 200, "Lists conductors"),
    route("GET", "/conductors/{conductor}", 49, 200, "Shows a conductor"),
];

/// What else operators may send, below `/farrier/v1`: what no version of Ironic has.
pub const EXTENSIONS: &[Route] = &[
    route(
        "GET",
        "/nodes/{node}/events",
        1,
        200,
        "Lists the events of the current operation, from `since` on",
    ),
    route(
        "GET",
        "/nodes/{node}/explanation",
        1,
        200,
        "Explains the state of a node: cause, evidence, next action",
    ),
    route(
        "GET",
        "/nodes/{node}/timeline",
        1,
        200,
        "Lists the phases and steps of a node, with start, end and percent",
    ),
    route("GET", "/nodes/{node}/certificates", 1, 200, "Lists the certificates of erasure, with the verdict"),
    route("GET", "/nodes/{node}/logs", 1, 200, "Lists the ramdisk logs of a node"),
    route("GET", "/nodes/{node}/logs/{name}", 1, 200, "Fetches one archive of logs; role admin"),
    route(
        "GET",
        "/nodes/{node}/console",
        1,
        200,
        "Fetches the console log, its end or `from` an offset; role admin",
    ),
    route("GET", "/nodes/{node}/sensors", 1, 200, "Lists sensor readings by kind and name"),
    route("POST", "/nodes/{node}/console", 1, 204, "Sends the body of the request to the serial console"),
    route(
        "PUT",
        "/nodes/{node}/deployment",
        1,
        202,
        "Starts a deployment with `instance_info` and `deploy_steps`",
    ),
    route(
        "PUT",
        "/nodes/{node}/disk/export",
        1,
        200,
        "Exports the root disk over iSCSI, with `read_only`; returns portal, names and secret",
    ),
    route("DELETE", "/nodes/{node}/disk/export", 1, 204, "Ends the export"),
];

/// The documents, each with its path below `docs/`.
pub fn documents() -> [(&'static str, String); 4] {
    [
        ("src/reference/node-api.md", page()),
        ("node-openapi.json", format!("{:#}\n", openapi())),
        ("src/reference/states.md", states::page()),
        ("src/reference/states.svg", states::picture()),
    ]
}

/// The page of the book.
fn page() -> String {
    let mut page = String::from(
        "# Nodes over REST\n\n\
         The node API is Ironic's, in versions 1.1 to 1.110. The header `X-OpenStack-Ironic-API-Version` selects a \
         version; the default is 1.1. Each path works with and without `/v1`, and with and without a slash at its end. \
         [node-openapi.json](../../node-openapi.json) describes the same API for programs.\n\n\
         A list without `limit` has no pages. A request for a locked node returns 409, and so does a change that must \
         wait. A verb that the state of the node does not allow returns 400. The header `Farrier-Error-Code` of a refused \
         request has the [code](errors.md) of the error.\n\n\
         ## Requests\n\n| request | since | status | description |\n| --- | --- | --- | --- |\n",
    );
    for Route { method, path, since, status, summary } in ROUTES {
        let _ = writeln!(page, "| `{method} /v1{path}` | 1.{since} | {status} | {summary} |");
    }
    page.push_str(
        "\n## Verbs\n\nValues for `target` of a provision request. `retry` is an extension.\n\n\
         | verb | since | arguments, each with its first version |\n| --- | --- | --- |\n",
    );
    for verb in VERBS {
        let arguments = verb.arguments.iter().map(|(name, since)| format!("`{name}` 1.{since}"));
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        let _ = writeln!(page, "| `{}` | 1.{} | {arguments} |", verb.target, verb.since);
    }
    page.push_str("\n## Extensions\n\nFarrier's own requests, below `/farrier/v1`, in every version.\n\n");
    page.push_str("| request | status | description |\n| --- | --- | --- |\n");
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
