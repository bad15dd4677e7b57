//! The processors for which firmware starts programs, and which of them a program is for.

use std::fmt;
use std::io::{self, Read};

/// Where a program has the offset of its header (PE format, section 2).
const HEADER_OFFSET: usize = 0x3c;
/// Longest way to that header; programs for firmware have it within a few hundred bytes.
const MOST_BEFORE_HEADER: usize = 64 << 10;
const MAGIC: &[u8] = b"MZ";
const HEADER_MAGIC: &[u8] = b"PE\0\0";

/// An architecture of firmware, which need not be that of the processor or the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// How names of boot files end, such as `x64` (UEFI specification, section 3.5.1.1).
    pub suffix: &'static str,
    /// What the header of a program says (PE format, machine types).
    code: u16,
}

/// Every one that the specification names, and what Rust calls it.
const MACHINES: &[(&str, Machine)] = &[
    ("x86", Machine { suffix: "ia32", code: 0x014c }),
    ("x86_64", Machine { suffix: "x64", code: 0x8664 }),
    ("ia64", Machine { suffix: "ia64", code: 0x0200 }),
    ("arm", Machine { suffix: "arm", code: 0x01c2 }),
    ("aarch64", Machine { suffix: "aa64", code: 0xaa64 }),
    ("riscv32", Machine { suffix: "riscv32", code: 0x5032 }),
    ("riscv64", Machine { suffix: "riscv64", code: 0x5064 }),
    ("riscv128", Machine { suffix: "riscv128", code: 0x5128 }),
    ("loongarch32", Machine { suffix: "loongarch32", code: 0x6232 }),
    ("loongarch64", Machine { suffix: "loongarch64", code: 0x6264 }),
];

impl Machine {
    /// The firmware of a machine whose kernel is for `architecture`, as Rust calls it, when it has so many `bits`:
    /// processors of the PC run 64-bit kernels on 32-bit firmware, and the other way round.
    pub fn of(architecture: &str, bits: Option<u32>) -> Option<Self> {
        let name = match (architecture, bits) {
            ("x86_64", Some(32)) => "x86",
            ("x86", Some(64)) => "x86_64",
            (name, _) => name,
        };
        MACHINES.iter().find(|(known, _)| *known == name).map(|(_, machine)| *machine)
    }

    /// The architecture that a program for firmware is for; nothing when it is no such program.
    ///
    /// # Errors
    ///
    /// Whatever reading brings, save that the program ends.
    pub fn of_program(program: &mut dyn Read) -> io::Result<Option<u16>> {
        let mut start = [0; HEADER_OFFSET + 4];
        let read = fill(program, &mut start)?;
        if read < start.len() || !start.starts_with(MAGIC) {
            return Ok(None);
        }
        let [.., a, b, c, d] = start;
        let skipped = (u32::from_le_bytes([a, b, c, d]) as usize).checked_sub(start.len());
        let Some(skipped) = skipped.filter(|skipped| *skipped <= MOST_BEFORE_HEADER) else { return Ok(None) };
        let mut rest = vec![0; skipped + HEADER_MAGIC.len() + 2];
        let read = fill(program, &mut rest)?;
        let header = rest.get(skipped..read).unwrap_or_default();
        let is_whole = header.len() == HEADER_MAGIC.len() + 2 && header.starts_with(HEADER_MAGIC);
        Ok(is_whole.then(|| u16::from_le_bytes([header[4], header[5]])))
    }

    /// Whether this firmware starts programs with that architecture in their headers.
    pub fn runs(&self, code: u16) -> bool {
        self.code == code
    }

    /// Where firmware looks that has no boot entry (UEFI specification, section 3.5.1).
    pub fn removable_path(&self) -> String {
        format!("EFI/BOOT/BOOT{}.EFI", self.suffix.to_uppercase())
    }

    /// What an architecture in a header is called.
    pub fn name_of(code: u16) -> String {
        let known = MACHINES.iter().find(|(_, machine)| machine.code == code);
        known.map_or_else(|| format!("architecture {code:#06x}"), |(_, machine)| machine.suffix.to_owned())
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.suffix)
    }
}

/// Reads until the buffer is full or the program ends.
fn fill(program: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match program.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of a program with its header at `offset`.
    fn program(code: u16, offset: usize) -> Vec<u8> {
        let mut bytes = vec![0; offset];
        bytes[..2].copy_from_slice(MAGIC);
        bytes[HEADER_OFFSET..][..4].copy_from_slice(&(offset as u32).to_le_bytes());
        bytes.extend(HEADER_MAGIC);
        bytes.extend(code.to_le_bytes());
        bytes.extend([0; 100]);
        bytes
    }

    #[test]
    fn a07_a_program_says_for_which_machine_it_is() {
        for (bytes, expected) in [
            (program(0x8664, 0x40), Some(0x8664)),
            (program(0xaa64, 0x80), Some(0xaa64)),
            (program(0x5064, 60_000), Some(0x5064)),
            (program(0x8664, 70_000), None),
            (program(0x8664, 0x80)[..0x84].to_vec(), None),
            (program(0x8664, 0x80)[..0x85].to_vec(), None),
            (program(0x8664, 0x80)[..0x20].to_vec(), None),
            ([b"ZM", &program(0x8664, 0x80)[2..]].concat(), None),
            ([&program(0x8664, 0x80)[..0x80], b"NE\0\0\x64\x86"].concat(), None),
            (b"MZ".to_vec(), None),
            (vec![0xff; 5000], None),
            (Vec::new(), None),
        ] {
            assert_eq!(Machine::of_program(&mut &bytes[..]).unwrap(), expected, "{} bytes", bytes.len());
        }
    }

    #[test]
    fn a07_the_firmware_decides_and_not_the_processor() {
        for (architecture, bits, expected) in [
            ("x86_64", Some(64), Some("x64")),
            ("x86_64", None, Some("x64")),
            ("x86_64", Some(32), Some("ia32")),
            ("x86", Some(64), Some("x64")),
            ("aarch64", Some(64), Some("aa64")),
            ("riscv64", Some(64), Some("riscv64")),
            ("loongarch64", None, Some("loongarch64")),
            ("s390x", None, None),
        ] {
            assert_eq!(
                Machine::of(architecture, bits).map(|machine| machine.suffix),
                expected,
                "{architecture}"
            );
        }
        let x64 = Machine::of("x86_64", None).unwrap();
        assert_eq!((x64.runs(0x8664), x64.runs(0x014c), x64.runs(0xaa64)), (true, false, false));
        assert_eq!(x64.removable_path(), "EFI/BOOT/BOOTX64.EFI");
        assert_eq!(
            (Machine::name_of(0xaa64).as_str(), Machine::name_of(7).as_str()),
            ("aa64", "architecture 0x0007")
        );
    }
}
