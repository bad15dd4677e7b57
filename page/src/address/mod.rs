//! What the addresses of the page say: which nodes the list shows, and which part of a page somebody fetches.

pub(crate) mod cursor;
pub(crate) mod part;
pub(crate) mod query;

/// The path of the stream of changes.
pub(crate) const EVENTS: &str = "/page/events";

/// The path of the parts of the list.
pub(crate) const PARTS: &str = "/page/parts";

/// Whether a page asks by itself for what is at a path, without its user.
pub(crate) fn is_asked_without_user(path: &str) -> bool {
    path == EVENTS || path == PARTS
}
