//! The list of nodes.

pub(crate) mod parts;
pub(crate) mod rows;
mod view;

use crate::address::query::ListQuery;
use crate::refusal::Refusal;
use crate::session::Visitor;
use axum::extract::{Extension, RawQuery, State};
use farrier_engine::Conductor;
use maud::Markup;

/// `GET /page/`
pub(crate) async fn list(
    State(conductor): State<Conductor>,
    Extension(visitor): Extension<Visitor>,
    RawQuery(query): RawQuery,
) -> Result<Markup, Refusal> {
    let query = ListQuery::read(query.as_deref().unwrap_or_default())?;
    let counts = conductor.store().provision_states().await?;
    let page = rows::read(&conductor, &query).await?;
    Ok(view::page(&visitor, &query, &counts, &page, conductor.now()))
}
