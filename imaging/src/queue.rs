//! Several requests to the disk at a time: one that learns of the next request only when it has answered
//! the last idles in between.

use crate::buffers::Chunk;
use crate::error::Error;
use crate::target::Target;
use farrier_disk::io::zero::Zeroing;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// Requests at a time.
pub(crate) const DEPTH: usize = 3;

/// The requests that wait and those under way, shared by the writer and the threads that send them to the disk.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// There is something to do, or never will be again.
    added: Condvar,
    /// Something was begun or done.
    advanced: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Request>,
    running: usize,
    failure: Option<Error>,
    is_closed: bool,
    /// Bytes of zeros that had to be transferred like data.
    zeros_written: u64,
}

enum Request {
    Data { chunk: Arc<Chunk>, range: Range<usize>, offset: u64 },
    Zeros { offset: u64, length: u64 },
}

/// The writer's end of the queue. The threads end when it is dropped.
pub(crate) struct Requests<'a>(&'a Queue);

impl Queue {
    /// Does what is asked for until nobody can ask any more: the work of one thread.
    pub(crate) fn work(&self, target: &Target<'_>) {
        let mut zeroing = Zeroing::default();
        while let Some(request) = self.next() {
            let _running = Running(self);
            match carry_out(&request, target, &mut zeroing) {
                Ok(zeros_written) => self.state().zeros_written += zeros_written,
                Err(error) => self.fail(error),
            }
        }
    }

    /// The one who makes the requests.
    pub(crate) fn open(&self) -> Requests<'_> {
        Requests(self)
    }

    fn next(&self) -> Option<Request> {
        let idle = |state: &mut State| state.waiting.is_empty() && !state.is_closed;
        let mut state =
            self.added.wait_while(self.state(), idle).unwrap_or_else(|poisoned| poisoned.into_inner());
        let request = state.waiting.pop_front()?;
        state.running += 1;
        self.advanced.notify_one();
        Some(request)
    }

    /// Keeps the first failure; what waits is no longer worth doing.
    fn fail(&self, error: Error) {
        let mut state = self.state();
        state.failure.get_or_insert(error);
        state.waiting.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Has the one who makes the requests wait for as long as `is_busy`, and hands out a failure there was
    /// meanwhile.
    fn wait(&self, is_busy: impl FnMut(&mut State) -> bool) -> Result<MutexGuard<'_, State>, Error> {
        let waited = self.advanced.wait_while(self.state(), is_busy);
        let mut state = waited.unwrap_or_else(|poisoned| poisoned.into_inner());
        match state.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(state),
        }
    }
}

impl Requests<'_> {
    /// Has a range of a chunk written. An error is one of this or an earlier request.
    pub(crate) fn write(&self, chunk: &Arc<Chunk>, range: Range<usize>, offset: u64) -> Result<(), Error> {
        self.add(Request::Data { chunk: Arc::clone(chunk), range, offset })
    }

    /// Has a range made zero. An error is one of this or an earlier request.
    pub(crate) fn zero(&self, offset: u64, length: u64) -> Result<(), Error> {
        self.add(Request::Zeros { offset, length })
    }

    /// Waits until nothing is under way. Returns how many bytes of zeros had to be transferred so far.
    pub(crate) fn finish(&self) -> Result<u64, Error> {
        let is_busy = |state: &mut State| !state.waiting.is_empty() || state.running > 0;
        Ok(self.0.wait(is_busy)?.zeros_written)
    }

    fn add(&self, request: Request) -> Result<(), Error> {
        let mut state = self.0.wait(|state| state.waiting.len() >= DEPTH)?;
        state.waiting.push_back(request);
        self.0.added.notify_one();
        Ok(())
    }
}

impl Drop for Requests<'_> {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.added.notify_all();
    }
}

/// A request under way. It ends as such even when its thread panics, so that nobody waits in vain.
struct Running<'a>(&'a Queue);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.advanced.notify_one();
    }
}

/// Returns how many bytes of zeros had to be transferred.
fn carry_out(request: &Request, target: &Target<'_>, zeroing: &mut Zeroing) -> Result<u64, Error> {
    match request {
        Request::Data { chunk, range, offset } => {
            target.sectors().write_all_at(&chunk[range.clone()], *offset)?;
            Ok(0)
        }
        Request::Zeros { offset, length } => target.make_zero(zeroing, *offset, *length),
    }
}
