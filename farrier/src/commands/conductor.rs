//! `farrier conductor …`: the conductors over one database.

use crate::client::{ConductorState, NodeApi};
use crate::view::table::{flag, table};
use crate::view::times_of_day::text;
use clap::Subcommand;

/// Commands for conductors.
#[derive(Debug, Subcommand)]
pub(crate) enum ConductorCommand {
    /// List the conductors of the database: the group and the hardware types of each, and whether it is alive.
    List {
        /// Print the list as JSON.
        #[arg(long)]
        json: bool,
    },
}

impl ConductorCommand {
    pub(crate) async fn run(self, api: &NodeApi) -> anyhow::Result<()> {
        let Self::List { json } = self;
        let conductors = api.conductors().await?;
        match json {
            true => println!("{}", serde_json::to_string_pretty(&conductors)?),
            false => print!("{}", list(&conductors)),
        }
        Ok(())
    }
}

fn list(conductors: &[ConductorState]) -> String {
    let row = |conductor: &ConductorState| {
        [
            conductor.hostname.clone(),
            conductor.conductor_group.clone(),
            flag(conductor.alive),
            conductor.drivers.join(", "),
            text(conductor.created_at),
            text(conductor.updated_at),
        ]
    };
    let columns = ["Hostname", "Conductor Group", "Alive", "Drivers", "Created At", "Updated At"];
    table(columns, conductors.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn n28_a_list_has_groups_and_hardware_types_of_each_conductor() {
        let times = |at| json!({"created_at": "1970-01-01T00:00:00Z", "updated_at": at});
        let state = |name: &str, group: &str, alive: bool, drivers: &[&str]| {
            let mut state = times("1970-01-01T00:01:00Z");
            state["hostname"] = json!(name);
            state["conductor_group"] = json!(group);
            state["alive"] = json!(alive);
            state["drivers"] = json!(drivers);
            serde_json::from_value::<ConductorState>(state).unwrap()
        };
        let listed =
            list(&[state("c1", "", true, &["ipmi", "redfish"]), state("c2", "rack1", false, &["ipmi"])]);
        let lines: Vec<_> = listed.lines().map(str::trim_end).collect();
        assert_eq!(
            lines,
            [
                "Hostname  Conductor Group  Alive  Drivers        Created At            Updated At",
                "c1                         True   ipmi, redfish  1970-01-01T00:00:00Z  1970-01-01T00:01:00Z",
                "c2        rack1            False  ipmi           1970-01-01T00:00:00Z  1970-01-01T00:01:00Z",
            ]
        );
    }
}
