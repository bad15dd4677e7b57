//! Password hashes of the form `$5$salt$hash`: SHA-crypt with SHA-256 and 5000 rounds.

use super::ALPHABET;
use sha2::{Digest, Sha256};

/// Rounds of the format when it names none.
const ROUNDS: usize = 5000;
/// Bytes of a digest.
const LENGTH: usize = 32;
/// The order in which the bytes of the last digest are written, three at a time.
const ORDER: [[usize; 3]; 10] = [
    [0, 10, 20],
    [21, 1, 11],
    [12, 22, 2],
    [3, 13, 23],
    [24, 4, 14],
    [15, 25, 5],
    [6, 16, 26],
    [27, 7, 17],
    [18, 28, 8],
    [9, 19, 29],
];

type Sum = [u8; LENGTH];

/// Hashes a password with a salt of at most 16 characters.
pub fn hash(password: &[u8], salt: &str) -> String {
    let first = mix(password, salt.as_bytes());
    let password_bytes = stretch(&digest(&vec![password; password.len()]), password.len());
    let salt_repeats = 16 + usize::from(first[0]);
    let salt_bytes = stretch(&digest(&vec![salt.as_bytes(); salt_repeats]), salt.len());
    let last = (0..ROUNDS).fold(first, |sum, round| {
        let is_odd = round % 2 == 1;
        let mut parts: Vec<&[u8]> = vec![if is_odd { &password_bytes } else { &sum }];
        if round % 3 != 0 {
            parts.push(&salt_bytes);
        }
        if round % 7 != 0 {
            parts.push(&password_bytes);
        }
        parts.push(if is_odd { &sum } else { &password_bytes });
        digest(&parts)
    });
    format!("$5${salt}${}", encode(&last))
}

/// The digest from which the rounds begin.
fn mix(password: &[u8], salt: &[u8]) -> Sum {
    let other = digest(&[password, salt, password]);
    let filling = stretch(&other, password.len());
    let mut parts = vec![password, salt, &filling];
    let mut bits = password.len();
    while bits > 0 {
        parts.push(if bits % 2 == 1 { &other } else { password });
        bits /= 2;
    }
    digest(&parts)
}

fn digest(parts: &[&[u8]]) -> Sum {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// Repeats a digest up to a length.
fn stretch(sum: &Sum, length: usize) -> Vec<u8> {
    sum.iter().copied().cycle().take(length).collect()
}

fn encode(sum: &Sum) -> String {
    let mut text = String::new();
    for [a, b, c] in ORDER {
        push(&mut text, [sum[a], sum[b], sum[c]], 4);
    }
    push(&mut text, [0, sum[31], sum[30]], 3);
    text
}

/// Writes 24 bits as characters of six bits each, the lowest first.
fn push(text: &mut String, [high, middle, low]: [u8; 3], characters: usize) {
    let mut bits = u32::from_be_bytes([0, high, middle, low]);
    for _ in 0..characters {
        text.push(char::from(ALPHABET[(bits & 0x3f) as usize]));
        bits >>= 6;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_libxcrypt_are_reproduced() {
        for (password, expected) in EXPECTED {
            let salt = expected.split('$').nth(2).unwrap();
            assert_eq!(hash(password.as_bytes(), salt), *expected, "{password}");
        }
    }

    /// What libxcrypt makes of them.
    const EXPECTED: &[(&str, &str)] = &[
        ("Hello world!", "$5$saltstring$5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
        ("secret", "$5$a$tCYspCVtCn1.MmJdxOr008Us2DcT3YW7dL1YBGz6mE2"),
        ("x", "$5$0123456789abcdef$.fULuWHW4LFdceMju5Z2fLohL4aL5Nk149iH4KnvtJ9"),
        (
            "pässword of more than thirty-two bytes, twice over in the end",
            "$5$./Az09$U2YzJvQERs0v1I5DRJl0VD/T5OdNAW0DXwZEBvqzRr0",
        ),
    ];
}
