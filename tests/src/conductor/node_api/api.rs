//! Requests to an API that listens on the loopback address without TLS.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The API.
#[derive(Debug)]
pub struct Api {
    port: u16,
    token: Option<String>,
}

impl Api {
    /// The API at a port of the loopback address.
    pub fn new(port: u16) -> Self {
        Self { port, token: None }
    }

    /// The same, for who shows a token.
    pub fn with_token(self, token: String) -> Self {
        Self { token: Some(token), ..self }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The answer to a request; null when it has no body.
    ///
    /// # Errors
    ///
    /// Nobody listens, or the answer is none of success; the text holds it.
    pub fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))
            .with_context(|| format!("nobody listens on port {}", self.port))?;
        connection.set_read_timeout(Some(TIMEOUT))?;
        let token = self.token.iter().map(|token| format!("X-Auth-Token: {token}\r\n")).collect::<String>();
        // HTTP/1.0, so that the answer comes in one piece and ends with the connection.
        write!(
            connection,
            "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
             Accept: application/json\r\nX-OpenStack-Ironic-API-Version: latest\r\n{token}\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        read_answer(&answer).with_context(|| format!("{method} {path}"))
    }
}

fn read_answer(answer: &str) -> Result<Value> {
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer is cut off")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if !status.starts_with('2') {
        bail!("answered {status}: {body}");
    }
    if body.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(body).with_context(|| format!("no JSON: {body}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn answers_are_read() {
        for (answer, expected) in [
            ("HTTP/1.0 200 OK\r\nA: b\r\n\r\n{\"a\": 1}", Some(json!({"a": 1}))),
            ("HTTP/1.1 202 Accepted\r\n\r\n", Some(Value::Null)),
            ("HTTP/1.1 409 Conflict\r\n\r\n{}", None),
            ("HTTP/1.1 200 OK\r\n\r\npage", None),
            ("HTTP/1.1 200 OK\r\n", None),
        ] {
            assert_eq!(read_answer(answer).ok(), expected, "{answer}");
        }
    }
}
