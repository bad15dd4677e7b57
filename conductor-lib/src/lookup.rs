//! Lookup: a machine in its ramdisk asks which node it is (conductor contract 8.2 and 8.4).

use crate::conductor::Conductor;
use crate::error::Error;
use crate::model::{MacAddress, Node};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use farrier_protocol::lookup::MASKED;
use rand::TryRngCore;
use rand::rngs::OsRng;
use uuid::Uuid;

/// Bytes of randomness in a token; 43 characters as text.
const TOKEN_BYTES: usize = 32;

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

impl Conductor {
    /// Finds the node of a machine. With `with_token` its token is issued, once per boot.
    ///
    /// # Errors
    ///
    /// [`Error::LookupFailed`] for unknown machines, ambiguous addresses and nodes that expect no
    /// agent alike; [`Error::NodeLocked`] when the token cannot be stored now.
    pub async fn lookup(&self, query: &LookupQuery, with_token: bool) -> Result<LookupAnswer, Error> {
        let uuid = match query.node_uuid {
            Some(uuid) => uuid,
            None => match self.store().owners(&query.addresses).await?[..] {
                [owner] => owner,
                _ => return Err(Error::LookupFailed),
            },
        };
        let node = self.store().get(uuid).await?.ok_or(Error::LookupFailed)?;
        if !node.provision_state.allows_lookup(false) {
            return Err(Error::LookupFailed);
        }
        let token = match &node.driver_internal_info.agent.agent_secret_token {
            _ if !with_token => None,
            // A token that was handed out is never told again: nothing is stored, nothing is locked.
            Some(_) => Some(MASKED.to_owned()),
            None => Some(self.issue_token(uuid).await?),
        };
        Ok(LookupAnswer { node: node.masked(), token })
    }

    async fn issue_token(&self, uuid: Uuid) -> Result<String, Error> {
        let mut task = self.try_acquire(uuid).await?;
        if !task.node.provision_state.allows_lookup(false) {
            return Err(Error::LookupFailed);
        }
        let session = &mut task.node.driver_internal_info.agent;
        if session.agent_secret_token.is_some() {
            return Ok(MASKED.to_owned());
        }
        let token = new_token();
        session.agent_secret_token = Some(token.clone());
        task.save().await?;
        tracing::info!(node = %task.node.name, "agent token issued");
        Ok(token)
    }
}

fn new_token() -> String {
    let mut bytes = [0; TOKEN_BYTES];
    OsRng.try_fill_bytes(&mut bytes).expect("the kernel has random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::lookup::MIN_TOKEN_LENGTH;

    #[test]
    fn s24_tokens_are_long_random_and_safe_in_a_url() {
        let (first, second) = (new_token(), new_token());
        assert_ne!(first, second);
        assert_eq!(first.len(), 43);
        assert!(first.len() >= MIN_TOKEN_LENGTH);
        assert!(first.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'));
    }
}
