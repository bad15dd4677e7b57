//! Names in folders of FAT: short ones of eight and three bytes, and the long ones before them.

/// First byte of an entry that was deleted, and what stands for that byte in a name.
pub const DELETED: u8 = 0xe5;
const FOR_DELETED: u8 = 0x05;
/// Says that the name before the dot, and the one behind it, are shown in lower case.
const LOWER_BASE: u8 = 0x08;
const LOWER_EXTENSION: u8 = 0x10;

/// Most entries of a long name, of thirteen letters each.
const MOST_PARTS: u8 = 20;
/// Marks the entry that comes first, which has the end of the name.
const LAST_PART: u8 = 0x40;
/// Where the letters of a part are.
const LETTERS: [std::ops::Range<usize>; 3] = [1..11, 14..26, 28..32];

/// Codepage 437 from 0x80 on, by which Linux reads short names.
const CODEPAGE: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀\
                        αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// The parts of a long name that came so far.
#[derive(Debug, Default)]
pub struct LongName {
    /// UTF-16, from its end.
    parts: Vec<[u16; 13]>,
    /// Parts that are still to come.
    missing: u8,
    checksum: u8,
}

impl LongName {
    /// Takes the entry of a part. One that does not continue what came so far begins another name, or none.
    pub fn add(&mut self, entry: &[u8; 32]) {
        let (number, checksum) = (entry[0] & !LAST_PART, entry[13]);
        let is_first = entry[0] & LAST_PART != 0 && (1..=MOST_PARTS).contains(&number);
        let continues = number != 0 && number == self.missing && checksum == self.checksum;
        if is_first {
            *self = Self { parts: Vec::new(), missing: number, checksum };
        } else if !continues {
            *self = Self::default();
            return;
        }
        let mut letters = LETTERS.iter().flat_map(|range| entry[range.clone()].chunks_exact(2));
        let letter = |bytes: Option<&[u8]>| bytes.map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        self.parts.push(std::array::from_fn(|_| letter(letters.next())));
        self.missing -= 1;
    }

    /// The name of the entry that follows, and nothing that is left for the next one.
    pub fn take(&mut self, entry: &[u8; 32]) -> String {
        let Self { parts, missing, checksum: expected } = std::mem::take(self);
        if parts.is_empty() || missing != 0 || expected != checksum(entry) {
            return short_name(entry);
        }
        let units = parts.into_iter().rev().flatten().take_while(|unit| *unit != 0);
        String::from_utf16_lossy(&units.collect::<Vec<_>>())
    }
}

/// By which a long name says to which short one it belongs.
fn checksum(entry: &[u8; 32]) -> u8 {
    entry[..11].iter().fold(0, |sum: u8, byte| sum.rotate_right(1).wrapping_add(*byte))
}

fn short_name(entry: &[u8; 32]) -> String {
    let mut name = [0; 11];
    name.copy_from_slice(&entry[..11]);
    if name[0] == FOR_DELETED {
        name[0] = DELETED;
    }
    let (base, extension) = name.split_at(8);
    let base = text(base, entry[12] & LOWER_BASE != 0);
    let extension = text(extension, entry[12] & LOWER_EXTENSION != 0);
    if extension.is_empty() { base } else { format!("{base}.{extension}") }
}

fn text(bytes: &[u8], is_lower: bool) -> String {
    let letter = |byte: &u8| match byte.checked_sub(0x80) {
        Some(high) => CODEPAGE.chars().nth(high.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
        None => char::from(*byte),
    };
    let text: String = bytes.iter().map(letter).collect();
    let text = text.trim_end_matches(' ');
    if is_lower { text.to_lowercase() } else { text.to_owned() }
}
