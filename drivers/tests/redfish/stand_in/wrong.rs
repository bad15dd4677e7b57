//! Answers that are other ones than they should be: one by its number, whatever it is, or those to a request of a kind.

use super::{Inner, Seen, json_answer, refusal};
use axum::body::{Body, to_bytes};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use serde_json::Value;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How long clients wait for an answer, to which some come too late.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// What an answer is in place of what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// A refusal with this status.
    Status(u16),
    /// None.
    Silence,
    /// The end of the connection.
    Closed,
    /// The right one, packed.
    Packed,
    /// A page of HTML.
    Page,
    /// One half of the right one.
    Half,
    /// The right one without its body.
    Empty,
    /// The right one, too late.
    Late,
}

impl Wrong {
    pub const ALL: [Self; 15] = [
        Self::Status(401),
        Self::Status(403),
        Self::Status(404),
        Self::Status(409),
        Self::Status(412),
        Self::Status(429),
        Self::Status(500),
        Self::Status(503),
        Self::Silence,
        Self::Closed,
        Self::Packed,
        Self::Page,
        Self::Half,
        Self::Empty,
        Self::Late,
    ];

    /// Whether clients wait for it.
    pub fn waits(self) -> bool {
        matches!(self, Self::Silence | Self::Late)
    }

    /// Whether the BMC does what it was asked for all the same.
    fn acts(self) -> bool {
        matches!(self, Self::Packed | Self::Half | Self::Empty | Self::Late)
    }

    async fn spoil(self, right: Option<Response>) -> Response {
        let Some(right) = right else { return self.without_acting().await };
        let (parts, body) = right.into_parts();
        let mut bytes = to_bytes(body, 1 << 20).await.unwrap_or_default().to_vec();
        let mut is_packed = false;
        match self {
            Self::Packed if !bytes.is_empty() => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(&bytes).unwrap();
                bytes = encoder.finish().unwrap();
                is_packed = true;
            }
            Self::Half => bytes.truncate(bytes.len() / 2),
            Self::Empty => bytes.clear(),
            Self::Late => tokio::time::sleep(PATIENCE * 2).await,
            _ => {}
        }
        let mut answer = Response::from_parts(parts, Body::from(bytes));
        if is_packed {
            answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        }
        answer
    }

    async fn without_acting(self) -> Response {
        match self {
            Self::Status(status) => {
                refusal(StatusCode::from_u16(status).unwrap(), "Base.1.0.GeneralError", "wrong once")
            }
            Self::Page => ([("content-type", "text/html")], "<html>log in</html>").into_response(),
            Self::Closed => {
                let end: Result<&[u8], _> = Err(io::Error::other("closed"));
                Body::from_stream(stream::iter([end])).into_response()
            }
            _ => std::future::pending().await,
        }
    }
}

/// What is answered to requests of a kind.
#[derive(Debug, Clone)]
pub struct Rule {
    pub method: Method,
    /// The end of their path.
    pub path: &'static str,
    /// How often.
    pub times: u32,
    /// Whether the BMC does what it was asked for.
    pub acts: bool,
    pub status: u16,
    pub body: Value,
}

/// What is answered wrongly.
#[derive(Debug, Default)]
pub struct Wrongs {
    /// How many requests there were.
    pub asked: usize,
    /// The numbers of those that are answered wrongly; the first is 1.
    pub at: Option<(RangeInclusive<usize>, Wrong)>,
    pub rules: Vec<Rule>,
}

impl Wrongs {
    /// Has the next request but so many be answered wrongly.
    pub fn after(&mut self, right: usize, wrong: Wrong) {
        let number = self.asked + right + 1;
        self.at = Some((number..=number, wrong));
    }

    fn next(&mut self) -> Option<Wrong> {
        self.asked += 1;
        let (numbers, wrong) = self.at.as_ref()?;
        numbers.contains(&self.asked).then_some(*wrong)
    }

    fn rule(&mut self, seen: &Seen) -> Option<Rule> {
        let path = seen.path.trim_end_matches('/');
        let is_meant =
            |rule: &&mut Rule| rule.times > 0 && rule.method == seen.method && path.ends_with(rule.path);
        let rule = self.rules.iter_mut().find(is_meant)?;
        rule.times -= 1;
        Some(rule.clone())
    }
}

/// An answer as it leaves the BMC, with what is wrong about it.
pub(super) struct Draft {
    wrong: Option<Wrong>,
    right: Option<Response>,
}

impl Inner {
    pub(super) fn draft(&mut self, seen: &Seen) -> Draft {
        let wrong = self.wrongs.next();
        let right = match self.wrongs.rule(seen) {
            _ if wrong.is_some_and(|wrong| !wrong.acts()) => None,
            Some(rule) => {
                if rule.acts {
                    self.answer(seen);
                }
                Some(json_answer(StatusCode::from_u16(rule.status).unwrap(), &rule.body))
            }
            None => self.answer(seen),
        };
        Draft { wrong, right }
    }
}

impl Draft {
    pub(super) async fn finish(self) -> Response {
        match (self.wrong, self.right) {
            (Some(wrong), right) => wrong.spoil(right).await,
            (None, Some(right)) => right,
            (None, None) => std::future::pending().await,
        }
    }
}
