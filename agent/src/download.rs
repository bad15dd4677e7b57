//! Fetching small files, whole.

use crate::agent::Agent;
use crate::http;
use reqwest::{Client, StatusCode};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Why a download failed, and whether another attempt may succeed.
struct Failure {
    reason: String,
    is_final: bool,
}

/// Fetches at most so many bytes with the settings and patience that images get (S17).
///
/// # Errors
///
/// The reason of the last failure.
pub async fn download(agent: &Agent, client: &Client, url: &str, most: u64) -> Result<Vec<u8>, String> {
    let retries = agent.options.image_download_connection_retries;
    let read_timeout = agent.options.image_download_connection_timeout.duration();
    let mut attempt = 0;
    loop {
        let failure = match fetch(client, url, most, read_timeout).await {
            Ok(bytes) => return Ok(bytes),
            Err(failure) => failure,
        };
        if failure.is_final || attempt == retries {
            return Err(failure.reason);
        }
        attempt += 1;
        tracing::warn!(url, attempt, reason = failure.reason, "file not fetched, trying again");
        sleep(agent.options.image_download_connection_retry_interval.duration()).await;
    }
}

async fn fetch(client: &Client, url: &str, most: u64, read_timeout: Duration) -> Result<Vec<u8>, Failure> {
    let failed = |reason: String| Failure { reason, is_final: false };
    let refused = |reason: String| Failure { reason, is_final: true };
    let late = |_| failed(format!("nothing arrived for {} s", read_timeout.as_secs()));
    let broken = |error: reqwest::Error| Failure {
        is_final: error.is_builder(),
        reason: http::reason(&error.without_url()),
    };
    let request = client.get(url).send();
    let mut reply = timeout(read_timeout, request).await.map_err(late)?.map_err(broken)?;
    let status = reply.status();
    if status != StatusCode::OK {
        let may_change = status.is_server_error() || matches!(status.as_u16(), 408 | 429);
        let reason = format!("the server answered {status}: check the address");
        return Err(if may_change { failed(reason) } else { refused(reason) });
    }
    let mut bytes = Vec::new();
    while let Some(part) = timeout(read_timeout, reply.chunk()).await.map_err(late)?.map_err(broken)? {
        bytes.extend_from_slice(&part);
        if bytes.len() as u64 > most {
            return Err(refused(format!("more than {} MiB arrive: make it smaller", most >> 20)));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{DEFAULT_SECTION, Options};
    use axum::Router;
    use axum::http::StatusCode as Status;
    use axum::routing::get;
    use std::sync::atomic::{AtomicU32, Ordering};

    const MOST: u64 = 1 << 20;

    /// A server whose first answers to `/late` are errors.
    async fn server() -> String {
        static REQUESTS: AtomicU32 = AtomicU32::new(0);
        let late = || async {
            match REQUESTS.fetch_add(1, Ordering::Relaxed) {
                0 => (Status::SERVICE_UNAVAILABLE, "no"),
                _ => (Status::OK, "a file"),
            }
        };
        let routes = Router::new()
            .route("/file", get(|| async { "a file" }))
            .route("/late", get(late))
            .route("/huge", get(|| async { vec![0; MOST as usize + 1] }))
            .route("/empty", get(|| async { Status::NO_CONTENT }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, routes).into_future());
        format!("http://{address}")
    }

    #[tokio::test]
    async fn d10_only_a_good_answer_is_taken() {
        http::install_tls_provider();
        let directory = tempfile::tempdir().unwrap();
        let settings =
            [("image_download_connection_retries", "1"), ("image_download_connection_retry_interval", "0")];
        let settings = settings.map(|(name, value)| ((DEFAULT_SECTION, name), value.to_owned())).into();
        let (options, _) = Options::load(&Default::default(), &settings);
        let agent = Agent::new(options, directory.path(), tokio::runtime::Handle::current()).unwrap();
        let server = server().await;
        for path in ["/file", "/late"] {
            assert_eq!(
                download(&agent, &agent.http, &format!("{server}{path}"), MOST).await.unwrap(),
                b"a file",
                "{path}"
            );
        }
        for (path, named) in [("/nowhere", "404"), ("/empty", "204"), ("/huge", "more than 1 MiB")] {
            let error = download(&agent, &agent.http, &format!("{server}{path}"), MOST).await.unwrap_err();
            assert!(error.contains(named), "{path}: {error}");
        }
    }
}
