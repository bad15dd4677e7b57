//! Tokens, by which those who have them are known.

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::TryRngCore;
use rand::rngs::OsRng;
use std::fs;
use std::path::Path;

/// A token that cannot be guessed: 32 random bytes.
pub(crate) fn new() -> String {
    let mut bytes = [0; 32];
    OsRng.try_fill_bytes(&mut bytes).expect("the kernel has random bytes");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads a file with a token.
pub(crate) fn read(file: &Path) -> anyhow::Result<String> {
    let text =
        fs::read_to_string(file).with_context(|| format!("the token {} cannot be read", file.display()))?;
    let token = text.trim();
    anyhow::ensure!(
        !token.is_empty(),
        "the token {} is empty: remove it, and start the conductor",
        file.display()
    );
    Ok(token.to_owned())
}
