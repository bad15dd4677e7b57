//! Kernel files as distributions pack them.

use std::io::Read;
use std::path::Path;

use crate::error::BuildError;

/// A kernel's file.
#[derive(Debug, Clone)]
pub struct KernelImage {
    /// Its architecture, in the kernel's spelling.
    pub architecture: &'static str,
    /// The kernel as firmware starts it.
    pub program: Vec<u8>,
}

impl KernelImage {
    /// Recognises the kernel in `bytes`, which were read from `path`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Kernel`] for anything else.
    pub fn parse(path: &Path, bytes: Vec<u8>) -> Result<Self, BuildError> {
        let broken = || BuildError::Kernel { path: path.to_owned() };
        let program = if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut program = Vec::new();
            flate2::read::GzDecoder::new(&*bytes).read_to_end(&mut program).map_err(|_| broken())?;
            program
        } else {
            bytes
        };
        // Documentation/x86/boot.rst and Documentation/arm64/booting.rst of the kernel.
        let has = |at: usize, magic: &[u8]| program.get(at..at + magic.len()) == Some(magic);
        let architecture = match () {
            () if has(0x202, b"HdrS") => "x86_64",
            () if has(56, b"ARM\x64") => "aarch64",
            () => return Err(broken()),
        };
        Ok(Self { architecture, program })
    }

    /// The kernel as it is transferred: one that does not unpack itself is compressed with gzip, which
    /// GRUB, iPXE and QEMU undo.
    pub fn to_file(&self) -> Vec<u8> {
        if self.architecture == "x86_64" {
            self.program.clone()
        } else {
            crate::compress::gzip(&self.program)
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The start of a kernel of an architecture.
    pub(crate) fn synthetic_kernel(architecture: &str) -> Vec<u8> {
        let mut kernel = vec![b'k'; 4096];
        match architecture {
            "x86_64" => kernel[0x202..0x206].copy_from_slice(b"HdrS"),
            _ => kernel[56..60].copy_from_slice(b"ARM\x64"),
        }
        kernel
    }

    #[test]
    fn kernels_are_recognised_and_survive_packing() {
        for (architecture, is_packed) in [("x86_64", false), ("aarch64", true)] {
            let bytes = synthetic_kernel(architecture);
            let kernel = KernelImage::parse(Path::new("vmlinuz"), bytes.clone()).unwrap();
            assert_eq!(kernel.architecture, architecture);
            let file = kernel.to_file();
            assert_eq!(file != bytes, is_packed);
            assert_eq!(KernelImage::parse(Path::new("vmlinuz"), file).unwrap().program, bytes);
        }
    }

    #[test]
    fn anything_else_is_named() {
        for bytes in [b"kernel".to_vec(), vec![0x1f, 0x8b, 8], Vec::new()] {
            let error = KernelImage::parse(Path::new("/boot/vmlinux"), bytes).unwrap_err().to_string();
            assert!(error.starts_with("/boot/vmlinux is no kernel"), "{error}");
        }
    }
}
