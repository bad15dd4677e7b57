//! Services of OpenStack, asked by REST.
//!
//! A request goes a short way: [`Neutron`] asks its [`session`], which has a token of Keystone ([`keystone`]), renews it
//! before it expires or when a service knows it no more, and sends the request ([`exchange`]). Who asks, and where, is
//! written in `clouds.yaml` ([`Cloud`]), the file that OpenStack's own clients read; so no credentials are arguments.
//!
//! Certificates are verified unless that file forbids it; no request follows a redirect, which would take the token to
//! another host; no answer is read without a bound; and credentials that Keystone refused are not tried again for a
//! while.

mod cloud;
mod error;
mod exchange;
mod keystone;
mod neutron;
mod session;
mod settings;
mod vif;

pub use cloud::Cloud;
pub use error::OpenStackError;
pub use neutron::{Network, Neutron};
pub use settings::OpenStackSettings;
pub use vif::Vif;
