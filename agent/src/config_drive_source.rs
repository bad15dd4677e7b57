//! Where a config drive comes from: the command itself, or a web server (section 6.5).

use crate::agent::Agent;
use crate::errors::from_disk;
use crate::http;
use farrier_disk::config_drive::{self, ConfigDrive, MAX_SIZE};
use farrier_protocol::error::{CommandError, ErrorKind};
use reqwest::StatusCode;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Most bytes a server may send: base64 is a third longer than what it encodes, besides line ends.
const MAX_DOWNLOAD: usize = (MAX_SIZE + MAX_SIZE / 2) as usize;

/// Takes the drive out of `text`, which is base64 of gzip or the URL of a file. Blocks.
///
/// # Errors
///
/// `DeploymentError`: the server does not send it, or it is no config drive (D10).
pub fn load(agent: &Agent, text: &str) -> Result<ConfigDrive, CommandError> {
    let drive = match config_drive::url(text) {
        None => ConfigDrive::decode(text),
        Some(url) => ConfigDrive::from_download(agent.runtime.block_on(download(agent, url))?),
    };
    Ok(drive.map_err(from_disk)?.always_rebuilt(agent.options.config_drive_rebuild))
}

/// Why a download failed, and whether another attempt may succeed.
struct Failure {
    reason: String,
    is_final: bool,
}

/// The agent's one client fetches it, with the same settings and patience as images (S17).
async fn download(agent: &Agent, url: &str) -> Result<Vec<u8>, CommandError> {
    let retries = agent.options.image_download_connection_retries;
    let read_timeout = agent.options.image_download_connection_timeout.duration();
    let mut attempt = 0;
    loop {
        let failure = match fetch(&agent.http, url, read_timeout).await {
            Ok(bytes) => return Ok(bytes),
            Err(failure) => failure,
        };
        if failure.is_final || attempt == retries {
            let details = format!("the config drive cannot be fetched from {url}: {}", failure.reason);
            return Err(CommandError::new(ErrorKind::DeploymentError, details));
        }
        attempt += 1;
        tracing::warn!(url, attempt, reason = failure.reason, "config drive not fetched, trying again");
        sleep(agent.options.image_download_connection_retry_interval.duration()).await;
    }
}

async fn fetch(client: &reqwest::Client, url: &str, read_timeout: Duration) -> Result<Vec<u8>, Failure> {
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
        if bytes.len() > MAX_DOWNLOAD {
            return Err(refused("it is larger than 64 MiB: make it smaller".to_owned()));
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

    /// A server whose first answers to `/late` are errors.
    async fn server() -> String {
        static REQUESTS: AtomicU32 = AtomicU32::new(0);
        let late = || async {
            match REQUESTS.fetch_add(1, Ordering::Relaxed) {
                0 => (Status::SERVICE_UNAVAILABLE, "no"),
                _ => (Status::OK, "a drive"),
            }
        };
        let routes = Router::new()
            .route("/drive", get(|| async { "a drive" }))
            .route("/late", get(late))
            .route("/huge", get(|| async { vec![0; MAX_DOWNLOAD + 1] }))
            .route("/empty", get(|| async { Status::NO_CONTENT }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(axum::serve(listener, routes).into_future());
        format!("http://{address}")
    }

    #[tokio::test]
    async fn d10_only_a_good_answer_is_a_config_drive() {
        http::install_tls_provider();
        let directory = tempfile::tempdir().unwrap();
        let settings =
            [("image_download_connection_retries", "1"), ("image_download_connection_retry_interval", "0")];
        let settings = settings.map(|(name, value)| ((DEFAULT_SECTION, name), value.to_owned())).into();
        let (options, _) = Options::load(&Default::default(), &settings);
        let agent = Agent::new(options, directory.path(), tokio::runtime::Handle::current()).unwrap();
        let server = server().await;
        for path in ["/drive", "/late"] {
            assert_eq!(download(&agent, &format!("{server}{path}")).await.unwrap(), b"a drive", "{path}");
        }
        for (path, named) in [("/nowhere", "404"), ("/empty", "204"), ("/huge", "larger than 64 MiB")] {
            let error = download(&agent, &format!("{server}{path}")).await.unwrap_err();
            assert_eq!(error.kind, "DeploymentError");
            assert!(error.details.contains(named) && error.details.contains(path), "{}", error.details);
        }
    }
}
