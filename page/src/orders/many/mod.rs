//! One order for many nodes: which of them it is for, what it will do, and what became of it.

mod give;
mod preview;
mod selection;

pub(crate) use give::give;
pub(crate) use preview::preview;

use super::kinds::{KINDS, OrderKind};
use crate::refusal::{Refusal, no_such_page};

/// The path of both: a request with GET shows what the order would do, and the form there gives it.
pub(crate) const MANY: &str = "/page/many";

/// Most nodes of an order.
const MOST: usize = 500;

/// The orders that many nodes can have at once.
const NAMES: [&str; 9] = [
    "power-on",
    "power-off",
    "reboot",
    "soft-power-off",
    "soft-reboot",
    "provide",
    "clean",
    "maintenance",
    "end-maintenance",
];

/// The same.
pub(crate) fn kinds() -> impl Iterator<Item = &'static OrderKind> {
    KINDS.iter().filter(|kind| NAMES.contains(&kind.name))
}

async fn kind(name: &str) -> Result<&'static OrderKind, Refusal> {
    match kinds().find(|kind| kind.name == name) {
        Some(kind) => Ok(kind),
        None => Err(no_such_page().await),
    }
}

/// A number of nodes, in words.
fn nodes(count: usize) -> String {
    if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") }
}
