//! What the page knows of its users: who they are, for how long, and which forms are theirs.

use crate::address::is_asked_without_user;
use crate::session::{BrowserId, Cookie, FormTokens, Sessions, Visitor};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use farrier_access::{Authorization, Denial};
use farrier_engine::Conductor;
use std::sync::Arc;

/// How browsers reach the page.
#[derive(Debug, Clone, Copy)]
pub struct Site {
    /// Whether by HTTPS, so that the cookie is sent by HTTPS alone.
    pub is_https: bool,
}

/// Authorization and sessions of the users of a page.
pub(crate) struct Access {
    pub(crate) conductor: Conductor,
    pub(crate) authorization: Arc<dyn Authorization>,
    pub(crate) sessions: Sessions,
    pub(crate) form_tokens: FormTokens,
    pub(crate) cookie: Cookie,
}

impl Access {
    pub(crate) fn new(conductor: Conductor, authorization: Arc<dyn Authorization>, site: Site) -> Self {
        let cookie = Cookie::new(&conductor.settings().conductor_name, site.is_https);
        let (sessions, form_tokens) = (Sessions::default(), FormTokens::new());
        Self { conductor, authorization, sessions, form_tokens, cookie }
    }

    /// The browser that sent a request.
    pub(crate) fn browser(&self, headers: &HeaderMap) -> Option<BrowserId> {
        self.cookie.read(headers)
    }

    /// Who sent a request: one whose browser is signed in, or whom the authorization knows without that, such as everyone
    /// where there is no authentication. A session outlives credentials that are refused: one wrong answer of a service
    /// that knows them ends none. What a page asks for by itself keeps no session alive.
    pub(crate) async fn visitor(&self, browser: &BrowserId, request: &Parts) -> Result<Visitor, Denial> {
        let is_used = !is_asked_without_user(request.uri.path());
        let credentials = self.sessions.credentials(browser, self.conductor.now(), is_used);
        let mut request = request.clone();
        if let Some(credentials) = &credentials {
            credentials.present(&mut request.headers);
        }
        let identity = self.authorization.identify(&request).await?;
        let form_token = self.form_tokens.of(browser);
        Ok(Visitor { identity, form_token, is_signed_in: credentials.is_some() })
    }
}
