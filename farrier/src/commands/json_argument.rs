//! JSON on the command line: itself, or a file with it.

/// The JSON that an argument is, when it begins like one, or that is in the file with this name.
pub(crate) fn text(argument: &str, opening: char) -> Result<String, String> {
    match argument.trim_start().starts_with(opening) {
        true => Ok(argument.to_owned()),
        false => std::fs::read_to_string(argument).map_err(|error| format!("file {argument}: {error}")),
    }
}
