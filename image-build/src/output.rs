//! Writing the output files.

use std::fs;
use std::path::Path;

use crate::error::BuildError;

/// Writes under another name first, so that a machine that is booting meanwhile never reads half a file.
///
/// # Errors
///
/// [`BuildError::Write`] naming the file.
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), BuildError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(BuildError::writing(folder))?;
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = Path::new(&unfinished);
    fs::write(unfinished, content).map_err(BuildError::writing(unfinished))?;
    fs::rename(unfinished, path).map_err(BuildError::writing(path))
}
