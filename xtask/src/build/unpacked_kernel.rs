//! Debian's kernel as it is once it has unpacked itself: an ELF file that QEMU starts by its PVH entry point.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use liblzma::read::XzDecoder;

/// Where a bzImage says how many sectors come before its protected-mode code, beside the first one; four where it
/// says zero (Linux, `Documentation/arch/x86/boot.rst`).
const SETUP_SECTORS: usize = 0x1f1;
const SETUP_SECTORS_IF_ZERO: usize = 4;
const SECTOR: usize = 512;
/// Where it says how far in that code the packed kernel begins.
const PAYLOAD_OFFSET: usize = 0x248;
const XZ: &[u8] = b"\xfd7zXZ\0";

/// Writes the kernel of a bzImage to `file`.
pub fn write(image: &Path, file: &Path) -> Result<()> {
    let packed = fs::read(image).with_context(|| format!("cannot read {}", image.display()))?;
    let kernel = unpacked(&packed).with_context(|| format!("cannot unpack {}", image.display()))?;
    fs::write(file, kernel).with_context(|| format!("cannot write {}", file.display()))
}

fn unpacked(image: &[u8]) -> Result<Vec<u8>> {
    let payload = payload(image).context("it is no bzImage")?;
    if !payload.starts_with(XZ) {
        bail!("it is not packed with xz, as Debian's kernels are");
    }
    // The length of what is unpacked follows, and is none of the stream.
    let mut kernel = Vec::new();
    XzDecoder::new(payload).read_to_end(&mut kernel)?;
    Ok(kernel)
}

fn payload(image: &[u8]) -> Option<&[u8]> {
    let sectors = match usize::from(*image.get(SETUP_SECTORS)?) {
        0 => SETUP_SECTORS_IF_ZERO,
        sectors => sectors,
    };
    let offset = u32::from_le_bytes(*image.get(PAYLOAD_OFFSET..)?.first_chunk()?);
    image.get((sectors + 1) * SECTOR + usize::try_from(offset).ok()?..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use liblzma::write::XzEncoder;
    use std::io::Write;

    #[test]
    fn the_kernel_is_found_behind_its_setup_and_what_is_none_is_refused() {
        let mut encoder = XzEncoder::new(Vec::new(), 1);
        encoder.write_all(b"\x7fELF and more").unwrap();
        let packed = encoder.finish().unwrap();
        for (sectors, behind) in [(0, 5), (7, 8)] {
            let mut image = vec![0; behind * SECTOR + 100];
            image[SETUP_SECTORS] = sectors;
            image[PAYLOAD_OFFSET] = 100;
            assert!(unpacked(&image).is_err());
            image.extend(&packed);
            image.extend(12_u32.to_le_bytes());
            assert_eq!(unpacked(&image).unwrap(), b"\x7fELF and more");
        }
        for none in [&[0; 100][..], &[0; 2000], &[0xff; 2000]] {
            assert!(unpacked(none).is_err());
        }
    }
}
