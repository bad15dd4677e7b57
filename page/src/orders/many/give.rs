//! Gives an order to many nodes.

use super::preview::left_out;
use super::selection::nodes as read;
use super::{MOST, kind, nodes};
use crate::form::Form;
use crate::orders::give::{arguments, give as give_one};
use crate::orders::seen::Seen;
use crate::refusal::Refusal;
use crate::session::Visitor;
use crate::{frame, html};
use axum::extract::{Extension, State};
use farrier_conductor::model::Node;
use farrier_engine::Conductor;
use futures_util::stream::{StreamExt, iter};
use maud::{Markup, html};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Orders that are given at a time.
const AT_A_TIME: usize = 8;

/// `POST /page/many`
pub(crate) async fn give(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    Extension(form): Extension<Form>,
) -> Result<Markup, Refusal> {
    let kind = kind(form.text("order")).await?;
    let seen = seen(&form).map_err(Refusal::of_order)?;
    let ordered = arguments(kind, &form).map_err(Refusal::of_order)?;
    let found = read(&conductor, &seen.keys().copied().collect()).await?;
    let is_destructive = found.iter().any(|node| kind.effect(node, conductor.settings()).is_destructive);
    if is_destructive && form.text("confirm") != seen.len().to_string() {
        let text = format!(
            "Type the number of nodes, {}, to confirm that data on their disks may be lost.",
            seen.len()
        );
        return Err(Refusal::bad_request(text).of_order());
    }
    let gone = seen.len() - found.len();
    let given: Vec<_> = found
        .into_iter()
        .map(|node| {
            let (conductor, ordered, seen) = (conductor.clone(), ordered.clone(), seen[&node.uuid].clone());
            async move {
                let answer = give_one(&conductor, kind, &seen, &node, ordered).await;
                (node, answer)
            }
        })
        .collect();
    let answers: Vec<(Node, Result<(), Refusal>)> = iter(given).buffered(AT_A_TIME).collect().await;
    let (mut taken, mut refused) = (Vec::new(), Vec::new());
    for (node, answer) in &answers {
        match answer {
            Ok(()) => taken.push(node),
            Err(refusal) => refused.push((node, refusal.to_string())),
        }
    }
    let content = html! {
        p.notice role="status" { "The order was accepted for " b { (nodes(taken.len())) } "." }
        @if gone > 0 { p.failure role="alert" { "Deleted meanwhile: " (nodes(gone)) "." } }
        @if !refused.is_empty() {
            p.failure role="alert" { "The order was refused for " b { (nodes(refused.len())) } "." }
            (left_out(&refused))
        }
        @if !taken.is_empty() {
            ul.names { @for node in taken {
                li { a href=(format!("/page/nodes/{}", node.uuid)) { (html::text(&node.label())) } }
            } }
        }
        p { a href="/page/" { "To the list of nodes" } }
    };
    Ok(frame::page(&format!("{} {}", kind.label, nodes(seen.len())), Some(&visitor), &content))
}

/// The nodes of the form, each as the preview has shown it.
fn seen(form: &Form) -> Result<BTreeMap<Uuid, Seen>, Refusal> {
    let nodes = form.fields().filter(|(name, _)| *name == "node").map(|(_, node)| {
        let (uuid, seen) = node.split_once('.')?;
        Some((uuid.parse().ok()?, Seen::read(seen)?))
    });
    let nodes: Option<BTreeMap<_, _>> = nodes.collect();
    let nodes = nodes.filter(|nodes| !nodes.is_empty() && nodes.len() <= MOST);
    nodes.ok_or_else(|| {
        Refusal::bad_request("The form does not say for which nodes it was made. Select them again.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_without_nodes_or_with_one_that_cannot_be_is_refused() {
        let of = |text: &str| seen(&Form::of(text.as_bytes()));
        let uuid = Uuid::nil();
        for form in [
            "",
            "node=",
            "node=x.active.1.true.true",
            &format!("node={uuid}"),
            &format!("node={uuid}.active.x.true.true"),
        ] {
            assert!(of(form).is_err(), "{form}");
        }
        let nodes =
            of(&format!("node={uuid}.deploy+failed.1.true.false&node={uuid}.active.1.true.true")).unwrap();
        assert_eq!(nodes.len(), 1, "a node has one order");
    }
}
