//! Gives an order that a form has sent.

use super::kinds::{OrderKind, Ordered};
use super::seen::Seen;
use crate::form::Form;
use crate::refusal::{Refusal, no_such_page};
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::Redirect;
use farrier_conductor::model::Node;
use farrier_engine::Conductor;

/// `POST /page/nodes/{node}/orders/{order}`
pub(crate) async fn order(
    State(conductor): State<Conductor>,
    Extension(form): Extension<Form>,
    Path((id, name)): Path<(String, String)>,
) -> Result<Redirect, Refusal> {
    let Some(kind) = OrderKind::named(&name) else { return Err(no_such_page().await) };
    let node = conductor.node(&id).await?;
    let page = format!("/page/nodes/{}", node.uuid);
    match ordered(&conductor, &form, kind, &node).await {
        Ok(()) => Ok(Redirect::to(&format!("{page}?ordered={}", kind.name))),
        Err(refusal) => Err(refusal.of_order().back_to(page)),
    }
}

async fn ordered(conductor: &Conductor, form: &Form, kind: &OrderKind, node: &Node) -> Result<(), Refusal> {
    let seen = Seen::read(form.text("seen")).ok_or_else(|| {
        Refusal::bad_request(
            "The form does not say for which state of the node it was made. Load the page again.",
        )
    })?;
    refuse_changed(conductor, &seen, node).await?;
    refuse_unoffered(kind, node)?;
    if kind.effect(node, conductor.settings()).is_destructive && form.text("confirm") != node.label() {
        let text = format!(
            "Type the name of the node, {}, to confirm that data on its disks may be lost.",
            node.label()
        );
        return Err(Refusal::bad_request(text));
    }
    give(conductor, kind, &seen, node, arguments(kind, form)?).await
}

/// The order of a form, with its arguments.
pub(super) fn arguments(kind: &OrderKind, form: &Form) -> Result<Ordered, Refusal> {
    let ordered = kind.ordered(|name| match name {
        "password" => form.verbatim(name),
        name => form.text(name),
    });
    ordered.map_err(Refusal::bad_request)
}

/// Gives an order to a node that is as it was seen.
pub(super) async fn give(
    conductor: &Conductor,
    kind: &OrderKind,
    seen: &Seen,
    node: &Node,
    ordered: Ordered,
) -> Result<(), Refusal> {
    refuse_changed(conductor, seen, node).await?;
    refuse_unoffered(kind, node)?;
    let id = node.uuid.to_string();
    let given = match ordered {
        Ordered::Order(order) => conductor.order(&id, order).await,
        Ordered::Maintenance(begins, reason) => conductor.set_maintenance(&id, begins, reason).await,
    };
    let Err(error) = given else { return Ok(()) };
    // Another order may have come between the look at the node and this one: then that is the reason.
    refuse_changed(conductor, seen, &conductor.node(&id).await?).await?;
    Err(error.into())
}

fn refuse_unoffered(kind: &OrderKind, node: &Node) -> Result<(), Refusal> {
    match kind.is_offered(node) {
        true => Ok(()),
        false => {
            let (node, state) = (node.label(), node.provision_state);
            Err(conflict(format!("Node {node} is {state}, and cannot have this order now.")))
        }
    }
}

async fn refuse_changed(conductor: &Conductor, seen: &Seen, node: &Node) -> Result<(), Refusal> {
    match seen.changed(conductor, node).await? {
        Some(text) => Err(conflict(text)),
        None => Ok(()),
    }
}

fn conflict(text: String) -> Refusal {
    Refusal::new(StatusCode::CONFLICT, "The node cannot have this now", text)
}
