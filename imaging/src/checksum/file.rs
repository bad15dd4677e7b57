//! Files of checksums, in every dialect that tools write (F04).
//!
//! Understood are a bare digest that is all there is; `digest  name` and `digest *name`, where the
//! name may have a path; `ALGORITHM (name) = digest`; and `name: digest`. Comments and lines that
//! are none of this, such as signatures, are passed over.

use super::{Algorithm, ExpectedDigest};

/// Bytes of a checksum file at most: of one that is cut off, the line that counts could be missing.
pub(super) const MOST: usize = 1 << 20;
/// Names that an error lists at most.
const LISTED: usize = 5;
/// Hexadecimal digits of the shortest digest, MD5.
const SHORTEST: usize = 32;

/// Finds the digest of the file `name`: by the wanted algorithm if it is there, else by the
/// strongest one. The error says what was found instead.
pub(super) fn find(
    text: &str,
    name: &str,
    wanted: Option<Algorithm>,
    md5: bool,
) -> Result<ExpectedDigest, String> {
    let lines = || text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let mut content = lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    if let (Some(digest), None) = (content.next().filter(|line| is_digest(line)), content.next()) {
        let entry = Entry { name, digest, algorithm: None };
        return strongest([&entry], wanted, md5).ok_or_else(|| unusable(digest));
    }
    let entries: Vec<_> = lines().filter(|line| !line.starts_with('#')).filter_map(Entry::read).collect();
    let of_name = || entries.iter().filter(|entry| entry.name == name);
    match (strongest(of_name(), wanted, md5), of_name().next()) {
        (Some(digest), _) => Ok(digest),
        (None, Some(entry)) => Err(unusable(entry.digest)),
        (None, None) => Err(missing(name, &entries)),
    }
}

/// What a line says.
struct Entry<'a> {
    /// Base name.
    name: &'a str,
    digest: &'a str,
    /// Where the line names one that is known.
    algorithm: Option<Algorithm>,
}

impl<'a> Entry<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (name, digest) = name_and_digest(line)?;
        let label = line.split_once('(').map(|(label, _)| label.trim_end());
        Some(Self { name, digest, algorithm: label.and_then(Algorithm::by_name) })
    }

    /// The algorithm that made the digest: the one that its line names, else the wanted one if it fits, else
    /// the one of its length.
    fn algorithm(&self, wanted: Option<Algorithm>) -> Option<Algorithm> {
        let fits = |algorithm: &Algorithm| algorithm.fits(self.digest);
        match self.algorithm {
            Some(named) => Some(named).filter(fits),
            None => wanted.filter(fits).or_else(|| Algorithm::by_length(self.digest.len())),
        }
    }
}

/// Base name and digest of a line.
fn name_and_digest(line: &str) -> Option<(&str, &str)> {
    let bsd = || {
        let (_, rest) = line.split_once(" (")?;
        let (name, digest) = rest.rsplit_once(')')?;
        Some((name, digest.trim_start().strip_prefix('=')?.trim_start()))
    };
    let digest_first = || {
        let (digest, name) = line.split_once(char::is_whitespace)?;
        let name = name.trim_start();
        Some((name.strip_prefix('*').unwrap_or(name), digest))
    };
    let name_first = || {
        let (name, digest) = line.rsplit_once(char::is_whitespace)?;
        Some((name.trim_end().trim_end_matches(':'), digest))
    };
    let readings = [bsd(), digest_first(), name_first()].into_iter().flatten();
    readings.map(|(name, digest)| (base_name(name), digest)).find(|(_, digest)| is_digest(digest))
}

fn strongest<'a>(
    entries: impl IntoIterator<Item = &'a Entry<'a>>,
    wanted: Option<Algorithm>,
    md5: bool,
) -> Option<ExpectedDigest> {
    let usable = entries.into_iter().filter_map(|entry| {
        let algorithm = entry.algorithm(wanted).filter(|one| one.is_believed(md5))?;
        Some(ExpectedDigest { algorithm, value: entry.digest.to_ascii_lowercase() })
    });
    usable.max_by_key(|digest| (Some(digest.algorithm) == wanted, digest.algorithm.digits()))
}

fn is_digest(text: &str) -> bool {
    text.len() >= SHORTEST
        && text.len().is_multiple_of(8)
        && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn unusable(digest: &str) -> String {
    let kind =
        if digest.len() == SHORTEST { "MD5 proves nothing any more" } else { "it is of no known kind" };
    format!("the digest {digest} cannot be used, {kind}: give sha256 or sha512")
}

fn missing(name: &str, entries: &[Entry<'_>]) -> String {
    if entries.is_empty() {
        return "no line of it is a checksum".to_owned();
    }
    let listed: Vec<_> = entries.iter().take(LISTED).map(|entry| entry.name).collect();
    let rest = match entries.len().saturating_sub(LISTED) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    format!("it has no checksum of {name}, only of {}{rest}", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SHA256: &str = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

    fn sha512() -> String {
        "ab".repeat(64)
    }

    #[test]
    fn f04_every_dialect_is_understood() {
        let upper = SHA256.to_uppercase();
        let other = "0".repeat(64);
        for text in [
            SHA256.to_owned(),
            format!("{SHA256}\n"),
            format!("# image\n\n{upper}\r\n"),
            format!("{SHA256}  image.raw\n"),
            format!("{SHA256} *image.raw\n"),
            format!("{SHA256}  ./image.raw\n"),
            format!("{SHA256}  /srv/images/image.raw\n"),
            format!("{SHA256}\timage.raw"),
            format!("SHA256 (image.raw) = {SHA256}\n"),
            format!("SHA2-256 (./image.raw)= {SHA256}\n"),
            format!("image.raw {SHA256}\n"),
            format!("image.raw: {SHA256}\n"),
            format!("{other}  image.raw.gz\n{SHA256}  image.raw\n{other}  my-image.raw\n"),
            format!("#{other}  image.raw\n{SHA256}  image.raw\n"),
            format!(
                "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n# image.raw: 7 bytes\n\
                 SHA256 (image.raw) = {SHA256}\n-----BEGIN PGP SIGNATURE-----\n\niQIzBAEBCAAdFiEE\n"
            ),
        ] {
            let found =
                find(&text, "image.raw", None, false).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(found, ExpectedDigest { algorithm: Algorithm::Sha256, value: SHA256.to_owned() });
        }
    }

    #[test]
    fn f04_names_with_blanks_and_brackets_are_names() {
        for (text, name) in [
            (format!("{SHA256}  my image.raw"), "my image.raw"),
            (format!("SHA256 (image (1).raw) = {SHA256}"), "image (1).raw"),
        ] {
            assert_eq!(find(&text, name, None, false).unwrap().value, SHA256);
        }
    }

    #[test]
    fn of_several_digests_the_wanted_one_is_taken_else_the_strongest() {
        let text = format!(
            "MD5 (image.raw) = {}\nSHA512 (image.raw) = {}\nSHA256 (image.raw) = {SHA256}\n",
            "1".repeat(32),
            sha512()
        );
        for (wanted, expected) in [
            (Some(Algorithm::Sha256), Algorithm::Sha256),
            (Some(Algorithm::Sha512), Algorithm::Sha512),
            (None, Algorithm::Sha512),
        ] {
            assert_eq!(find(&text, "image.raw", wanted, false).unwrap().algorithm, expected);
        }
    }

    #[test]
    fn x27_a_digest_is_of_the_algorithm_that_is_named() {
        let (sha3, blake) = ("c".repeat(64), "d".repeat(128));
        let text = format!("SHA2-256 (x) = {SHA256}\nSHA3-256 (x) = {sha3}\nBLAKE2b (x) = {blake}\n");
        for (wanted, expected, value) in [
            (Algorithm::Sha3_256, Algorithm::Sha3_256, sha3.as_str()),
            (Algorithm::Sha256, Algorithm::Sha256, SHA256),
            (Algorithm::Blake2b, Algorithm::Blake2b, &blake),
            (Algorithm::Sha384, Algorithm::Blake2b, &blake),
        ] {
            let found = find(&text, "x", Some(wanted), false).unwrap();
            assert_eq!((found.algorithm, found.value.as_str()), (expected, value), "{wanted:?}");
        }
        // Lines without a name are of the wanted algorithm if they can be.
        for (text, wanted, expected) in [
            (sha3.clone(), Some(Algorithm::Blake2s), Algorithm::Blake2s),
            (format!("{sha3}  x"), Some(Algorithm::Sha3_256), Algorithm::Sha3_256),
            (format!("{sha3}  x"), Some(Algorithm::Sha3_512), Algorithm::Sha256),
            (format!("{}  x", "e".repeat(96)), Some(Algorithm::Sha384), Algorithm::Sha384),
        ] {
            assert_eq!(find(&text, "x", wanted, false).unwrap().algorithm, expected, "{text}");
        }
    }

    #[test]
    fn f04_an_error_lists_what_was_found() {
        let many: String = (0..8).map(|number| format!("{SHA256}  disk{number}.raw\n")).collect();
        for (text, expected) in [
            (
                many.as_str(),
                "image.raw, only of disk0.raw, disk1.raw, disk2.raw, disk3.raw, disk4.raw and 3 more",
            ),
            ("", "no line"),
            ("<html>not found</html>", "no line"),
            (&format!("{SHA256}\n{SHA256}\n"), "no line"),
            (&"a".repeat(32), "MD5"),
            (&format!("{}  image.raw", "a".repeat(32)), "MD5"),
            (&format!("{}  image.raw", "a".repeat(40)), "known kind"),
        ] {
            let error = find(text, "image.raw", None, false).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_files_are_judged_without_a_panic(text in "(\\PC|[ ()=*#/\n]|[0-9a-f]{64})*") {
            find(&text, "image.raw", None, false).ok();
        }

        #[test]
        fn whatever_stands_before_it_a_line_is_found(junk in "[a-z #()=*\n]*") {
            let text = format!("{junk}\n{SHA256}  image.raw\n");
            prop_assert_eq!(find(&text, "image.raw", None, false).unwrap().value, SHA256);
        }
    }
}
