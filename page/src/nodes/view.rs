//! How the list looks.

use super::rows::{Page, Row};
use crate::address::part::{Part, STATES, Version};
use crate::address::query::{By, ListQuery, ORDERS, WORDS, Word};
use crate::address::{EVENTS, PARTS};
use crate::frame::{self, Live};
use crate::html;
use crate::orders::many::{MANY, kinds};
use crate::session::Visitor;
use farrier_conductor::model::{ProvisionState, masked_text};
use maud::{Markup, html};
use time::OffsetDateTime;
use url::form_urlencoded::byte_serialize;

/// The columns of the table.
const HEAD: [&str; 8] =
    ["Node", "State", "Since", "Power", "Attention", "Driver", "Conductor group", "Instance"];

/// The whole page.
pub(crate) fn page(
    visitor: &Visitor,
    query: &ListQuery,
    counts: &[(ProvisionState, u64)],
    page: &Page,
    now: OffsetDateTime,
) -> Markup {
    let content = html! {
        (states(query, counts))
        (filters(query))
        @if page.rows.is_empty() {
            p { @if query.is_everything() { "There are no nodes yet." } @else { "No node is like that." } }
        } @else {
            form.select action=(MANY) {
                (order(query))
                (table(&page.rows, now))
            }
        }
        nav.pages aria-label="Parts of the list" {
            @if query.after.is_some() { a href=(query.with("", "")) { "First page" } }
            @if let Some(next) = &page.next { a href=(query.after(next)) rel="next" { "Next page" } }
        }
    };
    let list: String = byte_serialize(query.text().as_bytes()).collect();
    let live = Live { events: format!("{EVENTS}?"), parts: Some(format!("{PARTS}?list={list}")), page: None };
    frame::live_page("Nodes", visitor, &live, &content)
}

/// How many nodes are in each state, each a way to these.
pub(super) fn states(query: &ListQuery, counts: &[(ProvisionState, u64)]) -> Markup {
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    let count =
        |state: &ProvisionState| counts.iter().find(|(of, _)| of == state).map_or(0, |(_, count)| *count);
    let chosen = query.value("state");
    html! {
        nav #(STATES) .states aria-label="Nodes by state" data-version=(Version::of(counts)) {
            a href=(query.with("state", "")) aria-current=[chosen.is_empty().then_some("true")] {
                "All " b { (total) }
            }
            @for state in ProvisionState::ALL.iter().filter(|state| count(state) > 0) {
                a href=(query.with("state", state.as_str())) aria-current=[(chosen == state.as_str()).then_some("true")] {
                    (html::state(*state)) " " b { (count(state)) }
                }
            }
        }
    }
}

fn filters(query: &ListQuery) -> Markup {
    let [search, others @ ..] = WORDS else { return html! {} };
    html! {
        form.filters action="/page/" role="search" {
            (field(query, search))
            details open[!query.is_everything()] {
                summary { "Filters and order" }
                div.fields {
                    @for word in others { (field(query, word)) }
                    div {
                        label for="sort" { "Order" }
                        select #sort name="sort" {
                            @for order in ORDERS {
                                option value=(order.name) selected[*order == query.order()] { (order.label) }
                            }
                        }
                    }
                }
            }
            button { "Show" }
            @if !query.is_everything() { a href="/page/" { "Show all" } }
        }
    }
}

fn field(query: &ListQuery, word: &Word) -> Markup {
    let value = query.value(word.name);
    html! {
        div {
            label for=(word.name) { (word.label) }
            @match word.by.choices() {
                Some(choices) => select id=(word.name) name=(word.name) {
                    option value="" { "any" }
                    @for choice in choices {
                        option value=(choice) selected[choice == value] { (shown(word.by, choice)) }
                    }
                },
                None => input id=(word.name) name=(word.name) value=(value) maxlength="255";,
            }
        }
    }
}

/// A choice in words.
fn shown(by: By, choice: &str) -> &str {
    match (by, choice) {
        (By::Operator, "operator") => "yes",
        (By::Operator, _) => "no",
        (_, choice) => choice,
    }
}

/// The choice of an order for the nodes that are selected below. It only leads to the preview.
fn order(query: &ListQuery) -> Markup {
    html! {
        fieldset.choice {
            legend { "Order for many nodes" }
            input type="hidden" name="list" value=(query.text());
            label for="order" { "Order" }
            select #order name="order" { @for kind in kinds() { option value=(kind.name) { (kind.label) } } }
            button { "Preview for the selected nodes" }
            button name="all" value="yes" { "Preview for all nodes of the list" }
        }
    }
}

fn table(rows: &[Row], now: OffsetDateTime) -> Markup {
    html! {
        table.nodes {
            caption { "Nodes" }
            (html::head(&HEAD))
            tbody { @for row in rows { (line(row, now)) } }
        }
    }
}

/// A row. Its cells have no names, and none of them a word for nothing: the style sheet has both, once for all rows.
pub(super) fn line(row: &Row, now: OffsetDateTime) -> Markup {
    let path = format!("/page/nodes/{}", row.node());
    let text = |field: &str| row.text(field).map(html::text);
    html! {
        tr #(Part::Row(row.node())) .operator[row.needs_operator()] data-version=(row.version()) {
            th scope="row" {
                input type="checkbox" name="node" value=(row.node()) aria-label=(masked_text(&format!("Select {}", row.label())));
                a href=(path) { (html::text(&row.label())) }
            }
            td { @if let Some(state) = row.state() { (html::state(state)) } }
            td { @if let Some(since) = row.since() { (html::ago(since, now)) } }
            td { @if let Some(power) = text("power_state") { (power) } }
            td { @if row.needs_operator() { (attention(row)) } }
            td { @if let Some(driver) = text("driver") { (driver) } }
            td { @if let Some(group) = text("conductor_group") { (group) } }
            td { @if let Some(instance) = text("instance_name") { (instance) } }
        }
    }
}

/// Why an operator has to act on a node, in words.
fn attention(row: &Row) -> Markup {
    html! {
        strong.mark { "Needs an operator" }
        @if row.is_in_maintenance() {
            ": in maintenance" @if let Some(fault) = row.text("fault") { " by " (html::text(fault)) }
        }
    }
}
