//! Wrong answers by HTTP, of whatever answers by that.

use super::cells::WrongAnswer;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard};
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

impl WrongAnswer for Wrong {
    fn all() -> Vec<Self> {
        vec![
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
        ]
    }

    fn name(self) -> String {
        match self {
            Self::Status(status) => return status.to_string(),
            Self::Silence => "silence",
            Self::Closed => "connection closed",
            Self::Packed => "gzip",
            Self::Page => "HTML",
            Self::Half => "half",
            Self::Empty => "empty",
            Self::Late => "late",
        }
        .to_owned()
    }

    fn waits(self) -> bool {
        matches!(self, Self::Silence | Self::Late)
    }
}

impl Wrong {
    /// Whether the service carries out the request although its answer is wrong.
    fn acts(self) -> bool {
        matches!(self, Self::Packed | Self::Half | Self::Empty | Self::Late)
    }

    /// What becomes of the right answer.
    async fn spoilt(self, right: Response) -> Response {
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
        answer.headers_mut().remove("content-length");
        if is_packed {
            answer.headers_mut().insert("content-encoding", "gzip".parse().unwrap());
        }
        answer
    }

    /// What is answered where nothing was done.
    async fn alone(self, refusal: fn(StatusCode) -> Response) -> Response {
        match self {
            Self::Status(status) => refusal(StatusCode::from_u16(status).unwrap()),
            Self::Page => ([("content-type", "text/html")], "<html>log in</html>").into_response(),
            Self::Closed => {
                let end: Result<&[u8], _> = Err(io::Error::other("closed"));
                Body::from_stream(stream::iter([end])).into_response()
            }
            _ => std::future::pending().await,
        }
    }
}

/// What has answers be wrong. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Spoiler(Arc<Mutex<Spoilt>>);

#[derive(Debug)]
struct Spoilt {
    /// The requests.
    asked: Vec<String>,
    /// The numbers of those that are answered wrongly; the first is 1.
    at: Option<(RangeInclusive<usize>, Wrong)>,
    /// How what answers refuses.
    refusal: fn(StatusCode) -> Response,
}

impl Spoiler {
    /// One of something that refuses in this way; all answers are right.
    pub fn new(refusal: fn(StatusCode) -> Response) -> Self {
        Self(Arc::new(Mutex::new(Spoilt { asked: Vec::new(), at: None, refusal })))
    }

    /// What answers, some of it wrongly.
    pub fn before(&self, router: Router) -> Router {
        router.layer(from_fn_with_state(self.clone(), answer))
    }

    /// The requests so far, as `POST /path`.
    pub fn asked(&self) -> Vec<String> {
        self.spoilt().asked.clone()
    }

    /// Has all answers be wrong.
    pub fn spoil_all(&self, wrong: Wrong) {
        self.spoilt().at = Some((1..=usize::MAX, wrong));
    }

    /// Has the next answer but so many be wrong, or none.
    pub fn spoil(&self, wrong: Option<(usize, Wrong)>) {
        let mut spoilt = self.spoilt();
        let number = |right: usize| spoilt.asked.len() + right + 1;
        spoilt.at = wrong.map(|(right, wrong)| (number(right)..=number(right), wrong));
    }

    fn spoilt(&self) -> MutexGuard<'_, Spoilt> {
        self.0.lock().unwrap()
    }

    /// Takes note of a request, and tells what is wrong with the answer.
    fn next(&self, request: &Request) -> Option<Wrong> {
        let mut spoilt = self.spoilt();
        spoilt.asked.push(format!("{} {}", request.method(), request.uri().path()));
        let number = spoilt.asked.len();
        let (numbers, wrong) = spoilt.at.as_ref()?;
        numbers.contains(&number).then_some(*wrong)
    }
}

async fn answer(State(spoiler): State<Spoiler>, request: Request, next: Next) -> Response {
    match spoiler.next(&request) {
        None => next.run(request).await,
        Some(wrong) if wrong.acts() => wrong.spoilt(next.run(request).await).await,
        Some(wrong) => {
            let refusal = spoiler.spoilt().refusal;
            wrong.alone(refusal).await
        }
    }
}
