//! How requests are read and answers written: versions, fields, patches, lists, refusals.

pub(crate) mod asked;
pub(crate) mod body;
pub(crate) mod codes;
pub(crate) mod fields;
pub(crate) mod json_patch;
pub(crate) mod listing;
pub(crate) mod patch;
pub(crate) mod reply;
pub(crate) mod request_id;
pub(crate) mod routes;
pub(crate) mod version;
pub(crate) mod view;
