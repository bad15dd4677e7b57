//! Posting the collected data (section 10.2).

use crate::http;
use rand::Rng;
use reqwest::header::HeaderMap;
use reqwest::{Client, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio::time::sleep;
use uuid::Uuid;

/// Time for one request; collected logs make it a large one.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Pauses between attempts (F36).
const PAUSES: [Duration; 4] =
    [Duration::from_secs(5), Duration::from_secs(5), Duration::from_secs(6), Duration::from_secs(12)];
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
    pauses: [Duration; 4],
}

impl Callback {
    /// A callback to the first of these URLs that can be reached.
    pub fn new(http: Client, headers: HeaderMap, urls: Vec<String>) -> Self {
        Self { http, headers, urls, pauses: PAUSES }
    }

    /// Posts the data and returns the node the conductor made of it.
    ///
    /// # Errors
    ///
    /// [`CallbackError`] after five attempts, or at once when another would be refused too.
    pub async fn post(&self, data: &Value) -> Result<Option<Uuid>, CallbackError> {
        for (attempt, pause) in (1..).zip(self.pauses) {
            match self.post_once(data).await {
                Err(error) if error.is_passing() => {
                    tracing::warn!(attempt, %error, "trying again");
                    sleep(pause.mul_f64(1.0 + rand::rng().random_range(0.0..JITTER))).await;
                }
                outcome => return outcome,
            }
        }
        self.post_once(data).await
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

async fn read(url: &str, response: reqwest::Response) -> Result<Option<Uuid>, CallbackError> {
    let status = response.status();
    let body = http::body(response).await.unwrap_or_default();
    if !status.is_success() {
        let text = String::from_utf8_lossy(&body).chars().take(200).collect();
        return Err(CallbackError::Refused { url: url.to_owned(), status, text });
    }
    let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
    let node = answer["uuid"].as_str().and_then(|text| text.parse().ok());
    if node.is_none() {
        tracing::warn!(url, "the answer to the inspection data names no node");
    }
    Ok(node)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::options::Options;
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

    fn callback(urls: &[&str]) -> Callback {
        http::install_tls_provider();
        let options = Options::default();
        Callback {
            http: http::client(&options).unwrap(),
            headers: http::api_headers(&options),
            urls: urls.iter().map(|url| (*url).to_owned()).collect(),
            pauses: [Duration::from_millis(1); 4],
        }
    }

    #[tokio::test]
    async fn f36_a_locked_node_and_a_sick_server_are_asked_again() {
        let (url, script) = conductor(&[409, 500, 202]).await;
        let node = callback(&[&url]).post(&json!({"error": null})).await.unwrap();
        assert_eq!(node, Some(NODE.parse().unwrap()));
        assert_eq!(script.lock().unwrap().1, vec![json!({"error": null}); 3]);
    }

    #[tokio::test]
    async fn f36_a_refusal_is_final() {
        let (url, script) = conductor(&[400]).await;
        let error = callback(&[&url]).post(&json!({})).await.unwrap_err();
        assert!(error.to_string().contains("400"), "{error}");
        assert_eq!(script.lock().unwrap().1.len(), 1);
    }

    #[tokio::test]
    async fn f36_after_five_attempts_it_is_over() {
        let (url, script) = conductor(&[503; 5]).await;
        assert!(callback(&[&url]).post(&json!({})).await.is_err());
        assert_eq!(script.lock().unwrap().1.len(), 5);
    }

    #[tokio::test]
    async fn f36_a_server_that_is_gone_passes_the_data_on() {
        let (url, script) = conductor(&[202]).await;
        callback(&["http://127.0.0.1:1/x", &url]).post(&json!({})).await.unwrap();
        assert_eq!(script.lock().unwrap().1.len(), 1);
    }
}
