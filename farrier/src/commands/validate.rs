//! `farrier validate`: what each interface of a node says about it.

use crate::client::NodeApi;
use crate::failure::{NOT_CONTROLLABLE, coded};
use crate::view::table::table;
use clap::Args;
use farrier_conductor::hardware_type::Validity;
use farrier_conductor::model::InterfaceKind;
use std::collections::BTreeMap;

/// Options of `farrier validate`.
#[derive(Debug, Args)]
#[group(id = "validating")]
pub(crate) struct Validate {
    /// Name or UUID of the node.
    node: String,
    /// Print the results as JSON.
    #[arg(long)]
    json: bool,
}

impl Validate {
    pub(crate) async fn run(&self, api: &NodeApi) -> anyhow::Result<()> {
        let validities = api.validate(&self.node).await?;
        match self.json {
            true => println!("{}", serde_json::to_string_pretty(&validities)?),
            false => print!("{}", shown(&validities)),
        }
        controllable(&self.node, &validities)
    }
}

fn shown(validities: &BTreeMap<InterfaceKind, Validity>) -> String {
    let row = |(kind, validity): (&InterfaceKind, &Validity)| {
        let result = validity.result.map_or("None", |result| if result { "True" } else { "False" });
        [kind.as_str().to_owned(), result.to_owned(), validity.reason.clone().unwrap_or_default()]
    };
    table(["Interface", "Result", "Reason"], validities.iter().map(row))
}

/// What deploys must have an image first, and so may be invalid.
fn controllable(node: &str, validities: &BTreeMap<InterfaceKind, Validity>) -> anyhow::Result<()> {
    let needed = [InterfaceKind::Power, InterfaceKind::Management, InterfaceKind::Boot];
    let is_invalid = |kind: &InterfaceKind| validities.get(kind).and_then(|one| one.result) == Some(false);
    let invalid: Vec<_> = needed.iter().filter(|kind| is_invalid(kind)).map(|kind| kind.as_str()).collect();
    if !invalid.is_empty() {
        let text = format!("node {node} is invalid: see the reason for {}", invalid.join(", "));
        return Err(coded(NOT_CONTROLLABLE, text));
    }
    Ok(())
}
