//! Extensions of Farrier, below a path of their own, which clients of Ironic never ask.

mod console;
mod deployment;
mod disk;
mod events;
mod evidence;
mod logs;
mod sensors;

pub use deployment::{Deployment, DeploymentOrdered};
pub use disk::ExportRequest;

use axum::Router;
use axum::routing::{MethodRouter, get, put};
use farrier_engine::Conductor;

/// Where all of them are.
const ROOT: &str = "/farrier/v1";

/// The routes, with their paths below the root.
pub(super) fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![
        ("/nodes/{node}/events", get(events::events)),
        ("/nodes/{node}/explanation", get(evidence::explanation)),
        ("/nodes/{node}/timeline", get(evidence::timeline)),
        ("/nodes/{node}/certificates", get(evidence::certificates)),
        ("/nodes/{node}/logs", get(logs::list)),
        ("/nodes/{node}/logs/{name}", get(logs::archive)),
        ("/nodes/{node}/console", get(console::part).post(console::typed)),
        ("/nodes/{node}/deployment", put(deployment::order)),
        ("/nodes/{node}/sensors", get(sensors::read)),
        ("/nodes/{node}/disk/export", put(disk::export).delete(disk::release)),
    ]
}

/// All of them.
pub(super) fn router() -> Router<Conductor> {
    let route = |router: Router<Conductor>, (path, methods)| router.route(&format!("{ROOT}{path}"), methods);
    routes().into_iter().fold(Router::new(), route)
}
