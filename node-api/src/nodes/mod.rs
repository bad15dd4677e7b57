//! What operators call: Ironic's interface of nodes, ports and what belongs to them (section 8.1).
//!
//! Each room has the routes of one resource. What a field is called, since when it is there and who may set it is in
//! one table, and so are the verbs of the provision interface and the words that choose nodes.

mod console;
mod firmware;
mod indicators;
mod kept;
mod list;
mod maintenance;
mod management;
mod provision;
mod record;
mod states;
mod traits;
mod vendor;
mod vifs;
mod virtual_media;

pub use maintenance::MaintenanceRequest;
pub use provision::{ProvisionRequest, ProvisionVerb, VERBS};
pub use states::PowerRequest;

use crate::extension;
use crate::ramdisk::inspection;
use crate::resources::{allocations, collection, drivers, history, ports, raid};
use crate::wire::reply::{fallback, wrong_method};
use crate::wire::routes::{everywhere, part};
use crate::wire::version::{describe_asked, describe_version, negotiate, without_suffix};
use crate::wire::{body, request_id};
use axum::extract::DefaultBodyLimit;
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Router, middleware};
use farrier_engine::Conductor;

/// The routes for operators. They do not authenticate: put them behind an
/// [authorization](crate::authorization::authorized), or serve them on a loopback address.
pub fn nodes_router(conductor: Conductor) -> Router {
    let routes = everywhere(all_routes())
        .route("/", get(describe_asked))
        .route("/v1", get(describe_version))
        .route("/v1/", get(describe_version))
        .merge(extension::router())
        .fallback(fallback)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn(body::read))
        .with_state(conductor);
    // What changes a path stands before the routes that are found by it.
    Router::new()
        .fallback_service(routes)
        .layer(middleware::from_fn(without_suffix))
        .layer(middleware::from_fn(negotiate))
        .layer(middleware::from_fn(request_id::identify))
}

/// Those of every resource.
pub(super) fn all_routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    let rooms = [
        routes(),
        ports::routes(),
        drivers::routes(),
        inspection::node_routes(),
        raid::routes(),
        history::routes(),
        allocations::routes(),
        collection::routes(),
    ];
    rooms.into_iter().flatten().collect()
}

fn routes() -> Vec<(&'static str, MethodRouter<Conductor>)> {
    vec![
        ("/nodes", get(list::brief).post(record::create)),
        ("/nodes/detail", get(list::detail)),
        ("/chassis/{chassis}/nodes", get(list::of_chassis)),
        ("/shards", get(list::shards)),
        ("/nodes/states/console/{node}", get(console::show)),
        ("/nodes/{node}", get(record::show).patch(record::update).delete(record::delete)),
        ("/nodes/{node}/validate", get(record::validate)),
        ("/nodes/{node}/maintenance", put(maintenance::begin).delete(maintenance::end)),
        ("/nodes/{node}/states", get(states::show)),
        ("/nodes/{node}/states/provision", put(provision::order)),
        ("/nodes/{node}/states/power", put(states::power)),
        ("/nodes/{node}/states/boot_mode", put(firmware::set_boot_mode)),
        ("/nodes/{node}/states/secure_boot", put(firmware::set_secure_boot)),
        ("/nodes/{node}/states/console", get(console::show).put(console::switch)),
        (
            "/nodes/{node}/management/boot_device",
            get(management::boot_device).put(management::set_boot_device),
        ),
        ("/nodes/{node}/management/boot_device/supported", get(management::boot_devices)),
        ("/nodes/{node}/management/inject_nmi", put(management::inject_nmi)),
        ("/nodes/{node}/management/indicators", get(indicators::components)),
        ("/nodes/{node}/management/indicators/{component}", get(indicators::list)),
        (
            "/nodes/{node}/management/indicators/{component}/{indicator}",
            get(indicators::state).put(indicators::set_state),
        ),
        ("/nodes/{node}/traits", get(traits::list).put(traits::replace).delete(traits::clear)),
        ("/nodes/{node}/traits/{trait}", put(traits::add).delete(traits::remove)),
        ("/nodes/{node}/vifs", part(vifs::SINCE, get(vifs::list).post(vifs::attach))),
        ("/nodes/{node}/vifs/{vif}", part(vifs::SINCE, delete(vifs::detach))),
        ("/nodes/{node}/vendor_passthru/methods", get(vendor::methods)),
        ("/nodes/{node}/vendor_passthru", post(vendor::call).put(vendor::call).delete(vendor::call)),
        (
            "/nodes/{node}/vmedia",
            part(
                virtual_media::CHANGES,
                get(virtual_media::list).post(virtual_media::attach).delete(virtual_media::detach),
            ),
        ),
        ("/nodes/{node}/bios", part(firmware::SETTINGS, get(firmware::settings))),
        ("/nodes/{node}/bios/{setting}", part(firmware::SETTINGS, get(firmware::setting))),
        ("/nodes/{node}/firmware", part(firmware::VERSIONS, get(firmware::versions))),
    ]
}
