//! Files that are small enough to lie in memory: checksum files, config drives, keys, firmware.

use super::deadline::Deadline;
use super::{Download, HttpSource};
use crate::CHUNK;
use crate::cancel::CancelHandle;
use crate::error::{Error, Retry};
use crate::shown_url::without_secrets;
use std::time::Duration;

/// How long a small file may take where images may take as long as they like.
const LONGEST: Duration = Duration::from_secs(30 * 60);

impl HttpSource {
    /// Fetches the file of a URL, which is one that an image may have, with the settings and the patience that
    /// images get (S17). It has at most `most` bytes, and takes half an hour where `max_duration` does not say
    /// otherwise.
    ///
    /// # Errors
    ///
    /// What keeps the file from being fetched, [`Error::TooLong`] or [`Error::Cancelled`]; none shows a password.
    pub fn fetch(&self, url: &str, most: usize, cancel: &CancelHandle) -> Result<Vec<u8>, Error> {
        Download::new(self, None, self.deadline()).fetch(url, most, cancel)
    }
}

impl Download<'_> {
    /// Fetches a file of at most `most` bytes for which the server wants to see the same, with a budget of
    /// requests of its own (D10).
    pub(crate) fn fetch(&self, url: &str, most: usize, cancel: &CancelHandle) -> Result<Vec<u8>, Error> {
        let deadline = self.deadline.unwrap_or_else(|| Deadline::after(LONGEST));
        let download =
            Self::new(self.source, self.authorization.clone(), Some(deadline)).shown_in(&self.progress);
        loop {
            let error = match download.read_whole(url, most, cancel) {
                Ok(content) => return Ok(content),
                Err(error) => error,
            };
            if error.retry() != Retry::Often || !download.has_budget() || cancel.is_cancelled() {
                return Err(error);
            }
            tracing::warn!(%error, "trying again");
            download.pause(&error, &[cancel]);
        }
    }

    fn read_whole(&self, url: &str, most: usize, cancel: &CancelHandle) -> Result<Vec<u8>, Error> {
        let mut body = self.open(url, &[cancel])?;
        let mut content = Vec::new();
        loop {
            let filled = content.len();
            content.resize(filled + CHUNK, 0);
            let count = body.fill(&mut content[filled..], &[cancel])?;
            content.truncate(filled + count);
            if content.len() > most {
                return Err(Error::TooLong { url: without_secrets(url), most });
            }
            if count < CHUNK {
                return Ok(content);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{LeastRate, Options};
    use farrier_tests::images::server::{ImageServer, Reply};
    use std::io::{self, Read, Write};
    use std::sync::Arc;
    use std::thread;
    use std::time::Instant;
    use tokio::runtime::Runtime;

    const MOST: usize = 3 * CHUNK / 2;

    fn fetch(url: &str, options: Options, cancel: &CancelHandle) -> Result<Vec<u8>, Error> {
        rustls::crypto::ring::default_provider().install_default().ok();
        let runtime = Runtime::new().unwrap();
        let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build().unwrap();
        HttpSource::new(client, runtime.handle().clone(), options).fetch(url, MOST, cancel)
    }

    fn hurried() -> Options {
        Options { retries: 2, retry_interval: Duration::from_millis(20), ..Options::default() }
    }

    fn body(length: usize) -> Arc<Vec<u8>> {
        Arc::new((0..length).map(|index| (index % 251) as u8).collect())
    }

    #[test]
    fn d10_only_a_good_answer_of_the_right_size_is_taken() {
        let whole = body(MOST);
        for (replies, requests) in [
            (vec![Reply::Body(Arc::clone(&whole))], 1),
            (vec![Reply::WithoutLength(Arc::clone(&whole))], 1),
            (
                vec![Reply::Status(503), Reply::Truncated(Arc::clone(&whole), 9), Reply::Body(whole.clone())],
                3,
            ),
        ] {
            let server = ImageServer::start(replies).unwrap();
            assert_eq!(fetch(&server.url(), hurried(), &CancelHandle::default()).unwrap(), *whole);
            assert_eq!(server.requests(), requests);
        }
        for (reply, told, requests) in [
            (Reply::Status(404), "404", 1),
            (Reply::Status(204), "204", 1),
            (Reply::Status(500), "500", 3),
            (Reply::Body(body(MOST + 1)), "more than 1572864 bytes", 1),
            (Reply::WithoutLength(body(9 * MOST)), "more than 1572864 bytes", 1),
        ] {
            let server = ImageServer::start(vec![reply]).unwrap();
            let error = fetch(&server.url(), hurried(), &CancelHandle::default()).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains(&server.url()), "{error}");
            assert_eq!(server.requests(), requests, "{error}");
        }
    }

    #[test]
    fn s48_no_failure_shows_a_password() {
        for reply in [Reply::Status(404), Reply::Body(body(MOST + 1)), Reply::Truncated(body(9), 3)] {
            let server = ImageServer::start(vec![reply]).unwrap();
            let url = server.url().replace("http://", "http://ann:secret@");
            let error = fetch(&url, hurried(), &CancelHandle::default()).unwrap_err().to_string();
            assert!(error.contains(&server.url()) && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn f01_a_server_that_dawdles_is_given_up() {
        let server = ImageServer::start(vec![Reply::Stalled(body(9), 3)]).unwrap();
        let options = Options { max_duration: Some(Duration::from_secs(1)), ..hurried() };
        let error = fetch(&server.url(), options, &CancelHandle::default()).unwrap_err().to_string();
        assert!(error.contains("took longer than 1 s"), "{error}");
    }

    #[test]
    fn g11_a_file_that_trickles_is_given_up() {
        let least_rate = LeastRate { bytes_per_second: 4096, over: Duration::from_millis(150) };
        let options = Options { least_rate, ..hurried() };
        let server = ImageServer::start(vec![Reply::Trickling(body(MOST), 3)]).unwrap();
        let error = fetch(&server.url(), options, &CancelHandle::default()).unwrap_err().to_string();
        assert!(error.contains("4096 bytes a second are the least"), "{error}");
        assert_eq!(server.requests(), 3);
    }

    #[test]
    fn g11_a_head_that_never_ends_is_not_waited_for() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/x", listener.local_addr().unwrap());
        thread::spawn(move || {
            for mut connection in listener.incoming().flatten() {
                thread::spawn(move || {
                    let _ = connection.read(&mut [0; 4096])?;
                    connection.write_all(b"HTTP/1.1 200 Answer\r\n")?;
                    while connection.write_all(b"X: y\r\n").is_ok() {
                        thread::sleep(Duration::from_millis(50));
                    }
                    Ok::<_, io::Error>(())
                });
            }
        });
        let options = Options { connect_timeout: Duration::from_millis(300), ..hurried() };
        let error = fetch(&url, options, &CancelHandle::default()).unwrap_err().to_string();
        assert!(error.contains("no answer in"), "{error}");
    }

    #[test]
    fn a_download_that_nobody_wants_any_more_ends() {
        let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let silent = format!("http://{}/x", held.local_addr().unwrap());
        let stalled = ImageServer::start(vec![Reply::Stalled(body(9), 3)]).unwrap();
        for url in [silent, stalled.url()] {
            let (cancel, started) = (CancelHandle::default(), Instant::now());
            let outcome = thread::scope(|scope| {
                let fetching = scope.spawn(|| fetch(&url, hurried(), &cancel));
                cancel.cancel();
                fetching.join().unwrap()
            });
            assert!(matches!(outcome, Err(Error::Cancelled { .. })), "{outcome:?}");
            assert!(started.elapsed() < Duration::from_secs(30), "{url}");
        }
    }

    #[test]
    fn s45_a_local_file_is_a_regular_one_of_the_right_size() {
        let folder = tempfile::tempdir().unwrap();
        let url = |name: &str| format!("file://{}", folder.path().join(name).display());
        std::fs::write(folder.path().join("good"), b"content").unwrap();
        std::fs::write(folder.path().join("large"), &*body(MOST + 1)).unwrap();
        nix::unistd::mkfifo(&folder.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let fetch = |url: &str| fetch(url, hurried(), &CancelHandle::default());
        assert_eq!(fetch(&url("good")).unwrap(), b"content");
        for (url, told) in [
            (url("large"), "more than 1572864 bytes"),
            (url("pipe"), "no regular file"),
            ("file:///dev/zero".to_owned(), "no regular file"),
        ] {
            let error = fetch(&url).unwrap_err().to_string();
            assert!(error.contains(told) && error.contains(&url), "{error}");
        }
    }
}
