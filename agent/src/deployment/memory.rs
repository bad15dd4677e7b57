//! Refusing what does not fit into the machine's memory, before it begins: killed in the middle, the agent
//! could not even tell why.

use farrier_imaging::qcow2;
use farrier_linux::sysfs;
use farrier_protocol::error::{CommandError, ErrorKind};

/// Bytes that writing any image takes: the buffers on their way to the disk and back, TLS, threads. What
/// a window for unpacking takes is known, and judged, when the image comes.
const WRITE: u64 = 40 << 20;

/// Judges whether an image of this declared format can be written.
///
/// # Errors
///
/// `ImageWriteError` when less is available than it takes.
pub fn require_for_image(disk_format: Option<&str>) -> Result<(), CommandError> {
    judge(needed(disk_format), sysfs::available_bytes())
}

fn needed(disk_format: Option<&str>) -> u64 {
    match disk_format {
        Some("qcow2") => WRITE + qcow2::MEMORY as u64,
        _ => WRITE,
    }
}

fn judge(needed: u64, available: Option<u64>) -> Result<(), CommandError> {
    match available.filter(|available| *available < needed) {
        None => Ok(()),
        Some(available) => {
            let details = format!(
                "too little memory: this image takes {} MiB and {} MiB are available; \
                 give the machine more memory, or boot a ramdisk with less in it",
                needed >> 20,
                available >> 20
            );
            Err(CommandError::new(ErrorKind::ImageWriteError, details))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_told_before_a_write_begins() {
        for (disk_format, available, expected) in [
            (Some("raw"), Some(40 << 20), true),
            (Some("raw"), Some((40 << 20) - 1), false),
            (Some("qcow2"), Some(60 << 20), false),
            (Some("qcow2"), Some(64 << 20), true),
            (None, Some(40 << 20), true),
            (Some("raw"), None, true),
        ] {
            let outcome = judge(needed(disk_format), available);
            assert_eq!(outcome.is_ok(), expected, "{disk_format:?} {available:?}");
        }
        let error = judge(40 << 20, Some(30 << 20)).unwrap_err();
        assert!(error.text().contains("takes 40 MiB and 30 MiB are available"), "{}", error.text());
    }
}
