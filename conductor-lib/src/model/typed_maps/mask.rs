//! The one rule for what is a secret, and what stands in its place wherever a record leaves the conductor (lessons S40 and
//! S48): values under the names of secrets, and in every text the kernel parameters, query parameters, users of URLs,
//! headers and media that grant access.

use farrier_protocol::lookup::MASKED;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;

/// Words in the names of keys whose values are secrets.
const SECRET: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "token",
    "credential",
    "community",
    "configdrive",
    "config_drive",
    "image_url",
    "signature",
    "userdata",
    "user_data",
];

/// Names that are secrets as a whole: signatures in URLs, and contents of files that steps write.
const SECRET_NAMES: &[&str] = &["sig", "content", "awsaccesskeyid"];

/// Words beside `key` in names whose values are no secrets.
const NOT_SECRET: &[&str] = &["public", "pub", "id", "name", "type", "size", "bits", "length", "algorithm"];

/// What stands at the beginning of a private key as text.
const PRIVATE_KEY: &str = "PRIVATE KEY-----";

/// Where media of virtual drives are served, and digits of their names: a client that knows the name may read the
/// medium.
const MEDIA: &str = "/media/";
const MEDIUM_DIGITS: usize = 32;

/// Replaces every secret of a map by the mask, at any depth. A flag is no secret.
pub fn mask(map: &mut Map<String, Value>) {
    for (key, value) in map {
        match value {
            Value::Null | Value::Bool(_) => {}
            _ if is_secret(key) => *value = MASKED.into(),
            value => mask_value(value),
        }
    }
}

/// The same for any value.
pub fn mask_value(value: &mut Value) {
    match value {
        Value::Object(map) => mask(map),
        Value::Array(values) => values.iter_mut().for_each(mask_value),
        Value::String(text) => {
            if let Cow::Owned(masked) = masked_text(text) {
                *text = masked;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text with the mask instead of each secret in it: kernels print their parameters on consoles, and programs the
/// URLs that they cannot read.
pub fn masked_text(text: &str) -> Cow<'_, str> {
    if text.contains(PRIVATE_KEY) {
        return Cow::Owned(MASKED.to_owned());
    }
    let mut places = [assigned(text), quoted(text), users(text), headers(text), media(text)].concat();
    if places.is_empty() {
        return Cow::Borrowed(text);
    }
    places.sort_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
    let (mut masked, mut end) = (String::with_capacity(text.len()), 0);
    for place in places {
        // One that lies in the one before is masked with it.
        if place.start >= end {
            masked += &text[end..place.start];
            masked += MASKED;
        }
        end = end.max(place.end);
    }
    masked += &text[end..];
    Cow::Owned(masked)
}

/// Whether the value under a name is a secret.
pub fn is_secret(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    if SECRET_NAMES.contains(&lower.as_str()) || SECRET.iter().any(|word| lower.contains(word)) {
        return true;
    }
    let words = words(key);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    has(&["key", "keys", "sig"]) && !has(NOT_SECRET)
}

/// The words of a name, which stand between other characters or begin with a capital letter.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for character in key.chars() {
        let begins = was_small && character.is_ascii_uppercase();
        if begins || !character.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if character.is_ascii_alphanumeric() {
            words.last_mut().unwrap_or(&mut String::new()).push(character.to_ascii_lowercase());
        }
        was_small = character.is_ascii_lowercase();
    }
    words
}

/// Values of `name=value`, as kernel parameters and queries of URLs have them.
fn assigned(text: &str) -> Vec<Range<usize>> {
    let places = text.match_indices('=').filter_map(|(at, _)| {
        let start = start_of_name(&text[..at]);
        if !is_secret(&text[start..at]) {
            return None;
        }
        let is_query = text[..start].ends_with(['?', '&']);
        let value = &text[at + 1..];
        let place = match value.chars().next()? {
            quote @ ('"' | '\'') => {
                let end = value[1..].find(quote).map_or(value.len(), |end| end + 2);
                0..end
            }
            _ => {
                let ends = |character: char| {
                    character.is_whitespace()
                        || matches!(character, '"' | '\'')
                        || is_query && matches!(character, '&' | '#' | ')' | ',' | ';')
                };
                0..value.find(ends).unwrap_or(value.len())
            }
        };
        (!place.is_empty()).then(|| at + 1 + place.start..at + 1 + place.end)
    });
    places.collect()
}

/// Where the name begins with which a text ends.
fn start_of_name(text: &str) -> usize {
    let before = text.char_indices().rev().find(|(_, character)| !is_of_name(*character));
    before.map_or(0, |(at, character)| at + character.len_utf8())
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.')
}

/// Values of `"name": value`, as JSON and Python have them, also where the text is one in another.
fn quoted(text: &str) -> Vec<Range<usize>> {
    let places = text.match_indices(':').filter_map(|(at, _)| {
        let before = text[..at].trim_end();
        let name = before.strip_suffix(['"', '\''])?.trim_end_matches('\\');
        let start = start_of_name(name);
        if !name[..start].ends_with(['"', '\'']) || !is_secret(&name[start..]) {
            return None;
        }
        let value = text[at + 1..].trim_start();
        let begin = text.len() - value.len();
        let bare = value.trim_start_matches('\\');
        let end = match bare.chars().next()? {
            quote @ ('"' | '\'') => {
                // A text in a text ends with as many backslashes as it begins with.
                let closing = format!("{}{quote}", &value[..value.len() - bare.len()]);
                let inner = closing.len();
                end_of_text(&value[inner..], &closing).map_or(value.len(), |end| inner + end)
            }
            '{' | '[' => value.len(),
            _ => value.find([',', '}', ']', ' ']).unwrap_or(value.len()),
        };
        let is_nothing = ["null", "None", "true", "false", "True", "False"].contains(&&value[..end]);
        (!is_nothing).then_some(begin..begin + end)
    });
    places.collect()
}

/// Where a text ends whose end is marked so, with the mark.
fn end_of_text(text: &str, closing: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text[from..].find(closing)?;
        let escaped = text[..at].len() - text[..at].trim_end_matches('\\').len();
        if escaped.is_multiple_of(2) {
            return Some(at + closing.len());
        }
        from = at + closing.len();
    }
}

/// Users and passwords in URLs.
fn users(text: &str) -> Vec<Range<usize>> {
    let places = text.match_indices("://").filter_map(|(at, mark)| {
        let start = at + mark.len();
        let ends = |character: char| {
            character.is_whitespace() || matches!(character, '/' | '?' | '#' | '"' | '\'' | '<' | '>')
        };
        let authority = text[start..].split(ends).next()?;
        authority.rfind('@').filter(|end| *end > 0).map(|end| start..start + end)
    });
    places.collect()
}

/// Values of headers that prove who asks.
fn headers(text: &str) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let places = ["authorization:", "x-auth-token:", "x-subject-token:", "x-service-token:", "cookie:"];
    let found = places.iter().flat_map(|name| lower.match_indices(name));
    let values = found.filter_map(|(at, name)| {
        let start = at + name.len();
        let line = text[start..].split(['\n', '\r', '"']).next()?;
        let value = line.trim();
        let begin = start + (line.len() - line.trim_start().len());
        (!value.is_empty()).then(|| begin..begin + value.len())
    });
    values.collect()
}

/// Names of media.
fn media(text: &str) -> Vec<Range<usize>> {
    let places = text.match_indices(MEDIA).filter_map(|(at, mark)| {
        let start = at + mark.len();
        let digits = text[start..].bytes().take_while(u8::is_ascii_hexdigit).count();
        (digits == MEDIUM_DIGITS).then(|| start..start + digits)
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn s48_secrets_are_masked_however_deep() {
        let mut map = json!({
            "redfish_password": "x", "agent_secret_token": "x", "agent_secret_token_pregenerated": true,
            "ImagePullSecret": "x", "nothing_secret": null,
            "deep": {"token": {"a": "x"}, "list": [{"password": ["x"]}, "kept", [{"token": "x"}]]},
            "image_url": "x", "image_source": "kept",
        });
        mask(map.as_object_mut().unwrap());
        let text = map.to_string();
        assert!(!text.contains(r#""x""#), "{text}");
        assert_eq!(map["agent_secret_token_pregenerated"], true);
        assert_eq!(map["nothing_secret"], Value::Null);
        assert_eq!(map["deep"]["list"][1], "kept");
        assert_eq!(map["image_source"], "kept");
    }

    #[test]
    fn n24_secrets_are_known_by_their_names() {
        for name in [
            "ipmi_hex_kg_key",
            "snmp_auth_key",
            "snmp_priv_key",
            "snmp_community",
            "snmp_community_write",
            "ssh_key_contents",
            "privateKey",
            "rootpwd",
            "apiKey",
            "auth_password",
            "application_credential_secret",
            "X-Amz-Signature",
            "temp_url_sig",
            "configdrive",
            "encryption_key",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "ipmi_username",
            "redfish_address",
            "public_key",
            "ssh_public_keys",
            "key_id",
            "keyboard",
            "monkey",
            "secure_boot",
            "image_source",
            "deploy_kernel",
            "agent_verify_ca",
            "physical_network",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn n24_secrets_in_texts_are_masked_and_nothing_else() {
        for (text, expected) in [
            ("console=ttyS0 rootpwd=oats quiet", "console=ttyS0 rootpwd=****** quiet"),
            ("rootpwd=\"oats and hay\" quiet", "rootpwd=****** quiet"),
            ("rootpwd=oats,hay;more", "rootpwd=******"),
            ("a\tipa-agent-token=abc\nb", "a\tipa-agent-token=******\nb"),
            ("http://user:pw@h/i", "http://******@h/i"),
            ("https://token@h:1/i?x=1", "https://******@h:1/i?x=1"),
            (
                "http://h/i?temp_url_sig=aa&temp_url_expires=1",
                "http://h/i?temp_url_sig=******&temp_url_expires=1",
            ),
            (
                "ipa-inspection-callback-url=http://c/v1/continue_inspection?agent_token=abc x=1",
                "ipa-inspection-callback-url=http://c/v1/continue_inspection?agent_token=****** x=1",
            ),
            ("http://c/media/0123456789abcdef0123456789abcdef.iso", "http://c/media/******.iso"),
            (r#"said {"password": "a\"b", "x": 1}"#, r#"said {"password": ******, "x": 1}"#),
            (r#"said {\"password\": \"a b\", \"x\": 1}"#, r#"said {\"password\": ******, \"x\": 1}"#),
            ("{'auth_key': 'a b', 'x': 1}", "{'auth_key': ******, 'x': 1}"),
            (r#"{"token": {"a": 1}}"#, r#"{"token": ******"#),
            ("X-Auth-Token: abc\nx", "X-Auth-Token: ******\nx"),
            ("authorization: Basic abc def", "authorization: ******"),
            ("-----BEGIN RSA PRIVATE KEY-----\nabc", "******"),
        ] {
            assert_eq!(masked_text(text), expected);
        }
        for text in [
            "agent_token: invalid or missing agent token; look the node up",
            "http://h/debian.raw?x=1",
            "the disk has 10 GiB",
            "mail me@example.org",
            "http://h/media/debian.iso",
            r#"{"password": null, "token": false}"#,
            "rootpwd= quiet",
            "x",
            "",
        ] {
            assert!(matches!(masked_text(text), Cow::Borrowed(_)), "{text}: {}", masked_text(text));
        }
    }

    proptest! {
        #[test]
        fn whatever_a_text_is_it_can_be_masked(text in "[ -~ü\n]{0,60}") {
            let masked = masked_text(&text).into_owned();
            prop_assert!(masked == text || masked.contains(MASKED));
        }

        #[test]
        fn a_secret_of_a_kernel_line_never_stays(secret in "[a-zA-Z0-9!#%&()*+,./:;<=>?@^_`{|}~-]{6,20}", before in "[a-z =.]{0,20}") {
            let text = format!("{before} ipa-agent-token={secret} quiet");
            prop_assert!(!masked_text(&text).contains(&secret), "{}", text);
        }
    }
}
