//! The ports of a node, and what the last inspection found in its machine.

use super::disks::disks;
use super::parts::NodePage;
use crate::html;
use crate::refusal::Refusal;
use crate::session::Visitor;
use axum::extract::{Extension, Path, State};
use farrier_conductor::model::Node;
use farrier_engine::Conductor;
use maud::{Markup, html};
use serde_json::{Map, Value};

const PORTS: [&str; 5] = ["MAC address", "Name", "Boots by PXE", "Physical network", "Switch and port"];
const LINKS: [&str; 5] = ["Name", "MAC address", "Link", "Speed (Mbit/s)", "IPv4 address"];

/// `GET /page/nodes/{node}/hardware`
pub(crate) async fn show(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    Path(id): Path<String>,
) -> Result<Markup, Refusal> {
    let page = NodePage::open(&conductor, &id).await?;
    let (node, now) = (&page.node, page.now);
    let inspection = conductor.store().inspection(node.uuid).await?;
    let content = html! {
        (ports(node))
        @match &inspection {
            Some(inspection) => {
                @if let Some(at) = node.inspection_finished_at { p { "The inspection was " (html::when(at, now)) "." } }
                (machine(&inspection.inventory))
                (disks(node, inspection))
                (links(&inspection.inventory))
            }
            None => p { "No inspection has read the hardware of the machine yet." },
        }
    };
    Ok(page.show(&visitor, "/hardware", &content))
}

fn ports(node: &Node) -> Markup {
    let cell = |name: &str, content: Markup| html! { td data-label=(name) { (content) } };
    html! {
        table {
            caption { "Ports" }
            (html::head(&PORTS))
            tbody { @for port in &node.ports {
                tr {
                    th scope="row" { (html::text(&port.address.to_string())) }
                    (cell(PORTS[1], html::text_or_none(port.name.as_deref())))
                    (cell(PORTS[2], html! { @if port.pxe_enabled { "yes" } @else { "no" } }))
                    (cell(PORTS[3], html::text_or_none(port.physical_network.as_deref())))
                    (cell(PORTS[4], cable(&port.local_link_connection)))
                }
            } }
        }
        @if node.ports.is_empty() { p { "The node has no ports." } }
    }
}

fn cable(link: &Map<String, Value>) -> Markup {
    let ends = ["switch_info", "switch_id", "port_id"].map(|name| link.get(name).and_then(Value::as_str));
    html::text_or_none(Some(&ends.into_iter().flatten().collect::<Vec<_>>().join(" ")))
}

fn machine(inventory: &Map<String, Value>) -> Markup {
    let of = |part: &str, name: &str| inventory.get(part).and_then(|part| part.get(name));
    let memory = of("memory", "physical_mb").and_then(Value::as_u64).map(|size| Value::from(size << 20));
    html! {
        h2 { "Machine" }
        (html::facts(&[
            ("Manufacturer", html::value(of("system_vendor", "manufacturer"))),
            ("Product", html::value(of("system_vendor", "product_name"))),
            ("Serial number", html::value(of("system_vendor", "serial_number"))),
            ("Processor", html::value(of("cpu", "model_name"))),
            ("Logical processors", html::value(of("cpu", "count"))),
            ("Architecture", html::value(of("cpu", "architecture"))),
            ("Memory", html::size(memory.as_ref().or_else(|| of("memory", "total")))),
            ("Boot mode", html::value(of("boot", "current_boot_mode"))),
            ("BMC address", html::value(inventory.get("bmc_address"))),
        ]))
    }
}

fn links(inventory: &Map<String, Value>) -> Markup {
    rows("Network interfaces", &LINKS, inventory.get("interfaces"), |link, column| match column {
        2 => html! { @if link.get("has_carrier") == Some(&Value::Bool(true)) { "up" } @else { "down" } },
        column => html::value(link.get(["name", "mac_address", "", "speed_mbps", "ipv4_address"][column])),
    })
}

/// A table of the parts of a list in an inventory.
fn rows(
    caption: &str,
    head: &[&str],
    list: Option<&Value>,
    cell: impl Fn(&Value, usize) -> Markup,
) -> Markup {
    let parts = list.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    html! {
        table {
            caption { (caption) }
            (html::head(head))
            tbody { @for part in parts {
                tr {
                    th scope="row" { (cell(part, 0)) }
                    @for (column, name) in head.iter().enumerate().skip(1) {
                        td data-label=(name) { (cell(part, column)) }
                    }
                }
            } }
        }
    }
}
