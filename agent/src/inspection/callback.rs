//! Posting the collected data (section 10.2).

use crate::network::http;
use rand::Rng;
use reqwest::header::HeaderMap;
use reqwest::{Client, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;
use uuid::Uuid;

/// Time for one request; collected logs make it a large one.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Pauses after the first attempts in seconds (F36); the last one doubles from then on, up to the longest.
const PAUSES: [u64; 4] = [5, 5, 6, 12];
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How much longer a pause may be, so that a rack of machines does not answer as one.
const JITTER: f64 = 0.25;

/// The data did not get to the conductor.
#[derive(Debug, thiserror::Error)]
pub enum CallbackError {
    /// No URL could be reached.
    #[error("the inspection data cannot be sent to {url} ({reason}): {advice}")]
    Unreachable {
        /// Last URL that was tried.
        url: String,
        /// Cause in one phrase.
        reason: String,
        /// What to do.
        advice: &'static str,
    },
    /// The conductor did not want it.
    #[error("{url} refused the inspection data with {status}: {text}")]
    Refused {
        /// URL of the request.
        url: String,
        /// Its status.
        status: StatusCode,
        /// Beginning of its body.
        text: String,
    },
}

impl CallbackError {
    /// Whether another attempt may succeed: the node is locked, or the server is unwell.
    fn is_passing(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => *status == StatusCode::CONFLICT || status.is_server_error(),
        }
    }
}

/// Where the data goes.
pub struct Callback {
    http: Client,
    headers: HeaderMap,
    urls: Vec<String>,
    patience: Duration,
}

impl Callback {
    /// A callback to the first of these URLs that can be reached, for which `patience` is the sum of pauses
    /// after which no further attempt is made.
    pub fn new(http: Client, headers: HeaderMap, urls: Vec<String>, patience: Duration) -> Self {
        Self { http, headers, urls, patience }
    }

    /// Posts the data and returns the node the conductor made of it.
    ///
    /// # Errors
    ///
    /// [`CallbackError`] when patience is at an end, or at once when another attempt would be refused too.
    pub async fn post(&self, data: &Value) -> Result<Option<Uuid>, CallbackError> {
        self.post_with(data, sleep).await
    }

    /// [`Callback::post`] that rests in another way between two attempts.
    async fn post_with<R: Future<Output = ()>>(
        &self,
        data: &Value,
        rest: impl Fn(Duration) -> R,
    ) -> Result<Option<Uuid>, CallbackError> {
        let (mut attempt, mut rested) = (1, Duration::ZERO);
        loop {
            match self.post_once(data).await {
                Err(error) if error.is_passing() && rested < self.patience => {
                    let pause = pause_after(attempt);
                    tracing::warn!(attempt, %error, "trying again in {} s", pause.as_secs());
                    rest(pause).await;
                    rested = rested.saturating_add(pause);
                    attempt = attempt.saturating_add(1);
                }
                outcome => return outcome,
            }
        }
    }

    /// A URL that cannot be reached passes the request on, an HTTP status does not.
    async fn post_once(&self, data: &Value) -> Result<Option<Uuid>, CallbackError> {
        let mut failure = CallbackError::Unreachable {
            url: String::new(),
            reason: "no URL".to_owned(),
            advice: "add ipa-inspection-callback-url",
        };
        for url in &self.urls {
            let request = self.http.post(url).headers(self.headers.clone()).timeout(TIMEOUT).json(data);
            match request.send().await {
                Ok(response) => return read(url, response).await,
                Err(error) => {
                    failure = CallbackError::Unreachable {
                        url: url.clone(),
                        reason: http::reason(&error),
                        advice: http::advice(&error),
                    };
                }
            }
        }
        Err(failure)
    }
}

/// Pause after the given attempt, counted from 1.
fn pause_after(attempt: usize) -> Duration {
    let last = PAUSES[PAUSES.len() - 1];
    let doublings = attempt.saturating_sub(PAUSES.len()).min(8) as u32;
    let pause = PAUSES.get(attempt - 1).copied().unwrap_or(last << doublings);
    let jitter = 1.0 + rand::rng().random_range(0.0..JITTER);
    Duration::from_secs(pause).min(LONGEST_PAUSE).mul_f64(jitter)
}

async fn read(url: &str, response: reqwest::Response) -> Result<Option<Uuid>, CallbackError> {
    let status = response.status();
    let body = http::beginning(response).await;
    if !status.is_success() {
        let text = String::from_utf8_lossy(&body).chars().take(200).collect();
        return Err(CallbackError::Refused { url: url.to_owned(), status, text });
    }
    let answer: Value = http::json(&body).unwrap_or_default();
    let node = answer["uuid"].as_str().and_then(|text| text.parse().ok());
    if node.is_none() {
        tracing::warn!(url, "the answer to the inspection data names no node");
    }
    Ok(node)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::settings::options::Options;
    use axum::Router;
    use axum::http::HeaderMap as RequestHeaders;
    use axum::routing::post;
    use serde_json::json;
    use std::sync::{Arc, Mutex};

    pub const NODE: &str = "996c9888-5e00-43e2-966f-d4fde0f218fd";

    /// Statuses still to be answered, the last one first, and the bodies received.
    pub type Script = Arc<Mutex<(Vec<u16>, Vec<Value>)>>;

    /// A conductor that answers one status after the other.
    pub async fn conductor(statuses: &[u16]) -> (String, Script) {
        let script = Script::new(Mutex::new((statuses.iter().rev().copied().collect(), Vec::new())));
        let shared = Arc::clone(&script);
        let answer = move |headers: RequestHeaders, body: String| async move {
            assert_eq!(headers["content-type"], "application/json");
            assert!(!headers.contains_key("x-openstack-ironic-api-version"));
            let mut script = shared.lock().unwrap();
            script.1.push(serde_json::from_str(&body).unwrap());
            let status = script.0.pop().unwrap();
            (StatusCode::from_u16(status).unwrap(), json!({"uuid": NODE}).to_string())
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1/continue_inspection", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/continue_inspection", post(answer));
        tokio::spawn(async move { axum::serve(listener, router).await });
        (url, script)
    }

    /// The outcome, and the pauses in seconds, which nobody waited for.
    async fn offer(urls: &[&str], patience: Duration) -> (Result<Option<Uuid>, CallbackError>, Vec<f64>) {
        http::install_tls_provider();
        let options = Options::default();
        let urls = urls.iter().map(|url| (*url).to_owned()).collect();
        let http = http::client(&options).unwrap();
        let callback = Callback::new(http, http::api_headers(&options), urls, patience);
        let pauses = Mutex::new(Vec::new());
        let rest = |pause: Duration| {
            pauses.lock().unwrap().push(pause.as_secs_f64());
            std::future::ready(())
        };
        let outcome = callback.post_with(&json!({"error": null}), rest).await;
        (outcome, pauses.into_inner().unwrap())
    }

    #[tokio::test]
    async fn f36_a_locked_node_and_a_sick_server_are_asked_again() {
        let (url, script) = conductor(&[409, 500, 202]).await;
        let (node, pauses) = offer(&[&url], Duration::MAX).await;
        assert_eq!((node.unwrap(), pauses.len()), (Some(NODE.parse().unwrap()), 2));
        assert_eq!(script.lock().unwrap().1, vec![json!({"error": null}); 3]);
    }

    #[tokio::test]
    async fn f36_a_refusal_is_final() {
        let (url, script) = conductor(&[400]).await;
        let error = offer(&[&url], Duration::MAX).await.0.unwrap_err();
        assert!(error.to_string().contains("400"), "{error}");
        assert_eq!(script.lock().unwrap().1.len(), 1);
    }

    #[tokio::test]
    async fn x13_a_conductor_that_is_away_is_asked_again_with_growing_pauses() {
        let away = [503; 11];
        let (url, _) = conductor(&[&away[..], &[202]].concat()).await;
        let (node, pauses) = offer(&[&url], Duration::MAX).await;
        assert!(node.unwrap().is_some());
        assert_eq!(pauses.len(), away.len());
        for (pause, least) in pauses.iter().zip([5.0, 5.0, 6.0, 12.0, 24.0, 48.0, 60.0, 60.0, 60.0, 60.0]) {
            assert!((least..least * (1.0 + JITTER)).contains(pause), "{pauses:?}");
        }
        assert_eq!(pause_after(usize::MAX).as_secs() / 60, 1);
    }

    #[tokio::test]
    async fn x13_patience_ends_where_something_else_can_be_done() {
        let patience = Duration::from_secs(100);
        let (error, pauses) = offer(&["http://127.0.0.1:1/x"], patience).await;
        assert!(error.is_err());
        let all: f64 = pauses.iter().sum();
        assert!((100.0..175.0).contains(&all), "{pauses:?}");
    }

    #[tokio::test]
    async fn f36_a_server_that_is_gone_passes_the_data_on() {
        let (url, script) = conductor(&[202]).await;
        offer(&["http://127.0.0.1:1/x", &url], Duration::ZERO).await.0.unwrap();
        assert_eq!(script.lock().unwrap().1.len(), 1);
    }
}
