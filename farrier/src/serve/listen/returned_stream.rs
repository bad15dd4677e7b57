//! A stream that returns from its borrower.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// The stream; dropping it gives it back. It is there until then.
pub(crate) struct ReturnedStream {
    stream: Option<TcpStream>,
    owner: Option<oneshot::Sender<TcpStream>>,
}

impl ReturnedStream {
    /// One, and where it comes back.
    pub(crate) fn new(stream: TcpStream) -> (Self, oneshot::Receiver<TcpStream>) {
        let (owner, back) = oneshot::channel();
        (Self { stream: Some(stream), owner: Some(owner) }, back)
    }

    fn stream<T>(
        &mut self,
        poll: impl FnOnce(Pin<&mut TcpStream>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let gone = || Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        self.stream.as_mut().map_or_else(gone, |stream| poll(Pin::new(stream)))
    }
}

impl Drop for ReturnedStream {
    fn drop(&mut self) {
        if let (Some(owner), Some(stream)) = (self.owner.take(), self.stream.take()) {
            // Who does not want it back has it closed.
            owner.send(stream).ok();
        }
    }
}

impl AsyncRead for ReturnedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream(|stream| stream.poll_read(cx, buffer))
    }
}

impl AsyncWrite for ReturnedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream(|stream| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream(|stream| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(|stream| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(|stream| stream.poll_shutdown(cx))
    }
}
