//! Looks at executables before they are packed.

use object::Endianness;
use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64, PT_INTERP};
use object::read::elf::{FileHeader, ProgramHeader};

use std::path::Path;

use crate::error::BuildError;

/// Architecture of a static executable, in the kernel's spelling.
///
/// # Errors
///
/// [`BuildError::Elf`] for what is no executable of a supported architecture and
/// [`BuildError::Dynamic`], with `remedy` in its text, for one that needs a dynamic loader.
pub fn static_architecture(path: &Path, bytes: &[u8], remedy: &str) -> Result<&'static str, BuildError> {
    let broken = |reason: String| BuildError::Elf { path: path.to_owned(), reason };
    let header = FileHeader64::<Endianness>::parse(bytes).map_err(|error| broken(error.to_string()))?;
    let endian = header.endian().map_err(|error| broken(error.to_string()))?;
    let segments = header.program_headers(endian, bytes).map_err(|error| broken(error.to_string()))?;
    if segments.iter().any(|segment| segment.p_type(endian) == PT_INTERP) {
        return Err(BuildError::Dynamic { path: path.to_owned(), remedy: remedy.to_owned() });
    }
    match header.e_machine(endian) {
        EM_X86_64 => Ok("x86_64"),
        EM_AARCH64 => Ok("aarch64"),
        machine => Err(broken(format!("machine type {machine:?} is not supported"))),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A 64-bit x86 executable of one program header of the given type.
    pub(crate) fn synthetic_executable(segment: u8) -> Vec<u8> {
        let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        elf.extend([2, 0, 62, 0, 1, 0, 0, 0]); // executable, x86-64, version 1
        elf.extend([0; 8]); // entry point
        elf.extend([64, 0, 0, 0, 0, 0, 0, 0]); // program headers follow this header
        elf.extend([0; 12]); // section headers, flags
        elf.extend([64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0]); // sizes and counts
        elf.extend([segment, 0, 0, 0]);
        elf.extend([0; 52]);
        elf
    }

    #[test]
    fn only_static_executables_pass() {
        let path = Path::new("/agent");
        let (load, interpreter) = (1, 3);
        let check = |bytes: &[u8]| static_architecture(path, bytes, "build it for musl");
        assert_eq!(check(&synthetic_executable(load)).unwrap(), "x86_64");
        assert!(matches!(check(&synthetic_executable(interpreter)), Err(BuildError::Dynamic { .. })));
        assert!(matches!(check(b"#!/bin/sh\n"), Err(BuildError::Elf { .. })));
        let mut foreign = synthetic_executable(load);
        foreign[18] = 8;
        assert!(matches!(check(&foreign), Err(BuildError::Elf { .. })));
    }
}
