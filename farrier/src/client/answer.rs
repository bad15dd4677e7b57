//! Answers of the conductor. Whatever answers at its URL has a bounded part of this host's memory: each answer is limited
//! in bytes, and JSON in its values too.

use crate::failure::{UNREADABLE_RESPONSE, WithCode, coded};
use anyhow::Context;
use farrier_protocol::json::{self, Limits};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;

/// Longest JSON, in bytes: the inventory of a machine has as much as its ramdisk may post.
const LONGEST_JSON: usize = 16 << 20;

/// Longest archive of logs, in bytes.
const LONGEST_FILE: usize = 64 << 20;

/// What the values of an answer may be. A page of a thousand nodes has some nine MiB of them.
const LIMITS: Limits = Limits::USUAL.as_deep_as(64).within(24 << 20);

/// The bytes of an answer.
pub(super) async fn receive(mut answer: Response) -> anyhow::Result<Vec<u8>> {
    let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_json = kind.is_some_and(|kind| kind.starts_with("application/json"));
    let longest = if is_json { LONGEST_JSON } else { LONGEST_FILE };
    let mut bytes = Vec::new();
    let cut_off = "the conductor's response was cut off";
    while let Some(part) = answer.chunk().await.context(cut_off).code(UNREADABLE_RESPONSE)? {
        if bytes.len() + part.len() > longest {
            let text = format!(
                "the conductor's response has more than {} MiB; check that --url is a conductor",
                longest >> 20
            );
            return Err(coded(UNREADABLE_RESPONSE, text));
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// What an answer holds.
pub(super) fn read<T: DeserializeOwned>(answer: &[u8]) -> anyhow::Result<T> {
    json::read(answer, &LIMITS)
        .context("the conductor's response is invalid; check that both have the same version")
        .code(UNREADABLE_RESPONSE)
}
