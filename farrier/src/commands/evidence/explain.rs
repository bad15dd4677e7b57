//! `farrier explain`: what a node waits for, on what evidence, and what to do.

use crate::client::NodeApi;
use crate::view::times_of_day::text;
use clap::Args;
use farrier_conductor::model::clock::in_two_units;
use farrier_engine::explain::Explanation;

/// Options of `farrier explain`.
#[derive(Debug, Args)]
#[group(id = "explaining")]
pub(crate) struct Explain {
    /// Name or UUID of the node.
    node: String,
    /// Print the explanation as JSON.
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(crate) async fn run(&self, api: &NodeApi) -> anyhow::Result<()> {
        let explanation = api.explain(&self.node).await?;
        match self.json {
            true => println!("{}", serde_json::to_string_pretty(&explanation)?),
            false => print!("{}", shown(&explanation)),
        }
        Ok(())
    }
}

fn shown(explanation: &Explanation) -> String {
    let label = explanation.name.clone().unwrap_or_else(|| explanation.node.to_string());
    let mut lines = vec![
        format!("Node {label} is {:?}.", explanation.provision_state.as_str()),
        explanation.waits_for.clone(),
    ];
    lines.extend(
        explanation.cause.as_ref().map(|cause| format!("Cause, as it seems: {}.", plain(&cause.to_string()))),
    );
    lines.push(format!(
        "Since: {} ({} ago)",
        text(explanation.since),
        in_two_units(explanation.at - explanation.since)
    ));
    let until = explanation.until.map(|until| {
        let left = in_two_units(until - explanation.at);
        let when = if explanation.is_overdue { format!("{left} ago") } else { format!("in {left}") };
        format!("{} ({when})", text(until))
    });
    lines.push(format!("Until: {}", until.unwrap_or_else(|| "no time is set".to_owned())));
    lines.push(format!("What to do: {}", explanation.next_action));
    lines.extend(explanation.commands.iter().map(|command| format!("    {command}")));
    lines.push("Evidence:".to_owned());
    let width = explanation.evidence.iter().map(|one| one.what.len()).max().unwrap_or_default();
    let evidence =
        explanation.evidence.iter().map(|one| format!("    {:width$}  {}", one.what, plain(&one.said)));
    lines.extend(evidence);
    lines.join("\n") + "\n"
}

/// What machines say is shown without control characters, which a terminal would obey.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::ProvisionState;
    use farrier_engine::evidence::diagnosis::Cause;
    use farrier_engine::explain::Evidence;
    use time::{Duration, OffsetDateTime};

    #[test]
    fn an_explanation_is_read_from_above() {
        let at = OffsetDateTime::UNIX_EPOCH + Duration::HOUR;
        let evidence = |what: &str, said: &str| Evidence { what: what.into(), said: said.into() };
        let mut explanation = Explanation {
            node: uuid::Uuid::nil(),
            name: Some("horse".into()),
            provision_state: ProvisionState::CleanWait,
            waits_for: "It waits for its agent to end the step deploy.erase_devices.".into(),
            since: at - Duration::minutes(2),
            until: Some(at + Duration::minutes(28)),
            is_overdue: false,
            cause: None,
            evidence: vec![evidence("power", "power on"), evidence("console", "a\u{1b}[2J")],
            next_action: "Nothing before the deadline.".into(),
            commands: vec!["farrier node abort horse".into()],
            diagnosis: None,
            at,
        };
        let expected = "\
Node horse is \"clean wait\".
It waits for its agent to end the step deploy.erase_devices.
Since: 1970-01-01T00:58:00Z (2 min ago)
Until: 1970-01-01T01:28:00Z (in 28 min)
What to do: Nothing before the deadline.
    farrier node abort horse
Evidence:
    power    power on
    console  a[2J
";
        assert_eq!(shown(&explanation), expected);
        (explanation.until, explanation.is_overdue) = (Some(at - Duration::SECOND), true);
        assert!(shown(&explanation).contains("Until: 1970-01-01T00:59:59Z (1 s ago)"));
        explanation.cause = Some(Cause {
            what: "no network card of the machine has a link".into(),
            named_by: "the agent's doctor, in the event log: link".into(),
            next: "check the cable\u{7}".into(),
        });
        let cause = "Cause, as it seems: no network card of the machine has a link (the agent's doctor, in the event log: link); \
                     check the cable.";
        assert_eq!(shown(&explanation).lines().nth(2), Some(cause));
        explanation.until = None;
        assert!(shown(&explanation).contains("Until: no time is set"));
    }
}
