//! What a drive says is in it.

/// Whether an image is named as in a URL. BMCs leave out what is before the last part of its path, or write that in another
/// way, and the last part of a medium's path is its own.
pub(super) fn is_same(image: &str, url: &str) -> bool {
    let last = |text: &str| {
        let path = text.split(['?', '#']).next().unwrap_or_default();
        let last = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
        unescaped(last)
    };
    let last_of_url = last(url);
    !last_of_url.is_empty() && last(image).eq_ignore_ascii_case(&last_of_url)
}

/// A part of a path without escapes (RFC 3986, section 2.1).
fn unescaped(part: &str) -> String {
    let mut pieces = part.split('%');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        match piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend_from_slice(&piece.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend_from_slice(piece.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c09_an_image_is_known_by_the_last_part_of_its_name() {
        let url = "http://192.0.2.5:8080/v1/media/horse%20one.iso";
        for (image, expected) in [
            (url, true),
            ("horse one.iso", true),
            ("/v1/media/horse%20one.iso", true),
            ("http://192.0.2.5:8080/v1/media/horse%20one.iso?token=x", true),
            ("//192.0.2.5/v1/media/HORSE%20ONE.ISO", true),
            ("\\\\192.0.2.5\\media\\horse one.iso", true),
            ("one.iso", false),
            ("http://192.0.2.5:8080/v1/media/cow.iso", false),
            ("http://192.0.2.5:8080/", false),
            ("", false),
        ] {
            assert_eq!(is_same(image, url), expected, "{image}");
        }
        assert!(!is_same("", "http://h/") && !is_same("/", "http://h/"));
    }
}
