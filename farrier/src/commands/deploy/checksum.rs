//! The checksum of an image, as `farrier deploy` gets it.

use anyhow::{Context, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest file of checksums, in bytes.
const LONGEST_FILE: u64 = 1 << 20;

/// Hexadecimal digits of SHA-256 and SHA-512.
const LENGTHS: [usize; 2] = [64, 128];

/// A checksum that was given itself, or by a file such as SHA256SUMS, which has it with the name of the image.
///
/// # Errors
///
/// The file cannot be read, or does not have the checksum of exactly one such image.
pub(crate) fn given(argument: &str, image: &str) -> anyhow::Result<String> {
    let file = Path::new(argument);
    if !file.is_file() {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    let opened = File::open(file).with_context(|| format!("cannot read --checksum {argument}"))?;
    opened
        .take(LONGEST_FILE)
        .read_to_string(&mut text)
        .with_context(|| format!("cannot read --checksum {argument}"))?;
    let name = image.split(['?', '#']).next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let mut found: Vec<_> = text.lines().filter_map(|line| of_line(line, name)).collect();
    found.dedup();
    match found.as_slice() {
        [checksum] => Ok((*checksum).to_owned()),
        [] => bail!(
            "--checksum {argument} has no SHA-256 or SHA-512 of {name:?}; add the line of `sha256sum {name}`"
        ),
        _ => bail!("--checksum {argument} has several checksums of {name:?}; give the right one itself"),
    }
}

/// The checksum of a line, if it is of the file `name`: in the format of coreutils, in that of BSD, or alone.
fn of_line<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let line = line.trim();
    let (checksum, named) = match line.split_once(") = ") {
        Some((start, checksum)) => (checksum, start.split_once(" (")?.1),
        None => match line.split_once(char::is_whitespace) {
            Some((checksum, file)) => (checksum, file.trim_start().trim_start_matches('*')),
            None => (line, name),
        },
    };
    let is_checksum =
        LENGTHS.contains(&checksum.len()) && checksum.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_of_image = named.rsplit('/').next() == Some(name);
    (is_checksum && is_of_image).then_some(checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_given_itself_or_by_a_file_that_names_the_image() {
        let (one, two) = ("1".repeat(64), "2".repeat(128));
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("SHA256SUMS");
        let argument = file.display().to_string();
        for (text, image, expected) in [
            (format!("{two}  other.raw\n{one}  debian.raw\n"), "http://h/a/debian.raw", Ok(&one)),
            (format!("{two} *./debian.raw\n"), "http://h/debian.raw?token=x", Ok(&two)),
            (format!("SHA512 (debian.raw) = {two}\n"), "http://h/debian.raw", Ok(&two)),
            (format!("{one}\n"), "http://h/debian.raw", Ok(&one)),
            (format!("{one}  debian.raw\n{one}  debian.raw\n"), "http://h/debian.raw", Ok(&one)),
            (
                format!("{one}  debian.raw\n{two}  debian.raw\n"),
                "http://h/debian.raw",
                Err("several checksums"),
            ),
            (format!("{one}  debian.raw.xz\n"), "http://h/debian.raw", Err("no SHA-256 or SHA-512")),
            (
                "d41d8cd98f00b204e9800998ecf8427e  debian.raw\n".to_owned(),
                "http://h/debian.raw",
                Err("no SHA-256"),
            ),
        ] {
            std::fs::write(&file, &text).unwrap();
            match (given(&argument, image), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(&found, expected, "{text}"),
                (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
                (found, expected) => panic!("{text}: {found:?} instead of {expected:?}"),
            }
        }
        let itself = format!("sha256:{one}");
        assert_eq!(given(&itself, "http://h/debian.raw").unwrap(), itself);
    }
}
