//! Ironic's REST interface: versions, fields, patches, lists, ports and limits, as clients see them.

mod clients;
mod fields;
mod limits;
mod lists;
mod metal3;
mod patches;
mod verbs;

use serde_json::Value;
use std::collections::BTreeSet;

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn names(list: &Value) -> Vec<&str> {
    list["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect()
}
