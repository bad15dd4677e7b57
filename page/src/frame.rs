//! What every page has around its content.

use crate::session::Visitor;
use crate::{html, style};
use maud::{DOCTYPE, Markup, html};

/// A whole page. Only one who is signed in, or a site without authentication, has the ways to the others.
pub(crate) fn page(title: &str, visitor: Option<&Visitor>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Farrier" }
                link rel="stylesheet" href=(style::path());
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                @if let Some(visitor) = visitor { (ways(visitor)) }
                main #content {
                    h1 { (html::text(title)) }
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
            }
            div.visitor {
                (html::text(&visitor.identity.name)) " (" (visitor.identity.role.to_string()) ")"
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
