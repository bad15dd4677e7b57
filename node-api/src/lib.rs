//! The node API of Ironic, on the engine of `farrier-conductor`: what operators, agents and firmware call.
//!
//! [`ramdisk::ramdisk_router`] serves what agents call and can be mounted in any axum application,
//! [`nodes::nodes_router`] serves operators, behind [`authorization`], and [`ramdisk::boot_router`] serves firmware that
//! asks what to boot. What comes from outside is read, and what goes out is written, in one place for all of them.
//!
//! ```no_run
//! use farrier_engine::Conductor;
//! use farrier_node_api::ramdisk::ramdisk_router;
//!
//! # async fn serve(conductor: Conductor) -> std::io::Result<()> {
//! let listener = tokio::net::TcpListener::bind("192.0.2.1:6385").await?;
//! axum::serve(listener, ramdisk_router(conductor)).await
//! # }
//! ```

pub mod authorization;
pub mod extension;
#[cfg(feature = "metrics")]
pub mod metrics;
pub mod nodes;
pub mod ramdisk;
pub mod reference;
mod resources;
mod wire;

pub use wire::asked::{PublicUrl, Scheme};
pub use wire::codes::{ERROR_CODE_HEADER, FOREIGN_REQUEST, INVALID_REQUEST, REQUEST_ERRORS};
pub use wire::version::description;
