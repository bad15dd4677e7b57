//! What is wrong with how a page looks, and with what users of other devices find in it.

use super::Chromium;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Finds bars, cut texts and elements that overlap. It returns a list of sentences.
const LAYOUT: &str = include_str!("layout.js");

/// Has axe look at the page. It calls back with a list of sentences.
const AXE: &str = include_str!("axe.js");

impl Chromium {
    /// The faults of the layout: a horizontal scroll bar, a cut text, two elements that overlap.
    ///
    /// # Errors
    ///
    /// The page cannot be read.
    pub async fn layout_faults(&self) -> Result<Vec<String>> {
        sentences(self.run(LAYOUT).await?)
    }

    /// The violations that axe-core finds, by its program in a file.
    ///
    /// # Errors
    ///
    /// There is no such file, or axe fails.
    pub async fn accessibility_faults(&self, axe: &Path) -> Result<Vec<String>> {
        let program = fs::read_to_string(axe).with_context(|| format!("cannot read {}", axe.display()))?;
        sentences(self.run_until_called(&format!("{program}\n{AXE}")).await?)
    }
}

fn sentences(found: Value) -> Result<Vec<String>> {
    serde_json::from_value(found).context("a judge returns sentences")
}
