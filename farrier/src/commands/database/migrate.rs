//! `farrier migrate`.

use super::OfDatabase;
use clap::Args;
use farrier_engine::store::Migrated;

/// Options of `farrier migrate`.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    #[command(flatten)]
    database: OfDatabase,
}

impl Migrate {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let store = self.database.database().connect().await?;
        print!("{}", report(&store.migrate().await?));
        Ok(())
    }
}

/// What was done, and who may use the tables now.
fn report(migrated: &Migrated) -> String {
    let Migrated { layout, compatible_from, applied } = migrated;
    let mut text = String::new();
    for (version, name) in applied {
        text += &format!("Migration {version} ({name}) carried out.\n");
    }
    if applied.is_empty() {
        text += "No migration was necessary.\n";
    }
    text + &format!(
        "The tables have layout {layout}. Versions of farrier with layout {compatible_from} or later can use them.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_was_done_and_who_may_use_the_tables() {
        let migrated = Migrated { layout: 2, compatible_from: 1, applied: vec![(2, "lists")] };
        let after = "The tables have layout 2. Versions of farrier with layout 1 or later can use them.\n";
        assert_eq!(report(&migrated), format!("Migration 2 (lists) carried out.\n{after}"));
        let nothing = Migrated { applied: Vec::new(), ..migrated };
        assert_eq!(report(&nothing), format!("No migration was necessary.\n{after}"));
    }
}
