//! `farrier template …` and `farrier runbook …`: steps by name.

use crate::client::{NodeApi, Workflow, Workflows};
use crate::commands::steps::Steps;
use crate::view::table::table;
use clap::Subcommand;

/// Commands for deploy templates and runbooks.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Create a named list of steps. The name is a trait of the nodes that use it.
    Create {
        /// Name: a trait. Example: CUSTOM_WIPED.
        name: String,
        /// Steps: a JSON list, or a file with one. Each step has interface, step and args; in a template also a
        /// priority, in a runbook an order.
        #[arg(long, value_name = "FILE|JSON")]
        steps: Steps,
    },
    /// List all of them.
    List {
        /// Print the list as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show one as JSON.
    Show {
        /// Name or UUID of the template or runbook.
        name: String,
    },
    /// Delete one. Operations that started with it continue.
    Delete {
        /// Name or UUID of the template or runbook.
        name: String,
    },
}

impl WorkflowCommand {
    pub(crate) async fn run(self, api: &NodeApi, kind: Workflows) -> anyhow::Result<()> {
        match self {
            Self::Create { name, steps } => {
                let made = api.create_workflow(kind, &name, &steps.0).await?;
                println!("{} {}", made.uuid, made.name);
            }
            Self::List { json: true } => {
                println!("{}", serde_json::to_string_pretty(&api.workflows(kind).await?)?);
            }
            Self::List { json: false } => print!("{}", list(&api.workflows(kind).await?)),
            Self::Show { name } => {
                println!("{}", serde_json::to_string_pretty(&api.workflow(kind, &name).await?)?);
            }
            Self::Delete { name } => api.delete_workflow(kind, &name).await?,
        }
        Ok(())
    }
}

fn list(workflows: &[Workflow]) -> String {
    let row = |workflow: &Workflow| {
        let steps = workflow.steps.iter().map(|step| {
            let text = |key: &str| step[key].as_str().unwrap_or_default().to_owned();
            format!("{}.{}", text("interface"), text("step"))
        });
        [workflow.uuid.clone(), workflow.name.clone(), steps.collect::<Vec<_>>().join(", ")]
    };
    table(["UUID", "Name", "Steps"], workflows.iter().map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_names_the_steps_of_each() {
        let steps =
            vec![json!({"interface": "raid", "step": "create"}), json!({"interface": "bios", "step": "b"})];
        let one = Workflow { uuid: "u".into(), name: "CUSTOM_A".into(), steps };
        assert_eq!(list(&[one]), "UUID  Name      Steps\nu     CUSTOM_A  raid.create, bios.b\n");
    }
}
