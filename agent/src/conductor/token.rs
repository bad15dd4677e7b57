//! The token both sides share (section 2.5).

use farrier_protocol::lookup::{MASKED, MIN_TOKEN_LENGTH};

/// What a lookup's `agent_token` means for an agent.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Use this token from now on.
    Use(String),
    /// Nothing changes.
    Keep,
    /// The token went to another agent; this agent can never get commands in this boot.
    Lost,
}

/// Judges what a lookup offered, given whether a token is known already.
pub fn judge(is_known: bool, offered: Option<&str>) -> Verdict {
    match offered {
        Some(MASKED) if is_known => Verdict::Keep,
        Some(MASKED) => Verdict::Lost,
        Some(token) if token.len() >= MIN_TOKEN_LENGTH => Verdict::Use(token.to_owned()),
        Some(_) => {
            tracing::warn!("the token in the lookup response is too short and is ignored");
            Verdict::Keep
        }
        None => Verdict::Keep,
    }
}

/// Whether a request's token is the agent's. Without a token of its own the agent accepts none
/// (S01).
pub fn matches(own: Option<&str>, given: Option<&str>) -> bool {
    match (own, given) {
        (Some(own), Some(given)) if !own.is_empty() && own.len() == given.len() => {
            // Every byte is looked at, so that the time taken tells nothing about the token.
            own.bytes().zip(given.bytes()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_the_contract() {
        let token = "q3X7yVt0bUo4mQ8J2nS6eRk1wZ5cLdF9hGpTaNxYvBE";
        for (is_known, offered, expected) in [
            (false, Some(token), Verdict::Use(token.into())),
            (true, Some(token), Verdict::Use(token.into())),
            (true, Some(MASKED), Verdict::Keep),
            (false, Some(MASKED), Verdict::Lost),
            (true, Some("short"), Verdict::Keep),
            (false, Some("short"), Verdict::Keep),
            (false, None, Verdict::Keep),
        ] {
            assert_eq!(judge(is_known, offered), expected, "{is_known} {offered:?}");
        }
    }

    #[test]
    fn s01_empty_missing_and_wrong_tokens_never_match() {
        for (own, given, expected) in [
            (Some("abc"), Some("abc"), true),
            (Some("abc"), Some("abd"), false),
            (Some("abc"), Some("ab"), false),
            (Some("abc"), None, false),
            (Some(""), Some(""), false),
            (None, Some(""), false),
            (None, None, false),
        ] {
            assert_eq!(matches(own, given), expected, "{own:?} {given:?}");
        }
    }
}
