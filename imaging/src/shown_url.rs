//! URLs as they may be shown.

use reqwest::Url;

/// A URL as logs and errors may show it: without a user's name and password.
pub fn without_secrets(url: &str) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return url.to_owned() };
    if parsed.username().is_empty() && parsed.password().is_none() {
        return url.to_owned();
    }
    // Both fail for URLs that cannot have a user, and those have none.
    parsed.set_username("").ok();
    parsed.set_password(None).ok();
    parsed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s48_users_and_passwords_are_not_shown() {
        for (url, expected) in [
            ("http://ann:secret@images/a.raw?x=1", "http://images/a.raw?x=1"),
            ("http://ann@images/a.raw", "http://images/a.raw"),
            ("http://images/a.raw", "http://images/a.raw"),
            ("no url at all", "no url at all"),
        ] {
            assert_eq!(without_secrets(url), expected);
        }
    }
}
