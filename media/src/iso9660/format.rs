//! How ISO 9660 writes sectors and numbers.

/// Bytes in a sector.
pub const SECTOR: usize = 2048;

/// A number in both byte orders, as the standard repeats it.
pub fn both_u32(number: u32) -> [u8; 8] {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&number.to_le_bytes());
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    bytes
}

/// A number in both byte orders, as the standard repeats it.
pub fn both_u16(number: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (number.to_le_bytes(), number.to_be_bytes());
    [a, b, c, d]
}
