//! Where images and small files are fetched from: one client, one patience (S17).

use crate::agent::Agent;
use farrier_imaging::source::{HttpSource, LeastRate, Options};
use reqwest::Client;

/// A source with the agent's settings over a client.
pub fn source(agent: &Agent, client: Client) -> HttpSource {
    let options = &agent.options;
    let max_duration = options.image_download_max_duration.duration();
    let limits = Options {
        connect_timeout: options.image_download_connection_timeout.duration(),
        read_timeout: options.image_download_connection_timeout.duration(),
        least_rate: LeastRate {
            bytes_per_second: u64::from(options.image_download_least_rate) << 10,
            ..LeastRate::default()
        },
        retries: options.image_download_connection_retries,
        retry_interval: options.image_download_connection_retry_interval.duration(),
        max_duration: (!max_duration.is_zero()).then_some(max_duration),
    };
    HttpSource::new(client, agent.runtime.clone(), limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::http;
    use crate::settings::options::{DEFAULT_SECTION, Options};
    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::get;
    use farrier_hardware::manager::StepHost;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::net::TcpListener;
    use tokio::runtime::Runtime;

    /// The host of a server that is unwell when it is asked for the first time.
    fn server(runtime: &Runtime) -> String {
        static REQUESTS: AtomicU32 = AtomicU32::new(0);
        let late = || async {
            match REQUESTS.fetch_add(1, Ordering::Relaxed) {
                0 => (StatusCode::SERVICE_UNAVAILABLE, "no"),
                _ => (StatusCode::OK, "a file"),
            }
        };
        let never = || async { StatusCode::SERVICE_UNAVAILABLE };
        let routes = Router::new().route("/late", get(late)).route("/never", get(never));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(axum::serve(listener, routes).into_future());
        address.to_string()
    }

    #[test]
    fn s17_s48_steps_fetch_with_the_agents_patience_and_until_it_ends() {
        http::install_tls_provider();
        let (runtime, directory) = (Runtime::new().unwrap(), tempfile::tempdir().unwrap());
        let settings =
            [("image_download_connection_retries", "1"), ("image_download_connection_retry_interval", "0")];
        let settings = settings.map(|(name, value)| ((DEFAULT_SECTION, name), value.to_owned())).into();
        let (options, _) = Options::load(&Default::default(), &settings);
        let agent = Agent::new(options, directory.path(), runtime.handle().clone()).unwrap();
        let host = server(&runtime);
        let url = |path: &str| format!("http://ann:secret@{host}/{path}");
        assert_eq!(agent.download(&url("late"), 6, true).unwrap(), b"a file");
        let failure = |path: &str| agent.download(&url(path), 5, false).unwrap_err().details;
        for (path, told) in [("late", "more than 5 bytes"), ("never", "503")] {
            let error = failure(path);
            assert!(error.contains(told) && error.contains(&host) && !error.contains("secret"), "{error}");
        }
        agent.ending.cancel();
        assert!(failure("late").contains("cancelled"));
    }
}
