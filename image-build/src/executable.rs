//! Looks at executables before they are packed.

use std::path::{Path, PathBuf};

use object::Endianness;
use object::elf::{DT_NEEDED, DT_RPATH, DT_RUNPATH, EM_AARCH64, EM_X86_64, FileHeader64, Sym64};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader, Sym};

use crate::error::BuildError;

/// What glibc loads where a thread is cancelled or ends early, and aborts without; no linker notes that.
const UNWINDER: &str = "libgcc_s.so.1";
const ENDS_OF_THREADS: [&[u8]; 2] = [b"pthread_cancel", b"pthread_exit"];

/// What an executable needs to run.
#[derive(Debug, PartialEq, Eq)]
pub struct Executable {
    /// Architecture, in the kernel's spelling.
    pub architecture: &'static str,
    /// Path of its dynamic loader, if it needs one.
    pub loader: Option<String>,
    /// Names of the libraries it is linked with, and of the one that ending a thread loads.
    pub libraries: Vec<String>,
    /// Folders in which these are looked for before all others.
    pub run_path: Vec<String>,
}

/// The architecture that all executables of a ramdisk have.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The agent, which decides.
    pub agent: &'a Path,
    /// Its architecture, in the kernel's spelling.
    pub architecture: &'static str,
}

impl Executable {
    /// Reads the headers of the ELF file in `bytes`, which were read from `path`.
    ///
    /// # Errors
    ///
    /// [`BuildError::Elf`] for what is no executable of a supported architecture.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Self, BuildError> {
        let broken = |reason: String| BuildError::Elf { path: path.to_owned(), reason };
        let file =
            ElfFile::<FileHeader64<Endianness>>::parse(bytes).map_err(|error| broken(error.to_string()))?;
        let architecture = match file.elf_header().e_machine(file.endian()) {
            EM_X86_64 => "x86_64",
            EM_AARCH64 => "aarch64",
            machine => return Err(broken(format!("machine type {machine:?} is not supported"))),
        };
        let mut executable = Self { architecture, loader: None, libraries: Vec::new(), run_path: Vec::new() };
        executable.read_needs(&file).map_err(|error| broken(error.to_string()))?;
        Ok(executable)
    }

    /// Finds the dynamic loader, the names of libraries, and where these lie.
    fn read_needs(&mut self, file: &ElfFile<FileHeader64<Endianness>>) -> object::Result<()> {
        let (endian, data) = (file.endian(), file.data());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
        for segment in file.elf_header().program_headers(endian, data)? {
            let loader = segment.interpreter(endian, data)?.map(text);
            self.loader = self.loader.take().or(loader);
        }
        let table = file.elf_section_table().dynamic_table(endian, data)?;
        for entry in table.iter() {
            match entry.tag {
                DT_NEEDED => self.libraries.push(text(table.string(entry)?)),
                DT_RPATH | DT_RUNPATH => {
                    self.run_path.extend(text(table.string(entry)?).split(':').map(str::to_owned));
                }
                _ => {}
            }
        }
        let symbols = file.elf_dynamic_symbol_table();
        let ends_threads = |symbol: &Sym64<Endianness>| {
            let name = symbols.symbol_name(endian, symbol);
            symbol.is_undefined(endian) && name.is_ok_and(|name| ENDS_OF_THREADS.contains(&name))
        };
        if symbols.iter().any(ends_threads) && !self.libraries.iter().any(|name| name == UNWINDER) {
            self.libraries.push(UNWINDER.to_owned());
        }
        Ok(())
    }
}

/// Architecture of a static executable, in the kernel's spelling.
///
/// # Errors
///
/// [`BuildError::Elf`], and [`BuildError::Dynamic`], with `remedy` in its text, for one that needs a
/// dynamic loader.
pub fn static_architecture(path: &Path, bytes: &[u8], remedy: &str) -> Result<&'static str, BuildError> {
    let executable = Executable::parse(path, bytes)?;
    if executable.loader.is_some() {
        return Err(BuildError::Dynamic { path: path.to_owned(), remedy: remedy.to_owned() });
    }
    Ok(executable.architecture)
}

impl Target<'_> {
    /// Refuses a file at `path` that was found to be for another architecture.
    ///
    /// # Errors
    ///
    /// [`BuildError::Architecture`] naming both files.
    pub fn check(&self, path: &Path, found: &'static str) -> Result<(), BuildError> {
        if found == self.architecture {
            return Ok(());
        }
        let (path, other): (PathBuf, PathBuf) = (path.to_owned(), self.agent.to_owned());
        Err(BuildError::Architecture { path, found, other, wanted: self.architecture })
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
        elf.extend([segment, 0, 0, 0, 0, 0, 0, 0]);
        for field in [120_u64, 0, 0, 7, 0, 0] {
            elf.extend(field.to_le_bytes()); // offset, addresses, sizes, alignment
        }
        elf.extend(b"/ld.so\0");
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

    #[test]
    fn what_a_dynamic_program_needs_is_read_from_this_test() {
        let path = std::env::current_exe().unwrap();
        let executable = Executable::parse(&path, &std::fs::read(&path).unwrap()).unwrap();
        assert!(executable.loader.unwrap().contains("ld-linux"));
        assert!(executable.libraries.iter().any(|name| name.starts_with("libc.so")));
    }

    #[test]
    fn what_ending_a_thread_loads_is_needed_by_a_program_that_ends_one() {
        // It is linked with libc alone.
        let path = Path::new("/usr/sbin/tgtd");
        let executable = Executable::parse(path, &std::fs::read(path).unwrap()).unwrap();
        assert!(executable.libraries.iter().any(|name| name == UNWINDER), "{executable:?}");
        let path = Path::new("/usr/sbin/tgtadm");
        let executable = Executable::parse(path, &std::fs::read(path).unwrap()).unwrap();
        assert!(!executable.libraries.iter().any(|name| name == UNWINDER), "{executable:?}");
    }

    #[test]
    fn another_architecture_is_named_with_both_files() {
        let target = Target { agent: Path::new("/agent"), architecture: "aarch64" };
        target.check(Path::new("/x"), "aarch64").unwrap();
        let text = target.check(Path::new("/x"), "x86_64").unwrap_err().to_string();
        assert!(text.starts_with("/x is for x86_64, but /agent is for aarch64"), "{text}");
    }
}
