//! The REST interface of operators: nodes and other resources, versions, fields, patches, lists, and limits, as clients see them.

mod allocations;
mod clients;
mod extension;
mod fields;
mod limits;
mod lists;
mod metal3;
mod nodes;
mod patches;
mod resources;
mod verbs;
mod workflows;

use serde_json::Value;
use std::collections::BTreeSet;

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn names(list: &Value) -> Vec<&str> {
    list["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect()
}
