//! Conductors over one store: who leads which node, and how one gives its nodes to the next.

mod drain;
mod limits;
mod placement;
mod site;
