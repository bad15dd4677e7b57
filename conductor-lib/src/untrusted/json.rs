//! Reads long JSON of others away from the threads that serve everybody, one text at a time.

use farrier_protocol::json::{self, JsonError, Limits};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Longest text that is read in place, in bytes.
const SHORT: usize = 64 << 10;

/// Who reads a long text now: values of several at a time would be in memory at a time.
static READER: Semaphore = Semaphore::const_new(1);

/// Reads a text within limits.
///
/// # Errors
///
/// [`JsonError`].
pub async fn read<T: DeserializeOwned + Send + 'static>(
    text: Vec<u8>,
    limits: Limits,
) -> Result<T, JsonError> {
    examine(text, move |text| json::read(text, &limits)).await.1
}

/// Has a text examined, and gives it back with what came of that.
///
/// # Panics
///
/// Where `examine` does.
pub async fn examine<B: AsRef<[u8]> + Send + 'static, T: Send + 'static>(
    text: B,
    examine: impl FnOnce(&[u8]) -> T + Send + 'static,
) -> (B, T) {
    if text.as_ref().len() <= SHORT {
        let examined = examine(text.as_ref());
        return (text, examined);
    }
    apart(move || {
        let examined = examine(text.as_ref());
        (text, examined)
    })
    .await
}

/// Reads something long; one caller at a time.
///
/// # Panics
///
/// Where `read` does.
pub async fn apart<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> T {
    // It is never closed.
    let _permit = READER.acquire().await;
    match spawn_blocking(read).await {
        Ok(read) => read,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
