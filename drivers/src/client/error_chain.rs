//! What went wrong below an answer that did not come.

use std::error::Error;

/// An error with what is below it; the URL is named elsewhere.
pub(crate) fn chain(error: &reqwest::Error) -> String {
    let mut source = error.source();
    let mut texts = Vec::new();
    while let Some(error) = source {
        texts.push(error.to_string());
        source = error.source();
    }
    match texts.is_empty() {
        true if error.is_timeout() => "not in time".to_owned(),
        true => "the answer is cut off, or is none of HTTP".to_owned(),
        false => texts.join(": "),
    }
}
