//! What every page has around its content.

use crate::assets::{HTMX, LIVE, STYLE};
use crate::html;
use crate::session::Visitor;
use maud::{DOCTYPE, Markup, html};

/// The path of the page about all nodes, to which each page leads.
pub(crate) const ESTATE: &str = "/page/estate";

/// What htmx may do: nothing with addresses, and nothing with an answer that is a refusal.
const HTMX_CONFIG: &str = r#"{"history":false,"includeIndicatorCSS":false,"noSwap":[204,304,"4xx","5xx"]}"#;

/// How a page is kept as it is now.
pub(crate) struct Live {
    /// The address of its stream.
    pub(crate) events: String,
    /// Where rows and other parts of a list are.
    pub(crate) parts: Option<String>,
    /// The page that has the parts of a node.
    pub(crate) page: Option<String>,
}

/// A whole page, as it was at one moment. Only one who is signed in, or a site without authentication, has the ways to the
/// others.
pub(crate) fn page(title: &str, visitor: Option<&Visitor>, content: &Markup) -> Markup {
    whole(title, visitor, None, content)
}

/// A whole page that shows changes.
pub(crate) fn live_page(title: &str, visitor: &Visitor, live: &Live, content: &Markup) -> Markup {
    whole(title, Some(visitor), Some(live), content)
}

fn whole(title: &str, visitor: Option<&Visitor>, live: Option<&Live>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Farrier" }
                link rel="stylesheet" href=(STYLE.path());
                @if live.is_some() {
                    meta name="htmx-config" content=(HTMX_CONFIG);
                    script src=(HTMX.path()) defer {}
                    script src=(LIVE.path()) defer {}
                }
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                @if let Some(visitor) = visitor { (ways(visitor)) }
                main #content data-events=[live.map(|live| &live.events)] data-parts=[live.and_then(|live| live.parts.as_ref())]
                    data-page=[live.and_then(|live| live.page.as_ref())] {
                    h1 { (html::text(title)) }
                    @if live.is_some() { p #news.news role="status" {} }
                    (content)
                }
            }
        }
    }
}

fn ways(visitor: &Visitor) -> Markup {
    html! {
        header {
            nav aria-label="Pages" {
                a href="/page/" { "Nodes" }
                a href="/page/?needs=operator" { "Nodes that need an operator" }
                a href=(ESTATE) { "Estate" }
            }
            div.visitor {
                span { (html::text(&visitor.identity.name)) " (" (visitor.identity.role.to_string()) ")" }
                @if visitor.is_signed_in {
                    form method="post" action="/page/sign-out" {
                        (token(visitor))
                        button { "Sign out" }
                    }
                }
            }
        }
    }
}

/// What proves that a form is of this page.
pub(crate) fn token(visitor: &Visitor) -> Markup {
    html! { input type="hidden" name="form_token" value=(visitor.form_token); }
}

/// A message about what the visitor has done.
pub(crate) fn notice(text: &str) -> Markup {
    html! { p.notice role="status" { (html::text(text)) } }
}
