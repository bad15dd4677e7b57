//! Pages of the book about what was measured: the figures beside the page as JSON, and text and plots made from them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::plot::Plot;
use crate::host::workspace::{Workspace, read_json, write_json};

/// Where the pages are, below the root.
pub const FOLDER: &str = "docs/src";

/// What a command measured, and its page.
pub trait Measured: Serialize + DeserializeOwned {
    /// What the page and the figures beside it are called.
    const NAME: &'static str;

    /// The page.
    ///
    /// # Errors
    ///
    /// Something that the page tells was not measured.
    fn text(&self) -> Result<String>;

    /// The plots that the page shows, each under the name of its file without the ending.
    fn plots(&self) -> Vec<(String, Plot)>;
}

/// Writes the page about what was measured, its plots and the figures.
///
/// # Errors
///
/// A file cannot be written, or something was not measured.
pub fn write<M: Measured>(workspace: &Workspace, measured: &M) -> Result<()> {
    let files = files(measured)?;
    write_json(Some(&figures::<M>(&workspace.root)), measured)?;
    files.into_iter().try_for_each(|(name, text)| put(&workspace.root, &name, &text))
}

/// Writes the page and its plots anew from the figures beside it. A page from before these were kept stays as it is.
///
/// # Errors
///
/// As [`write()`].
pub fn redraw<M: Measured>(root: &Path) -> Result<()> {
    let figures = figures::<M>(root);
    if !figures.exists() {
        println!("{} is missing: measure anew", figures.display());
        return Ok(());
    }
    let measured: M = read_json(&figures)?;
    files(&measured)?.into_iter().try_for_each(|(name, text)| put(root, &name, &text))
}

/// Seconds without the digits that no clock here has.
pub fn in_milliseconds(seconds: f64) -> f64 {
    (seconds * 1000.0).round() / 1000.0
}

fn put(root: &Path, name: &str, text: &str) -> Result<()> {
    let file = root.join(FOLDER).join(name);
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Where the figures are.
pub fn figures<M: Measured>(root: &Path) -> PathBuf {
    root.join(FOLDER).join(M::NAME).with_extension("json")
}

/// Processor and kernel of this machine, in words.
pub fn machine() -> String {
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let count = processors.lines().filter(|line| line.starts_with("processor")).count();
    let model = model.map_or("unknown", |(_, model)| model);
    format!("{count} processors ({model}), Linux {}", read("/proc/sys/kernel/osrelease").trim())
}

/// The page and its plots: name and content of each file.
///
/// # Errors
///
/// Something that the page tells was not measured.
pub fn files<M: Measured>(measured: &M) -> Result<Vec<(String, String)>> {
    let mut files = vec![(format!("{}.md", M::NAME), measured.text()?)];
    for (name, plot) in measured.plots() {
        files.push((format!("{name}.svg"), plot.svg()?));
    }
    Ok(files)
}
