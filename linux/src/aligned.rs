//! Memory that direct I/O accepts.

#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Alignment of every buffer in bytes; no block device asks for more.
pub const ALIGNMENT: usize = 4096;

/// A zeroed byte buffer whose address is a multiple of [`ALIGNMENT`], as `O_DIRECT` demands.
#[derive(Debug)]
pub struct AlignedBuffer {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer owns its memory alone, and bytes can be used from any thread.
unsafe impl Send for AlignedBuffer {}
// SAFETY: a shared buffer gives out shared slices only.
unsafe impl Sync for AlignedBuffer {}

impl AlignedBuffer {
    /// A buffer of `length` zero bytes.
    ///
    /// # Panics
    ///
    /// If `length` is zero or more than a process can address.
    pub fn zeroed(length: usize) -> Self {
        assert!(length > 0, "an empty buffer has no address to align");
        let layout = Layout::from_size_align(length, ALIGNMENT).expect("the length fits the address space");
        // SAFETY: the layout's size is not zero, as asserted above.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout));
        Self { start, layout }
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `start` points at `layout.size()` initialised bytes that live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`; `&mut self` makes this the only access.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: `start` was allocated with exactly this layout and is not used again.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_zeroed_and_writable() {
        for length in [1, 512, 4096, 1 << 20] {
            let mut buffer = AlignedBuffer::zeroed(length);
            assert_eq!(buffer.as_ptr() as usize % ALIGNMENT, 0);
            assert_eq!(buffer.len(), length);
            assert!(buffer.iter().all(|byte| *byte == 0));
            buffer[length - 1] = 9;
            assert_eq!(buffer[length - 1], 9);
        }
    }
}
