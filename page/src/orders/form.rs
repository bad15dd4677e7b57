//! The forms of the orders that a node can have.

use super::effect::Effect;
use super::kinds::{Input, InputKind, KINDS, OrderKind, What};
use super::seen::Seen;
use crate::session::Visitor;
use crate::{frame, html};
use farrier_access::Role;
use farrier_conductor::Settings;
use farrier_conductor::model::Node;
use maud::{Markup, html};

/// The forms for a node. Readers see them too, and learn what they would do; their orders are refused.
pub(crate) fn orders(visitor: &Visitor, node: &Node, settings: &Settings) -> Markup {
    let offered = KINDS.iter().filter(|kind| kind.is_offered(node));
    let (forbidden, allowed): (Vec<_>, Vec<_>) =
        offered.map(|kind| (kind, kind.forbidden(node))).partition(|(_, forbidden)| forbidden.is_some());
    let (verbs, others): (Vec<_>, Vec<_>) =
        allowed.iter().map(|(kind, _)| *kind).partition(|kind| matches!(kind.what, What::Verb(_)));
    let form = |kind: &OrderKind| order(visitor, node, kind, &kind.effect(node, settings));
    html! {
        section aria-labelledby="order-forms" {
            h2 #order-forms { "Orders" }
            @if visitor.identity.role != Role::Admin {
                p.notice { "The role reader may look at orders, and give none." }
            }
            @if let Some(conductor) = &node.reservation {
                p { "Conductor " (html::text(conductor)) " works on the node. Orders are possible when it has ended." }
            } @else if verbs.is_empty() && forbidden.is_empty() {
                p { "The state allows no order of the provision interface now." }
            }
            @for kind in verbs { (form(kind)) }
            @if !others.is_empty() {
                details {
                    summary { "Power and maintenance" }
                    @for kind in others { (form(kind)) }
                }
            }
            @if !forbidden.is_empty() {
                h3 { "Forbidden now" }
                ul { @for (kind, why) in &forbidden {
                    li { b { (kind.label) } ": " (html::text_or_none(why.as_deref())) }
                } }
            }
        }
    }
}

/// One order. That which may lose data is not one click away.
fn order(visitor: &Visitor, node: &Node, kind: &OrderKind, effect: &Effect) -> Markup {
    let is_plain = !effect.is_destructive && kind.inputs.is_empty();
    let form = html! {
        form method="post" action=(format!("/page/nodes/{}/orders/{}", node.uuid, kind.name)) {
            (frame::token(visitor))
            input type="hidden" name="seen" value=(Seen::of(node).text());
            p { (html::text(&effect.text)) }
            @for input in kind.inputs { (field(kind, input)) }
            @if effect.is_destructive { (confirmation(kind, node)) }
            button.destructive[effect.is_destructive] { (kind.label) }
        }
    };
    html! {
        @if !is_plain {
            details.order { summary { (kind.label) " …" @if effect.is_destructive { " (data may be lost)" } } (form) }
        } @else {
            div.order.plain { (form) }
        }
    }
}

fn confirmation(kind: &OrderKind, node: &Node) -> Markup {
    let id = format!("{}-confirm", kind.name);
    html! {
        div {
            label for=(id) { "Type the name of the node, " b { (html::text(&node.label())) } ", to confirm" }
            input id=(id) name="confirm" autocomplete="off" required maxlength="255";
        }
    }
}

/// A field of the form of an order.
pub(super) fn field(kind: &OrderKind, input: &Input) -> Markup {
    let id = format!("{}-{}", kind.name, input.name);
    html! {
        div {
            label for=(id) { (input.label) }
            @match &input.kind {
                InputKind::Text => input id=(id) name=(input.name) required[input.is_required] maxlength="4096";,
                InputKind::Password => input id=(id) name=(input.name) type="password" autocomplete="new-password"
                    required[input.is_required] maxlength="1024";,
                InputKind::Choice(choices) => {
                    select id=(id) name=(input.name) { @for (choice, _) in *choices { option value=(choice) { (choice) } } }
                    ul { @for (choice, meaning) in *choices { li { code { (choice) } ": " (meaning) } } }
                },
            }
        }
    }
}
