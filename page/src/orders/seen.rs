//! What a form was made for: an order that was meant for a node in another state is not given.

use farrier_conductor::model::{Node, ProvisionState};
use farrier_engine::Conductor;
use farrier_engine::store::StoreError;
use time::OffsetDateTime;

/// The node as its page has shown it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    state: ProvisionState,
    since: OffsetDateTime,
    maintenance: bool,
    power_target: bool,
}

impl Seen {
    pub(crate) fn of(node: &Node) -> Self {
        Self {
            state: node.provision_state,
            since: node.provision_updated_at,
            maintenance: node.maintenance,
            power_target: node.target_power_state.is_some(),
        }
    }

    /// As a form sends it.
    pub(crate) fn text(&self) -> String {
        let since = self.since.unix_timestamp_nanos();
        format!("{}.{since}.{}.{}", self.state, self.maintenance, self.power_target)
    }

    /// What a form has sent; nothing where it is none.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let [state, since, maintenance, power_target] = text.split('.').collect::<Vec<_>>()[..] else {
            return None;
        };
        Some(Self {
            state: ProvisionState::named(state)?,
            since: OffsetDateTime::from_unix_timestamp_nanos(since.parse().ok()?).ok()?,
            maintenance: maintenance.parse().ok()?,
            power_target: power_target.parse().ok()?,
        })
    }

    /// How a node differs from what was seen, and who has ordered that, as sentences; nothing where it does not.
    pub(crate) async fn changed(
        &self,
        conductor: &Conductor,
        node: &Node,
    ) -> Result<Option<String>, StoreError> {
        if *self == Self::of(node) {
            return Ok(None);
        }
        let history = conductor.store().history(node.uuid).await?;
        let later = history.iter().rev().take_while(|entry| entry.created_at >= self.since);
        let by = later.filter_map(|entry| entry.user.as_deref()).next();
        let by = by.map(|user| format!(" User {user} gave it the last order.")).unwrap_or_default();
        let how = match self.state == node.provision_state {
            true => format!("it is still {}, and is not as it was", node.provision_state),
            false => format!("it was {}, and is {} now", self.state, node.provision_state),
        };
        Ok(Some(format!("Node {} has changed since its page was loaded: {how}.{by}", node.label())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_conductor::model::NewNode;

    #[test]
    fn a_form_sends_what_its_page_has_shown() {
        let mut node = Node::enrol(NewNode::default(), OffsetDateTime::now_utc());
        for state in ProvisionState::ALL {
            node.provision_state = *state;
            node.maintenance = !node.maintenance;
            let seen = Seen::of(&node);
            assert_eq!(Seen::read(&seen.text()), Some(seen));
        }
        for text in
            ["", "active", "active.1.true", "active.x.true.true", "no.1.true.true", "active.1.true.true.1"]
        {
            assert_eq!(Seen::read(text), None, "{text}");
        }
        let digits = format!("active.{}.true.true", "9".repeat(40));
        assert_eq!(Seen::read(&digits), None);
    }
}
