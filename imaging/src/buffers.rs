//! The fixed sets of buffers that bound the memory of a write.

use crate::CHUNK;
use farrier_linux::aligned::AlignedBuffer;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::{Receiver, Sender, channel};

/// A set of buffers; more than these are never in use. Each is made when all others are.
pub(crate) struct Pool {
    free: Receiver<AlignedBuffer>,
    home: Sender<AlignedBuffer>,
    unmade: Cell<usize>,
}

/// A part of an image on its way. Dropping it gives its buffer back to the pool.
pub(crate) struct Chunk {
    buffer: Option<AlignedBuffer>,
    home: Sender<AlignedBuffer>,
    /// Bytes of the buffer that are filled.
    pub(crate) length: usize,
    /// Bytes of the image file it took to get so far.
    pub(crate) received: u64,
}

impl Pool {
    /// A pool of so many buffers of one chunk each.
    pub(crate) fn new(count: usize) -> Self {
        let (home, free) = channel();
        Self { free, home, unmade: Cell::new(count) }
    }

    /// Waits for a free buffer.
    pub(crate) fn take(&self) -> Chunk {
        let buffer = match (self.free.try_recv(), self.unmade.get()) {
            (Ok(buffer), _) => buffer,
            (Err(_), 0) => self.free.recv().expect("the pool keeps a sender of its own"),
            (Err(_), unmade) => {
                self.unmade.set(unmade - 1);
                AlignedBuffer::zeroed(CHUNK)
            }
        };
        Chunk { buffer: Some(buffer), home: self.home.clone(), length: 0, received: 0 }
    }
}

impl Chunk {
    /// The part that is filled.
    pub(crate) fn filled(&self) -> &[u8] {
        &self[..self.length]
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.buffer.as_ref().expect("only dropping takes the buffer")
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.buffer.as_mut().expect("only dropping takes the buffer")
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // The pool may be gone at the end of a write, and its memory with it.
        self.buffer.take().map(|buffer| self.home.send(buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn f07_a_dropped_chunk_is_the_next_one_taken() {
        let pool = Pool::new(1);
        for round in 1..4 {
            let mut chunk = pool.take();
            assert_eq!((chunk.len(), chunk.filled().len()), (CHUNK, 0));
            chunk[0] = round;
            chunk.length = 1;
            assert_eq!(chunk.filled(), [round]);
        }
        let last = pool.take();
        drop(pool);
        drop(last);
    }

    #[test]
    fn g13_whoever_takes_more_than_there_is_waits_and_no_further_buffer_is_made() {
        let pool = Pool::new(2);
        let (first, second) = (pool.take(), pool.take());
        let places: Vec<_> = [&first, &second].map(|chunk| chunk.as_ptr()).into();
        let third = thread::scope(|scope| {
            let back = scope.spawn(move || drop(second));
            let third = pool.take();
            back.join().unwrap();
            third
        });
        assert!(places.contains(&third.as_ptr()));
        assert_eq!(pool.unmade.get(), 0);
    }
}
