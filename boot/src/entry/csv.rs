//! The files by which vendors name their loaders (F15), as the fallback program of shim reads them.
//!
//! A line is `loader,label,options,comment` in UTF-16; the loader is beside the file.

/// Most lines that are looked at; each may become a boot entry.
const MOST_LINES: usize = 64;

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Name of the loader.
    pub file: String,
    /// Text in the boot menu.
    pub label: String,
    /// What the loader is given, as it stands there: shim takes the path of a unified kernel image up to a blank.
    pub options: String,
}

/// Whether a file of this name is one.
pub fn is_csv(name: &str) -> bool {
    let name = name.to_lowercase();
    name.starts_with("boot") && name.ends_with(".csv")
}

/// The lines that name a loader and a label, in their order.
pub fn parse(content: &[u8]) -> Vec<Line> {
    let (bytes, unit): (_, fn([u8; 2]) -> u16) = match content {
        [0xfe, 0xff, rest @ ..] => (rest, u16::from_be_bytes),
        [0xff, 0xfe, rest @ ..] => (rest, u16::from_le_bytes),
        rest => (rest, u16::from_le_bytes),
    };
    let units = bytes.as_chunks::<2>().0.iter().map(|pair| unit(*pair)).take_while(|unit| *unit != 0);
    let text = String::from_utf16_lossy(&units.collect::<Vec<_>>());
    text.split(['\r', '\n']).filter_map(line).take(MOST_LINES).collect()
}

fn line(text: &str) -> Option<Line> {
    let mut fields = text.splitn(4, ',');
    let (file, label) = (fields.next()?.trim(), fields.next()?.trim());
    let options = fields.next().filter(|options| !options.trim().is_empty()).unwrap_or_default();
    // Anything else would leave the folder of the file.
    let is_name = !file.is_empty() && !file.contains(['\\', '/']);
    let line = || Line { file: file.to_owned(), label: label.to_owned(), options: options.to_owned() };
    (is_name && !label.is_empty()).then(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn lines(expected: &[(&str, &str, &str)]) -> Vec<Line> {
        let line = |(file, label, options): &(&str, &str, &str)| Line {
            file: (*file).to_owned(),
            label: (*label).to_owned(),
            options: (*options).to_owned(),
        };
        expected.iter().map(line).collect()
    }

    #[test]
    fn f15_csv_dialects() {
        let big_endian =
            [&[0xfe, 0xff][..], &"a.efi,l".encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>()]
                .concat();
        let marked = [&[0xff, 0xfe][..], &utf16("a.efi,l,,text\r\n")].concat();
        for (content, expected) in [
            (utf16("a.efi,l"), &[("a.efi", "l", "")][..]),
            (utf16("\n a.efi , l ,,x"), &[("a.efi", "l", "")]),
            (marked, &[("a.efi", "l", "")]),
            (big_endian, &[("a.efi", "l", "")]),
            (utf16("a.efi"), &[]),
            (utf16("a.efi,"), &[]),
            (utf16(",l"), &[]),
            (utf16(r"..\a.efi,l"), &[]),
            (utf16("a.efi,l\0b.efi,m"), &[("a.efi", "l", "")]),
            (Vec::new(), &[]),
        ] {
            assert_eq!(parse(&content), lines(expected), "{content:?}");
        }
    }

    #[test]
    fn a08_options_and_every_line_are_read_in_their_order() {
        let text = "\u{feff}\r\n\r\nshimx64.efi,6.12.0,\\EFI\\Linux\\10b0.efi ,Comment, with commas\r\n,nothing\r\n\
                    shimx64.efi,6.11.0,\\EFI\\Linux\\ä.efi\rshimx64.efi,plain, ,x\nshimx64.efi,rescue";
        let expected = [
            ("shimx64.efi", "6.12.0", r"\EFI\Linux\10b0.efi "),
            ("shimx64.efi", "6.11.0", r"\EFI\Linux\ä.efi"),
            ("shimx64.efi", "plain", ""),
            ("shimx64.efi", "rescue", ""),
        ];
        assert_eq!(parse(&utf16(text)), lines(&expected));
        let many = utf16(&"a.efi,l\n".repeat(1000));
        assert_eq!(parse(&many).len(), MOST_LINES, "a file does not fill the firmware's store");
    }

    #[test]
    fn names_of_such_files() {
        for (name, expected) in [
            ("BOOTX64.CSV", true),
            ("bootaa64.csv", true),
            ("Boot.csv", true),
            ("BOOTX64.EFI", false),
            ("x.csv", false),
        ] {
            assert_eq!(is_csv(name), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn csv_parsing_never_panics(content in proptest::collection::vec(any::<u8>(), 0..200)) {
            parse(&content);
        }
    }
}
