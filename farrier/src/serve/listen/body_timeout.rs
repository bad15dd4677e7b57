//! The timeout of request bodies, whose handlers wait for a permit.

use crate::serve::listen::body_memory::Reception;
use crate::serve::listen::limits::Limits;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// What the end of a body waits for, and whether that came.
type Permitted = Pin<Box<dyn Future<Output = bool> + Send>>;

/// A body that ends with an error when it is too slow, or too much for the memory.
pub(crate) struct TimedBody {
    body: Incoming,
    limits: Limits,
    reception: Reception,
    /// Its end is reported when this is done.
    permitted: Option<Permitted>,
    begin: Instant,
    received: usize,
    deadline: Pin<Box<Sleep>>,
}

impl TimedBody {
    /// One whose end waits for something, since what is answered begins with it.
    pub(crate) fn new(
        body: Incoming,
        limits: Limits,
        reception: Reception,
        permitted: impl Future<Output = bool> + Send + 'static,
    ) -> Self {
        let begin = Instant::now();
        let deadline = Box::pin(tokio::time::sleep_until(begin + limits.patience));
        Self { body, limits, reception, permitted: Some(Box::pin(permitted)), begin, received: 0, deadline }
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

    /// Waits for what its end waits for.
    fn poll_permitted(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(permitted) = &mut self.permitted else { return Poll::Ready(Ok(())) };
        self.reception.is_whole();
        let has_come = ready!(permitted.as_mut().poll(cx));
        self.permitted = None;
        Poll::Ready(if has_come { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) })
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.body.is_end_stream() {
            ready!(self.poll_permitted(cx))?;
            return Poll::Ready(None);
        }
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
        if frame.is_none() {
            ready!(self.poll_permitted(cx))?;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream() && self.permitted.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
