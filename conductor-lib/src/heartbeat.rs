//! Heartbeats: which are accepted, and what each sets off (conductor contract 2.2, 2.4 and 8.3).

use crate::conductor::Conductor;
use crate::error::Error;
use crate::events::EventKind;
use crate::model::{AgentSession, ProvisionState};
use farrier_protocol::heartbeat::Heartbeat;
use reqwest::Url;
use time::OffsetDateTime;
use uuid::Uuid;

impl Conductor {
    /// Takes a heartbeat of the node with this name or identity. Success means accepted and no
    /// more: the work it sets off runs in the background, and is left to the next heartbeat when
    /// the node is locked.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] for a heartbeat that is not the agent's, [`Error::NodeNotFound`], and
    /// [`Error::NodeLocked`] when the callback URL cannot be recorded now (lesson F40).
    pub async fn heartbeat(&self, id: &str, heartbeat: Heartbeat) -> Result<(), Error> {
        let node = self.find(id).await?;
        check(&node.driver_internal_info.agent, &heartbeat, self.settings().agent.require_tls)?;
        if node.driver_internal_info.agent.agent_url.is_none() && self.is_locked(node.uuid) {
            return Err(Error::NodeLocked(node.name));
        }
        let conductor = self.clone();
        self.supervise(node.uuid, async move {
            if let Err(error) = conductor.process_heartbeat(node.uuid, heartbeat).await {
                tracing::debug!(node = %node.name, "heartbeat dropped: {error}");
            }
        });
        Ok(())
    }

    async fn process_heartbeat(&self, uuid: Uuid, heartbeat: Heartbeat) -> Result<(), Error> {
        let mut task = self.try_acquire(uuid).await?;
        // The record may have changed since the heartbeat was accepted without the lock.
        let session = &mut task.node.driver_internal_info.agent;
        check(session, &heartbeat, self.settings().agent.require_tls)?;
        let first = session.agent_url.is_none();
        session.agent_url = Some(heartbeat.callback_url);
        session.agent_version = heartbeat.agent_version;
        session.agent_last_heartbeat = Some(OffsetDateTime::now_utc());
        if heartbeat.agent_verify_ca.is_some() {
            session.agent_verify_ca = heartbeat.agent_verify_ca;
        }
        if task.node.provision_state == ProvisionState::DeployWait {
            task.node.touch();
        }
        task.save().await?;
        if first {
            task.emit(EventKind::FirstHeartbeat);
        }
        // In other states it is recorded only.
        if task.node.provision_state == ProvisionState::DeployWait {
            self.advance(&mut task).await;
        }
        Ok(())
    }
}

/// Whether a heartbeat is that of the agent this conductor talks to. Its address and certificate
/// are frozen until the next power action (lesson S42).
fn check(session: &AgentSession, heartbeat: &Heartbeat, require_tls: bool) -> Result<(), Error> {
    check_token(session, heartbeat.agent_token.as_deref())?;
    if heartbeat.agent_version.is_none() {
        return Err(Error::invalid(
            "agent_version",
            "is missing; agents older than API 1.36 are not supported",
        ));
    }
    check_callback_url(&heartbeat.callback_url, require_tls)?;
    if session.agent_url.as_ref().is_some_and(|known| *known != heartbeat.callback_url) {
        return Err(Error::invalid(
            "callback_url",
            "changed during the operation; power the machine off and on",
        ));
    }
    if let (Some(known), Some(sent)) = (&session.agent_verify_ca, &heartbeat.agent_verify_ca)
        && known.trim() != sent.trim()
    {
        return Err(Error::invalid("agent_verify_ca", "detected change; power the machine off and on"));
    }
    Ok(())
}

/// Nothing never matches: neither a token that was not sent nor one that was not issued.
fn check_token(session: &AgentSession, sent: Option<&str>) -> Result<(), Error> {
    match (&session.agent_secret_token, sent) {
        (Some(known), Some(sent)) if known == sent => Ok(()),
        _ => Err(Error::invalid(
            "agent_token",
            "invalid or missing agent token; look the node up after a power-on",
        )),
    }
}

fn check_callback_url(text: &str, require_tls: bool) -> Result<(), Error> {
    let invalid = |reason: &str| Err(Error::invalid("callback_url", reason));
    let Ok(url) = Url::parse(text) else { return invalid("is not a URL of the form https://HOST:PORT") };
    match url.scheme() {
        "https" => {}
        "http" if require_tls => return invalid("must use https, because this conductor requires TLS"),
        "http" => {}
        _ => return invalid("must use http or https"),
    }
    if !url.username().is_empty() || url.password().is_some() || url.path() != "/" || text.ends_with('/') {
        return invalid("must be of the form https://HOST:PORT, without user, password or path");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return invalid("must be of the form https://HOST:PORT, without query or fragment");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "q3X7yVt0bUo4mQ8J2nS6eRk1wZ5cLdF9hGpTaNxYvBE";

    fn session() -> AgentSession {
        AgentSession { agent_secret_token: Some(TOKEN.into()), ..AgentSession::default() }
    }

    fn heartbeat() -> Heartbeat {
        Heartbeat {
            callback_url: "https://192.0.2.20:9999".into(),
            agent_token: Some(TOKEN.into()),
            agent_version: Some("0.1.0".into()),
            agent_verify_ca: Some("PEM\n".into()),
        }
    }

    fn field_at_fault(session: &AgentSession, heartbeat: &Heartbeat, require_tls: bool) -> Option<String> {
        match check(session, heartbeat, require_tls) {
            Ok(()) => None,
            Err(Error::Invalid { field, .. }) => Some(field),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_agents_own_heartbeats_are_accepted() {
        let mut known = session();
        assert_eq!(field_at_fault(&known, &heartbeat(), true), None);
        known.agent_url = Some("https://192.0.2.20:9999".into());
        known.agent_verify_ca = Some("PEM".into());
        assert_eq!(field_at_fault(&known, &heartbeat(), true), None);
        assert_eq!(field_at_fault(&known, &Heartbeat { agent_verify_ca: None, ..heartbeat() }, true), None);
    }

    #[test]
    fn a_token_must_be_issued_sent_and_equal() {
        let none = AgentSession::default();
        let no_token = Heartbeat { agent_token: None, ..heartbeat() };
        let other = Heartbeat { agent_token: Some(TOKEN.to_lowercase()), ..heartbeat() };
        for (session, heartbeat) in
            [(&none, &heartbeat()), (&none, &no_token), (&session(), &no_token), (&session(), &other)]
        {
            assert_eq!(field_at_fault(session, heartbeat, true).as_deref(), Some("agent_token"));
        }
    }

    #[test]
    fn s42_address_and_certificate_are_frozen() {
        let mut known = session();
        known.agent_url = Some("https://192.0.2.66:9999".into());
        assert_eq!(field_at_fault(&known, &heartbeat(), true).as_deref(), Some("callback_url"));
        let mut known = session();
        known.agent_verify_ca = Some("OTHER".into());
        assert_eq!(field_at_fault(&known, &heartbeat(), true).as_deref(), Some("agent_verify_ca"));
    }

    #[test]
    fn s42_callback_urls_have_one_form() {
        for (url, require_tls, accepted) in [
            ("https://192.0.2.20:9999", true, true),
            ("https://[2001:db8::1]:9999", true, true),
            ("http://192.0.2.20:9999", false, true),
            ("http://192.0.2.20:9999", true, false),
            ("ftp://192.0.2.20", false, false),
            ("192.0.2.20:9999", false, false),
            ("", false, false),
            ("https://user:x@192.0.2.20:9999", true, false),
            ("https://192.0.2.20:9999/", true, false),
            ("https://192.0.2.20:9999/v1", true, false),
            ("https://192.0.2.20:9999?x=1", true, false),
            ("https://192.0.2.20:9999#x", true, false),
        ] {
            let heartbeat = Heartbeat { callback_url: url.into(), ..heartbeat() };
            assert_eq!(field_at_fault(&session(), &heartbeat, require_tls).is_none(), accepted, "{url:?}");
        }
    }

    #[test]
    fn agents_without_a_version_are_too_old() {
        let old = Heartbeat { agent_version: None, ..heartbeat() };
        assert_eq!(field_at_fault(&session(), &old, true).as_deref(), Some("agent_version"));
    }
}
