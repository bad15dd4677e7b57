//! Who uses the page: a browser has an identity, by which the conductor finds the credentials that signed it in.

mod browser_id;
mod cookie;
mod credentials;
mod form_token;
mod sessions;

pub(crate) use browser_id::BrowserId;
pub(crate) use cookie::Cookie;
pub(crate) use credentials::Credentials;
pub(crate) use form_token::FormTokens;
pub(crate) use sessions::Sessions;

use farrier_access::Identity;

/// The user of a request. Handlers find it among the extensions of their request.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    /// Who it is.
    pub(crate) identity: Identity,
    /// What each form that is shown to this one has to have.
    pub(crate) form_token: String,
    /// Whether this one has signed in, as opposed to one of a site without authentication.
    pub(crate) is_signed_in: bool,
}
