//! Lookup: a machine in its ramdisk asks which node it is (conductor contract 8.2 and 8.4).

use crate::conductor::Ramdisks;
use crate::error::Error;
use crate::services::ENDED;
use crate::store::{Record, StoreError};
use farrier_conductor::agent::token;
use farrier_conductor::model::{MacAddress, Node};
use farrier_protocol::lookup::MASKED;
use uuid::Uuid;

/// What the machine knows about itself.
#[derive(Debug, Clone, Default)]
pub struct LookupQuery {
    /// Hardware addresses; any of them is enough.
    pub addresses: Vec<MacAddress>,
    /// Identity, where the machine knows it; it wins over the addresses.
    pub node_uuid: Option<Uuid>,
}

/// The node, and the token that it shares with the conductor.
#[derive(Debug)]
pub struct LookupAnswer {
    /// The node, secrets masked.
    pub node: Node,
    /// The token in clear, or its mask when it was handed out already.
    pub token: Option<String>,
}

impl Ramdisks {
    /// Finds the node of a machine. With `with_token` its token is issued, once per boot.
    ///
    /// # Errors
    ///
    /// [`Error::LookupFailed`] for unknown machines, ambiguous addresses and nodes that expect no
    /// agent alike; [`StoreError::Held`] when the node is worked on, so that no token can be issued now,
    /// or its agent has the order to reboot it.
    pub async fn lookup(&self, query: &LookupQuery, with_token: bool) -> Result<LookupAnswer, Error> {
        let uuid = match query.node_uuid {
            Some(uuid) => uuid,
            None => match self.0.store().owners(&query.addresses).await?[..] {
                [owner] => owner,
                _ => return Err(Error::LookupFailed),
            },
        };
        let record = self.0.store().get(uuid).await?.ok_or(Error::LookupFailed)?;
        let is_fast_track_able = self.0.services().is_fast_track_able(&record.node);
        if !record.node.provision_state.allows_lookup(is_fast_track_able) {
            return Err(Error::LookupFailed);
        }
        let token = match &record.session.agent_secret_token {
            _ if !with_token => None,
            // The agent that has the token is about to leave. The next one may be here already, and must not be told
            // that its token is somebody else's, which ends it.
            Some(_) if record.session.agent_told_to_reboot => return Err(held(&record.node)),
            // A token that was handed out is never told again: nothing is stored.
            Some(_) => Some(MASKED.to_owned()),
            None => Some(self.issue_token(&record).await?),
        };
        Ok(LookupAnswer { node: record.node.shown(&record.session), token })
    }

    /// The machine of a node that is worked on may be about to be powered off, or on: a lookup is refused then, and repeated.
    async fn issue_token(&self, seen: &Record) -> Result<String, Error> {
        let token = token::new();
        let is_own = self.0.services().own_leases.has(seen.node.uuid);
        if is_own || !self.0.store().issue_token(seen, &token, ENDED).await? {
            return Err(held(&seen.node));
        }
        tracing::info!(node = %seen.node.label(), "agent token issued");
        Ok(token)
    }
}

fn held(node: &Node) -> Error {
    let holder = node.reservation.clone().unwrap_or_else(|| "another request".to_owned());
    StoreError::Held { node: node.uuid, holder }.into()
}
