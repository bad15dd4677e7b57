//! `cargo xtask pages`: the pages of the book about measurements, written anew from what was measured.

use anyhow::Result;
use clap::Args;

use super::answers::AnswersReport;
use super::bench::{
    ApiReport, BootReport, EstateReport, FirstPassReport, FleetReport, IscsiReport, NetbootReport,
    WriteReport,
};
use super::matrix::MatrixReport;
use super::power_cut::PowerCutReport;
use super::strangers::StrangersReport;
use super::zoo::ZooReport;
use crate::book::page::redraw;
use crate::host::workspace::Workspace;

/// Writes the pages about measurements anew, with their plots, from the figures that are kept beside them.
#[derive(Debug, Args)]
pub struct PagesArguments {}

/// Runs the command.
pub fn pages(PagesArguments {}: &PagesArguments) -> Result<()> {
    let workspace = Workspace::find()?;
    for redraw in [
        redraw::<AnswersReport>,
        redraw::<ApiReport>,
        redraw::<BootReport>,
        redraw::<FirstPassReport>,
        redraw::<FleetReport>,
        redraw::<EstateReport>,
        redraw::<IscsiReport>,
        redraw::<NetbootReport>,
        redraw::<WriteReport>,
        redraw::<MatrixReport>,
        redraw::<PowerCutReport>,
        redraw::<StrangersReport>,
        redraw::<ZooReport>,
    ] {
        redraw(&workspace.root)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::page::{FOLDER, Measured, figures, files};
    use crate::host::workspace::read_json;
    use std::path::Path;

    /// The files of a page that are not what its figures give. Of one that is not in the book yet there are none.
    fn stale<M: Measured>() -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let read = |name: &str| std::fs::read_to_string(root.join(FOLDER).join(name)).unwrap();
        if !figures::<M>(root).exists() {
            let page = format!("{}.md", M::NAME);
            if !read("SUMMARY.md").contains(&format!("({page})")) {
                return Vec::new();
            }
            return read(&page).contains(".svg").then(|| format!("{}.json", M::NAME)).into_iter().collect();
        }
        let measured: M = read_json(&figures::<M>(root)).unwrap();
        let files = files(&measured).unwrap();
        let (_, page) = &files[0];
        for (plot, _) in &files[1..] {
            assert!(page.contains(&format!("]({plot})")), "{} does not show {plot}", M::NAME);
        }
        assert!(files.len() > 1, "{} has no plot", M::NAME);
        let is_stale = |(name, text): &(String, String)| {
            std::fs::read_to_string(root.join(FOLDER).join(name)).ok().as_ref() != Some(text)
        };
        files.into_iter().filter(is_stale).map(|(name, _)| name).collect()
    }

    #[test]
    fn pages_and_plots_are_what_their_figures_give() {
        for stale in [
            stale::<AnswersReport>(),
            stale::<ApiReport>(),
            stale::<BootReport>(),
            stale::<FirstPassReport>(),
            stale::<FleetReport>(),
            stale::<EstateReport>(),
            stale::<IscsiReport>(),
            stale::<NetbootReport>(),
            stale::<WriteReport>(),
            stale::<MatrixReport>(),
            stale::<PowerCutReport>(),
            stale::<StrangersReport>(),
            stale::<ZooReport>(),
        ] {
            assert!(stale.is_empty(), "run cargo xtask pages: {stale:?}");
        }
    }
}
