//! The web page of a conductor: the nodes, what each of them does and waits for, and the orders that it can have.
//!
//! [`page_router`] serves it below [`ROOT`], beside any other interface. It signs operators in by an [`Authorization`], and
//! needs no script in the browser; with script, it shows changes as they happen. HTML is made by `maud`, which escapes each text that it is given.
//!
//! ```no_run
//! use farrier_access::Authorization;
//! use farrier_engine::Conductor;
//! use farrier_page::{Site, page_router};
//! use std::sync::Arc;
//!
//! # async fn serve(conductor: Conductor, operators: Arc<dyn Authorization>) -> std::io::Result<()> {
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:6386").await?;
//! axum::serve(listener, page_router(conductor, operators, Site { is_https: false })).await
//! # }
//! ```

mod access;
mod address;
mod admission;
mod assets;
mod estate;
mod form;
mod frame;
mod html;
mod live;
mod node;
mod nodes;
mod orders;
mod refusal;
mod session;
mod sign_in;

pub use access::Site;

use access::Access;
use axum::routing::{any, get, post};
use axum::{Router, middleware};
use farrier_access::Authorization;
use farrier_engine::Conductor;
use std::sync::Arc;

/// Where all paths of the page begin.
pub const ROOT: &str = "/page";

/// The page of a conductor, whose operators an authorization identifies by the credentials of the REST interface.
pub fn page_router(conductor: Conductor, authorization: Arc<dyn Authorization>, site: Site) -> Router {
    let access = Arc::new(Access::new(conductor.clone(), authorization, site));
    let signed_in = Router::new()
        .route("/page/", get(nodes::list))
        .route(frame::ESTATE, get(estate::show))
        .route("/page/nodes/{node}", get(node::overview::show))
        .route("/page/nodes/{node}/timeline", get(node::timeline::show))
        .route("/page/nodes/{node}/explanation", get(node::explanation::show))
        .route("/page/nodes/{node}/hardware", get(node::hardware::show))
        .route("/page/nodes/{node}/interfaces", get(node::interfaces::show))
        .route("/page/nodes/{node}/history", get(node::history::show))
        .route("/page/nodes/{node}/logs", get(node::logs::show))
        .route("/page/nodes/{node}/logs/{name}", get(node::logs::file))
        .route("/page/nodes/{node}/orders/{order}", post(orders::give::order))
        .route(address::PARTS, get(nodes::parts::show))
        .route(orders::many::MANY, get(orders::many::preview).post(orders::many::give))
        .with_state(conductor.clone())
        .merge(live::router(conductor))
        .route("/page/sign-out", post(sign_in::sign_out).with_state(Arc::clone(&access)))
        .route("/page/{*path}", any(refusal::no_such_page))
        .method_not_allowed_fallback(refusal::wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&access), admission::admit));
    let open = Router::new()
        .route("/page", get(sign_in::to_the_list))
        .route("/page/sign-in", get(sign_in::show).post(sign_in::sign_in))
        .with_state(Arc::clone(&access))
        .merge(assets::router());
    open.merge(signed_in).layer(middleware::from_fn_with_state(access, admission::browser::recognise))
}
