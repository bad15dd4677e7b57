//! Whether a heartbeat is that of the agent this conductor talks to (sections 2.2 and 8.3).

use crate::agent::token::is_same;
use crate::model::AgentSession;
use farrier_protocol::heartbeat::Heartbeat;
use time::OffsetDateTime;
use url::Url;

/// A heartbeat is not the agent's, or not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Refusal {
    /// Field of the heartbeat.
    pub field: &'static str,
    /// What is wrong, and what would be right.
    pub reason: String,
}

/// What is known of the agent after its heartbeat.
///
/// Its address and its certificate are frozen until the next power action (lesson S42). Whether the node is worked
/// on does not matter: the content of a heartbeat is never lost (lesson F40).
///
/// ```
/// use farrier_conductor::heartbeat::accept;
/// use farrier_conductor::model::AgentSession;
/// use farrier_protocol::heartbeat::Heartbeat;
/// use time::OffsetDateTime;
///
/// let session = AgentSession { agent_secret_token: Some("s3cret".into()), ..AgentSession::default() };
/// let of_another_boot = Heartbeat { agent_token: Some("guessed".into()), ..Heartbeat::default() };
/// let refused = accept(&session, &of_another_boot, true, OffsetDateTime::now_utc()).unwrap_err();
/// assert_eq!(refused.field, "agent_token");
/// ```
///
/// # Errors
///
/// [`Refusal`], when the heartbeat has no token of this session, comes from another address or with another
/// certificate, or when its address has not the one form that is called.
pub fn accept(
    session: &AgentSession,
    heartbeat: &Heartbeat,
    require_tls: bool,
    now: OffsetDateTime,
) -> Result<AgentSession, Refusal> {
    check_token(session, heartbeat.agent_token.as_deref())?;
    if heartbeat.agent_version.is_none() && heartbeat.agent_status.is_none() {
        return refused("agent_version", "is missing; agents older than API 1.36 are not supported");
    }
    let mut session = session.clone();
    // An installer that only tells its status cannot be called.
    if !(heartbeat.callback_url.is_empty() && heartbeat.agent_status.is_some()) {
        check_callback_url(&heartbeat.callback_url, require_tls)?;
        freeze("callback_url", &mut session.agent_url, &heartbeat.callback_url)?;
    }
    if let Some(certificate) = &heartbeat.agent_verify_ca {
        freeze("agent_verify_ca", &mut session.agent_verify_ca, certificate)?;
    }
    if let Some(status) = heartbeat.agent_status {
        session.agent_status = Some(status);
        session.agent_status_message = kept(heartbeat.agent_status_message.as_deref());
    }
    session.agent_version = kept(heartbeat.agent_version.as_deref());
    session.agent_last_heartbeat = Some(now);
    Ok(session)
}

/// A text as stores keep it, that is without NUL: an agent that is refused for it would say the same again.
fn kept(text: Option<&str>) -> Option<String> {
    text.map(|text| text.replace('\0', "\u{fffd}"))
}

fn refused<T>(field: &'static str, reason: &str) -> Result<T, Refusal> {
    Err(Refusal { field, reason: reason.to_owned() })
}

/// A heartbeat has no token, or another one than the node, or there is no such node: the reason is not disclosed.
pub fn no_token() -> Refusal {
    let reason = "invalid or missing agent token; look the node up after a power-on".to_owned();
    Refusal { field: "agent_token", reason }
}

/// Nothing never matches: neither a token that was not sent nor one that was not issued.
fn check_token(session: &AgentSession, sent: Option<&str>) -> Result<(), Refusal> {
    match (&session.agent_secret_token, sent) {
        (Some(known), Some(sent)) if is_same(known, sent) => Ok(()),
        _ => Err(no_token()),
    }
}

/// What is known stays, and what is not known is learned.
fn freeze(field: &'static str, known: &mut Option<String>, sent: &str) -> Result<(), Refusal> {
    match known {
        Some(known) if known.trim() == sent.trim() => Ok(()),
        Some(_) => refused(field, "detected change during the operation; power the machine off and on"),
        None => {
            *known = Some(sent.to_owned());
            Ok(())
        }
    }
}

fn check_callback_url(text: &str, require_tls: bool) -> Result<(), Refusal> {
    let refused = |reason| refused("callback_url", reason);
    let Ok(url) = Url::parse(text) else { return refused("is not a URL of the form https://HOST:PORT") };
    match url.scheme() {
        "https" => {}
        "http" if require_tls => return refused("must use https, because this conductor requires TLS"),
        "http" => {}
        _ => return refused("must use http or https"),
    }
    if !url.username().is_empty() || url.password().is_some() || url.path() != "/" || text.ends_with('/') {
        return refused("must be of the form https://HOST:PORT, without user, password or path");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return refused("must be of the form https://HOST:PORT, without query or fragment");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use farrier_protocol::heartbeat::AgentStatus;

    const TOKEN: &str = "q3X7yVt0bUo4mQ8J2nS6eRk1wZ5cLdF9hGpTaNxYvBE";
    const URL: &str = "https://192.0.2.20:9999";
    const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn session() -> AgentSession {
        AgentSession { agent_secret_token: Some(TOKEN.into()), ..AgentSession::default() }
    }

    fn heartbeat() -> Heartbeat {
        Heartbeat {
            callback_url: URL.into(),
            agent_token: Some(TOKEN.into()),
            agent_version: Some("0.1.0".into()),
            agent_verify_ca: Some("PEM\n".into()),
            ..Heartbeat::default()
        }
    }

    fn field_at_fault(session: &AgentSession, heartbeat: &Heartbeat) -> Option<&'static str> {
        accept(session, heartbeat, true, NOW).err().map(|refusal| refusal.field)
    }

    #[test]
    fn a_heartbeat_tells_where_the_agent_is_and_what_proves_it() {
        let known = accept(&session(), &heartbeat(), true, NOW).unwrap();
        let expected = AgentSession {
            agent_url: Some(URL.into()),
            agent_version: Some("0.1.0".into()),
            agent_verify_ca: Some("PEM\n".into()),
            agent_last_heartbeat: Some(NOW),
            ..session()
        };
        assert_eq!(known, expected);
        // The next ones change the time and the version alone.
        let later = NOW + time::Duration::minutes(1);
        let next = Heartbeat {
            agent_version: Some("0.2.0".into()),
            agent_verify_ca: Some("PEM".into()),
            ..heartbeat()
        };
        let expected = AgentSession {
            agent_version: next.agent_version.clone(),
            agent_last_heartbeat: Some(later),
            ..expected
        };
        assert_eq!(accept(&known, &next, true, later).unwrap(), expected);
        assert_eq!(field_at_fault(&known, &Heartbeat { agent_verify_ca: None, ..heartbeat() }), None);
    }

    #[test]
    fn a_token_must_be_issued_sent_and_equal() {
        let none = AgentSession::default();
        let no_token = Heartbeat { agent_token: None, ..heartbeat() };
        let other = Heartbeat { agent_token: Some(TOKEN.to_lowercase()), ..heartbeat() };
        for (session, heartbeat) in
            [(&none, &heartbeat()), (&none, &no_token), (&session(), &no_token), (&session(), &other)]
        {
            assert_eq!(field_at_fault(session, heartbeat), Some("agent_token"));
        }
    }

    #[test]
    fn s42_address_and_certificate_are_frozen() {
        let mut known = session();
        known.agent_url = Some("https://192.0.2.66:9999".into());
        assert_eq!(field_at_fault(&known, &heartbeat()), Some("callback_url"));
        let mut known = session();
        known.agent_verify_ca = Some("OTHER".into());
        assert_eq!(field_at_fault(&known, &heartbeat()), Some("agent_verify_ca"));
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
            let result = accept(&session(), &heartbeat, require_tls, NOW);
            assert_eq!(result.is_ok(), accepted, "{url:?}: {result:?}");
        }
    }

    #[test]
    fn agents_without_a_version_are_too_old() {
        let old = Heartbeat { agent_version: None, ..heartbeat() };
        assert_eq!(field_at_fault(&session(), &old), Some("agent_version"));
    }

    #[test]
    fn an_installer_tells_its_status_from_no_address() {
        let told = Heartbeat {
            callback_url: String::new(),
            agent_token: Some(TOKEN.into()),
            agent_status: Some(AgentStatus::Error),
            agent_status_message: Some("no disk\0".into()),
            ..Heartbeat::default()
        };
        let known = accept(&session(), &told, true, NOW).unwrap();
        assert_eq!(known.agent_url, None);
        assert_eq!(known.agent_status, Some(AgentStatus::Error));
        assert_eq!(known.agent_status_message.as_deref(), Some("no disk\u{fffd}"));
        // It stays until something else is told.
        assert_eq!(
            accept(&known, &heartbeat(), true, NOW).unwrap().agent_status_message.as_deref(),
            Some("no disk\u{fffd}")
        );
    }
}
