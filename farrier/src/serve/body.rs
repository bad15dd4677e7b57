//! Bodies of requests that come in time and fit into memory.

use super::limits::Limits;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Bytes of a unit of the memory for bodies.
const UNIT: usize = 1 << 10;

/// Memory that all bodies of a listener share, beside the small part that each has for itself.
#[derive(Debug, Clone)]
pub(super) struct Memory(Arc<Semaphore>);

impl Memory {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Semaphore::new(bytes / UNIT)))
    }
}

/// The request that a body belongs to; what it took is free again when this and the body are gone.
#[derive(Debug, Clone)]
pub(super) struct Reception {
    memory: Memory,
    taken: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
    /// Whether it lacked memory.
    is_short: Arc<AtomicBool>,
    /// Set when the body has come to its end.
    is_whole: Arc<AtomicBool>,
}

impl Reception {
    /// Of a request on a connection that is told by `is_whole` when it came to its end.
    pub(super) fn new(memory: &Memory, is_whole: Arc<AtomicBool>) -> Self {
        Self { memory: memory.clone(), taken: Arc::default(), is_short: Arc::default(), is_whole }
    }

    /// Whether there was no memory for it.
    pub(super) fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Takes memory until this has so many bytes.
    fn take(&self, bytes: usize) -> bool {
        let mut taken = self.taken.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let has = taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let lacks = u32::try_from(bytes.div_ceil(UNIT).saturating_sub(has)).unwrap_or(u32::MAX);
        if lacks == 0 {
            return true;
        }
        let Ok(more) = Arc::clone(&self.memory.0).try_acquire_many_owned(lacks) else {
            self.is_short.store(true, Ordering::Relaxed);
            return false;
        };
        match taken.as_mut() {
            Some(permit) => permit.merge(more),
            None => *taken = Some(more),
        }
        true
    }
}

/// A body that ends with an error when it is too slow, or too much for the memory.
pub(super) struct Steady {
    body: Incoming,
    limits: Limits,
    reception: Reception,
    begin: Instant,
    received: usize,
    deadline: Pin<Box<Sleep>>,
}

impl Steady {
    pub(super) fn new(body: Incoming, limits: Limits, reception: Reception) -> Self {
        if body.is_end_stream() {
            reception.is_whole.store(true, Ordering::Relaxed);
        }
        let begin = Instant::now();
        let deadline = Box::pin(tokio::time::sleep_until(begin + limits.patience));
        Self { body, limits, reception, begin, received: 0, deadline }
    }

    /// Counts what has come; the more it is, the longer may the rest take.
    fn count(&mut self, bytes: usize) -> io::Result<()> {
        self.received += bytes;
        let beyond = self.received.saturating_sub(self.limits.small_body);
        if beyond > 0 && !self.reception.take(beyond) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let earned = Duration::from_secs_f64(self.received as f64 / f64::from(self.limits.body_rate));
        self.deadline.as_mut().reset(self.begin + self.limits.patience + earned);
        Ok(())
    }
}

impl Body for Steady {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
            ready!(self.deadline.as_mut().poll(cx));
            let text = "the body comes too slowly";
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::TimedOut, text).into())));
        };
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.count(data.len())?;
        }
        if frame.is_none() || self.body.is_end_stream() {
            self.reception.is_whole.store(true, Ordering::Relaxed);
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_share_a_memory_and_give_it_back() {
        let memory = Memory::new(10 << 10);
        let reception = || Reception::new(&memory, Arc::default());
        let (one, other) = (reception(), reception());
        assert!(one.take(6 << 10) && one.take(1));
        assert!(other.take(4 << 10) && !other.take(5 << 10));
        assert!(other.is_short() && !one.is_short());
        drop(one);
        assert!(other.take(10 << 10));
    }
}
