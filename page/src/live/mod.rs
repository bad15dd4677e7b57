//! Changes of what a page shows, while somebody looks at it: a stream names the parts that have changed, and the page
//! fetches these. Parts are elements with an `id` and a version.

pub(crate) mod events;
pub(crate) mod watch;

use crate::address::EVENTS;
use axum::Router;
use axum::extract::FromRef;
use axum::routing::get;
use farrier_engine::Conductor;
use watch::Watch;

/// What the handlers need.
#[derive(Clone)]
pub(crate) struct Live {
    conductor: Conductor,
    watch: Watch,
}

impl FromRef<Live> for Conductor {
    fn from_ref(live: &Live) -> Self {
        live.conductor.clone()
    }
}

/// The route of the stream.
pub(crate) fn router(conductor: Conductor) -> Router {
    let watch = Watch::new(conductor.clone());
    Router::new().route(EVENTS, get(events::stream)).with_state(Live { conductor, watch })
}
