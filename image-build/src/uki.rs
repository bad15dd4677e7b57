//! Unified kernel images: systemd's stub for EFI with kernel, ramdisk and command line as sections of it.
//!
//! The format is that of the UAPI group's specification; a Portable Executable gains sections at its end.

use std::path::Path;

use crate::error::BuildError;

/// Sections begin at whole pages, whatever the stub's own alignment.
const PAGE: usize = 4096;
const SECTION_HEADER: usize = 40;
/// Initialized data, readable.
const READ_ONLY_DATA: u32 = 0x4000_0040;

/// What becomes sections.
#[derive(Debug)]
pub struct Parts<'a> {
    /// The kernel, an EFI program itself.
    pub kernel: &'a [u8],
    /// Release of the kernel.
    pub release: &'a str,
    /// The initial ramdisk.
    pub initramfs: &'a [u8],
    /// The kernel's command line.
    pub command_line: &'a str,
}

/// Fields of a PE file that change when sections are added.
struct Layout {
    /// Where the number of sections is.
    count_at: usize,
    /// Where the optional header begins.
    optional_at: usize,
    /// Where the first section header is.
    sections_at: usize,
    count: usize,
    file_alignment: usize,
}

/// Adds `parts` to the `stub` that was read from `path`.
///
/// # Errors
///
/// [`BuildError::Stub`] for what is no stub, or has no room for more sections.
pub fn assemble(path: &Path, stub: &[u8], parts: &Parts) -> Result<Vec<u8>, BuildError> {
    let broken = |reason| BuildError::Stub { path: path.to_owned(), reason };
    let layout = Layout::read(stub).ok_or_else(|| broken("it is no 64-bit EFI program"))?;
    let os_release =
        format!("ID=farrier\nNAME=Farrier\nVERSION_ID={0}\nPRETTY_NAME=\"Farrier {0}\"\n", version());
    // The kernel comes last: behind it is room that it may use.
    let sections: [(&[u8; 8], &[u8]); 5] = [
        (b".osrel\0\0", os_release.as_bytes()),
        (b".uname\0\0", parts.release.as_bytes()),
        (b".cmdline", parts.command_line.as_bytes()),
        (b".initrd\0", parts.initramfs),
        (b".linux\0\0", parts.kernel),
    ];
    if !layout.has_room(stub, sections.len()) {
        return Err(broken("its header has no room for more sections"));
    }
    // What lies behind the sections, symbols for debuggers, would not be covered by a signature.
    let mut image = stub[..layout.end_of_sections(stub).min(stub.len())].to_vec();
    put(&mut image, layout.count_at + 6, 0);
    put(&mut image, layout.count_at + 10, 0);
    image.resize(image.len().next_multiple_of(layout.file_alignment), 0);
    let mut address = layout.end_of_image(stub).next_multiple_of(PAGE);
    for (index, (name, content)) in sections.iter().enumerate() {
        let header = layout.sections_at + SECTION_HEADER * (layout.count + index);
        let file_at = image.len();
        image.extend_from_slice(content);
        image.resize(image.len().next_multiple_of(layout.file_alignment), 0);
        let file_size = image.len() - file_at;
        image[header..header + 8].copy_from_slice(*name);
        for (offset, value) in
            [(8, content.len()), (12, address), (16, file_size), (20, file_at), (24, 0), (28, 0), (32, 0)]
        {
            put(&mut image, header + offset, value as u32);
        }
        put(&mut image, header + 36, READ_ONLY_DATA);
        address = (address + content.len()).next_multiple_of(PAGE);
    }
    let count = (layout.count + sections.len()) as u16;
    image[layout.count_at..layout.count_at + 2].copy_from_slice(&count.to_le_bytes());
    put(&mut image, layout.optional_at + 56, address as u32);
    Ok(image)
}

impl Layout {
    fn read(file: &[u8]) -> Option<Self> {
        let header = u32_at(file, 0x3c)? as usize;
        let optional_at = header.checked_add(24)?;
        let is_pe = file.get(header..header + 4)? == b"PE\0\0" && u16_at(file, optional_at)? == 0x20b;
        let layout = Self {
            count_at: header + 6,
            optional_at,
            sections_at: optional_at + usize::from(u16_at(file, header + 20)?),
            count: usize::from(u16_at(file, header + 6)?),
            file_alignment: u32_at(file, optional_at + 36)? as usize,
        };
        (is_pe && layout.file_alignment.is_power_of_two()).then_some(layout)
    }

    fn has_room(&self, file: &[u8], more: usize) -> bool {
        let end = self.sections_at + SECTION_HEADER * (self.count + more);
        let size_of_headers = u32_at(file, self.optional_at + 60).unwrap_or_default() as usize;
        end <= size_of_headers && end <= file.len()
    }

    fn end_of_sections(&self, file: &[u8]) -> usize {
        let headers = (0..self.count).map(|index| self.sections_at + SECTION_HEADER * index);
        let ends =
            headers.filter_map(|at| Some(u32_at(file, at + 16)? as usize + u32_at(file, at + 20)? as usize));
        ends.max().unwrap_or_default()
    }

    fn end_of_image(&self, file: &[u8]) -> usize {
        u32_at(file, self.optional_at + 56).unwrap_or_default() as usize
    }
}

fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn put(image: &mut [u8], at: usize, value: u32) {
    image[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// The number at a place, if the file reaches so far.
pub(crate) fn u32_at(file: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(file.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// The number at a place, if the file reaches so far.
pub(crate) fn u16_at(file: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(file.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An EFI program of one section, with headers of 1 KiB.
    pub(crate) fn synthetic_stub() -> Vec<u8> {
        let mut stub = vec![0; 1024 + 512];
        stub[..2].copy_from_slice(b"MZ");
        put(&mut stub, 0x3c, 0x80);
        stub[0x80..0x84].copy_from_slice(b"PE\0\0");
        stub[0x84..0x86].copy_from_slice(&0x8664_u16.to_le_bytes());
        stub[0x86] = 1;
        stub[0x94] = 240; // size of the optional header
        stub[0x98..0x9a].copy_from_slice(&0x20b_u16.to_le_bytes());
        // Alignments of sections and file, sizes of image and headers, number of directories.
        // Size and place of the section in the file.
        put(&mut stub, 0x98 + 240 + 16, 512);
        put(&mut stub, 0x98 + 240 + 20, 1024);
        stub.extend(b"symbols");
        for (at, value) in [(32, 512), (36, 512), (56, 0x1234), (60, 1024), (108, 16)] {
            put(&mut stub, 0x98 + at, value);
        }
        stub
    }

    fn parts() -> Parts<'static> {
        Parts { kernel: &[7; 5000], release: "6.1.0-test", initramfs: &[9; 100], command_line: "a=b quiet" }
    }

    #[test]
    fn a_pe_reader_finds_the_parts() {
        use object::{Object, ObjectSection};
        let image = assemble(Path::new("stub"), &synthetic_stub(), &parts()).unwrap();
        let file = object::read::pe::PeFile64::parse(&*image).unwrap();
        let section = |name| {
            let section = file.section_by_name(name).expect(name);
            (section.address(), section.data().unwrap()[..section.size() as usize].to_vec())
        };
        assert_eq!(section(".cmdline").1, b"a=b quiet");
        assert_eq!(section(".uname").1, b"6.1.0-test");
        assert_eq!(section(".initrd").1, [9; 100]);
        assert_eq!(section(".linux").1, [7; 5000]);
        assert!(!image.windows(7).any(|bytes| bytes == b"symbols"));
        assert!(section(".osrel").1.starts_with(b"ID=farrier\n"));
        assert!(section(".osrel").0 >= 0x1234 && section(".initrd").0 < section(".linux").0);
        let end = u32_at(&image, 0x98 + 56).unwrap() as u64;
        assert!(end >= section(".linux").0 + 5000 && image.len().is_multiple_of(512));
    }

    #[test]
    fn what_is_no_stub_is_refused() {
        let mut full = synthetic_stub();
        put(&mut full, 0x98 + 60, 0x200);
        for (stub, text) in [
            (b"MZ".to_vec(), "no 64-bit EFI program"),
            (vec![0xff; 200], "no 64-bit EFI program"),
            (full, "no room"),
        ] {
            let error = assemble(Path::new("/stub"), &stub, &parts()).unwrap_err().to_string();
            assert!(error.starts_with("/stub") && error.contains(text), "{error}");
        }
    }
}
