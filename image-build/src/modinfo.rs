//! What a kernel module says about itself in its `.modinfo` section.

use object::elf::FileHeader64;
use object::read::ReadRef;
use object::read::elf::ElfFile;
use object::{Endianness, Object, ObjectSection};

/// The fields of a module's `.modinfo` that matter for choosing and loading it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModInfo {
    /// Names of the modules without which this one does not load (`depends`).
    pub depends: Vec<String>,
    /// Modules to load before this one, if there are any (`softdep`, the `pre:` part): names or aliases.
    pub soft_before: Vec<String>,
    /// Modules to load after this one (`softdep`, the `post:` part): names or aliases.
    pub soft_after: Vec<String>,
    /// Patterns by which the kernel asks for this module (`alias`).
    pub aliases: Vec<String>,
    /// Files that the module may ask for, below `/lib/firmware` (`firmware`).
    pub firmware: Vec<String>,
    /// Its licence in the kernel's words (`license`), such as `GPL` or `Dual BSD/GPL`.
    pub license: String,
}

impl ModInfo {
    /// Reads the section out of an ELF object.
    ///
    /// # Errors
    ///
    /// The reason why `object` is no 64-bit ELF file with such a section.
    pub fn from_elf<'data>(object: impl ReadRef<'data>) -> Result<Self, object::Error> {
        let file = ElfFile::<FileHeader64<Endianness>, _>::parse(object)?;
        let section = file.section_by_name_bytes(b".modinfo");
        section.map_or_else(|| Ok(Self::default()), |section| section.data().map(Self::from_section))
    }

    /// Reads the section's content, `key=value` strings with a zero byte after each.
    pub fn from_section(section: &[u8]) -> Self {
        let mut info = Self::default();
        for field in section.split(|&byte| byte == 0) {
            let field = String::from_utf8_lossy(field);
            let Some((key, value)) = field.split_once('=') else { continue };
            match key {
                "depends" => {
                    info.depends.extend(value.split(',').filter(|name| !name.is_empty()).map(module_name))
                }
                "softdep" => info.add_soft_dependencies(value),
                "alias" => info.aliases.push(value.to_owned()),
                "firmware" => info.firmware.push(value.to_owned()),
                "license" => info.license = value.to_owned(),
                _ => {}
            }
        }
        info
    }

    fn add_soft_dependencies(&mut self, value: &str) {
        let mut after = false;
        for word in value.split_whitespace() {
            match word {
                "pre:" => after = false,
                "post:" => after = true,
                name if after => self.soft_after.push(name.to_owned()),
                name => self.soft_before.push(name.to_owned()),
            }
        }
    }
}

/// The kernel's own spelling of a module's name: `-` and `_` are the same to it.
pub fn module_name(spelling: &str) -> String {
    spelling.replace('-', "_")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A relocatable ELF object with a `.modinfo` section of the given fields and nothing else.
    pub(crate) fn synthetic_module(fields: &[&str]) -> Vec<u8> {
        let modinfo: Vec<u8> = fields.iter().flat_map(|field| field.bytes().chain([0])).collect();
        let names = b"\0.modinfo\0.shstrtab\0";
        let names_at = 64 + modinfo.len();
        let sections_at = (names_at + names.len()).next_multiple_of(8);

        let mut elf = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        elf.extend([1, 0, 62, 0, 1, 0, 0, 0]); // relocatable, x86-64, version 1
        elf.extend([0; 16]); // entry point, program headers
        elf.extend((sections_at as u64).to_le_bytes());
        elf.extend([0, 0, 0, 0, 64, 0, 0, 0, 0, 0, 64, 0, 3, 0, 2, 0]); // flags, sizes, counts
        elf.extend(&modinfo);
        elf.extend(names);
        elf.resize(sections_at, 0);
        elf.extend([0; 64]);
        for (name, kind, at, size) in [(1u32, 1u32, 64, modinfo.len()), (10, 3, names_at, names.len())] {
            elf.extend(name.to_le_bytes());
            elf.extend(kind.to_le_bytes());
            elf.extend([0; 16]); // flags, address
            elf.extend((at as u64).to_le_bytes());
            elf.extend((size as u64).to_le_bytes());
            elf.extend([0; 8]); // link, info
            elf.extend(1u64.to_le_bytes());
            elf.extend([0; 8]); // entry size
        }
        elf
    }

    #[test]
    fn fields_are_read_from_an_elf_object() {
        let elf = synthetic_module(&[
            "license=GPL",
            "alias=pci:v00001AF4d*",
            "alias=virtio-dev",
            "depends=virtio,virtio-ring",
            "softdep=pre: crc32c post: late-one other",
            "description=a=b",
            "firmware=acme/nic.bin",
        ]);
        let expected = ModInfo {
            depends: vec!["virtio".into(), "virtio_ring".into()],
            soft_before: vec!["crc32c".into()],
            soft_after: vec!["late-one".into(), "other".into()],
            aliases: vec!["pci:v00001AF4d*".into(), "virtio-dev".into()],
            firmware: vec!["acme/nic.bin".into()],
            license: "GPL".into(),
        };
        assert_eq!(ModInfo::from_elf(&*elf).unwrap(), expected);
    }

    #[test]
    fn odd_sections_are_survived() {
        for (section, expected) in [
            (&b""[..], ModInfo::default()),
            (b"\0\0\0", ModInfo::default()),
            (b"depends=", ModInfo::default()),
            (b"no separator\0depends=a", ModInfo { depends: vec!["a".into()], ..ModInfo::default() }),
            (b"alias=\xff\0", ModInfo { aliases: vec!["\u{fffd}".into()], ..ModInfo::default() }),
        ] {
            assert_eq!(ModInfo::from_section(section), expected, "{section:?}");
        }
    }

    #[test]
    fn what_is_no_elf_object_is_an_error() {
        assert!(ModInfo::from_elf(&b"#!/bin/sh"[..]).is_err());
        let mut cut = synthetic_module(&["depends=a"]);
        cut.truncate(80);
        assert!(ModInfo::from_elf(&*cut).is_err());
    }
}
