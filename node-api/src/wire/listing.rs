//! Lists, which are answered piece by piece, so that a long one needs no more memory than a short one.

use crate::wire::asked::Asked;
use crate::wire::fields::{Field, named};
use crate::wire::reply::Refusal;
use crate::wire::view::{Member, Shown};
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use farrier_engine::Error;
use futures_util::stream;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::pin::Pin;
use uuid::Uuid;

/// An order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// The field.
    key: &'static str,
    /// Whether the largest comes first.
    descending: bool,
}

impl Order {
    /// Reads `sort_key` and `sort_dir`; nothing for the order in which members are kept. `id`, which Ironic's records have,
    /// is the order in which they were made.
    ///
    /// # Errors
    ///
    /// 400 for what is no field of the list, or holds more than a value.
    fn take(asked: &mut Asked, fields: &'static [Field]) -> Result<Option<Self>, Refusal> {
        let (key, descending) = (asked.take("sort_key", 1)?, take_descending(asked)?);
        let key = match key.as_deref() {
            None if descending => "created_at",
            None => return Ok(None),
            Some("id") => "created_at",
            Some(key) => key,
        };
        let field = named(fields, key).filter(|field| field.kind.is_one_value());
        let field = field.ok_or_else(|| {
            Refusal::bad_request(format!("sort_key: this list cannot be sorted by {key:?}"))
        })?;
        asked.needs(field.since, key)?;
        Ok(Some(Self { key: field.name, descending }))
    }

    /// Puts members into this order; those that are alike by their identity.
    fn sort(self, members: &mut [Member]) {
        members.sort_by(|one, other| {
            let order = compare(&one.key, &other.key).then(one.uuid.cmp(&other.uuid));
            if self.descending { order.reverse() } else { order }
        });
    }
}

/// Reads `sort_dir`: whether the largest comes first.
///
/// # Errors
///
/// 400.
pub(crate) fn take_descending(asked: &mut Asked) -> Result<bool, Refusal> {
    match asked.take("sort_dir", 1)?.as_deref() {
        None | Some("asc") => Ok(false),
        Some("desc") => Ok(true),
        Some(other) => Err(Refusal::bad_request(format!("sort_dir: {other:?} must be asc or desc"))),
    }
}

/// What is not there comes first, as in a database.
fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Number(one), Value::Number(other)) => {
            one.as_f64().unwrap_or_default().total_cmp(&other.as_f64().unwrap_or_default())
        }
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (one, other) => one.as_str().unwrap_or_default().cmp(other.as_str().unwrap_or_default()),
    }
}

/// A part of a list.
pub(crate) struct Piece {
    /// Those of its members that can be read.
    pub(crate) members: Vec<Shown>,
    /// How many there are in any case.
    pub(crate) count: usize,
    /// The identity of the last one.
    pub(crate) last: Option<Uuid>,
}

/// The next part of a list, when it has been read.
pub(crate) type Reading<'a> = Pin<Box<dyn Future<Output = Result<Piece, Refusal>> + Send + 'a>>;

/// Where the members of a list come from.
pub(crate) trait Source: Send + 'static {
    /// The next members, at most `most`; fewer than that at the end. When there are more, up to `then` of them are asked
    /// for next, none where this is zero.
    fn next(&mut self, most: u32, then: u32) -> Reading<'_>;
}

/// A list whose members come by their identity: `read` has those after one, at most so many.
pub(crate) struct Successive<R> {
    /// The one before the next.
    pub(crate) after: Option<Uuid>,
    /// Reads the next ones, as they look in the answer.
    pub(crate) read: R,
}

impl<R, F> Source for Successive<R>
where
    R: FnMut(Option<Uuid>, u32) -> F + Send + 'static,
    F: Future<Output = Result<Vec<Member>, Error>> + Send + 'static,
{
    fn next(&mut self, most: u32, _then: u32) -> Reading<'_> {
        Box::pin(async move {
            let found = (self.read)(self.after, most).await?;
            let last = found.last().map(|member| member.uuid);
            self.after = last.or(self.after);
            let count = found.len();
            Ok(Piece { members: found.into_iter().map(|member| member.shown).collect(), count, last })
        })
    }
}

/// A list of which all members are there.
pub(crate) struct Given(
    /// Those that are left.
    VecDeque<Member>,
);

impl Given {
    /// Those after the marker, in the order that is asked for.
    ///
    /// # Errors
    ///
    /// 404 when the marker is none of them.
    pub(crate) fn of(paging: &Paging, mut members: Vec<Member>) -> Result<Self, Refusal> {
        if let Some(order) = paging.order {
            order.sort(&mut members);
        }
        let mut members = VecDeque::from(members);
        if let Some(marker) = &paging.marker {
            let place = members.iter().position(|member| member.uuid.to_string() == *marker);
            let unknown =
                || Refusal::new(StatusCode::NOT_FOUND, format!("marker: the list has no {marker:?}"));
            members.drain(..=place.ok_or_else(unknown)?);
        }
        Ok(Self(members))
    }

    /// More than there are.
    pub(crate) fn step(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX).saturating_add(1)
    }
}

impl Source for Given {
    fn next(&mut self, most: u32, _then: u32) -> Reading<'_> {
        Box::pin(async move {
            let count = self.0.len().min(most as usize);
            let next: Vec<_> = self.0.drain(..count).collect();
            let last = next.last().map(|member| member.uuid);
            Ok(Piece { members: next.into_iter().map(|member| member.shown).collect(), count, last })
        })
    }
}

/// How many members a list has, and where it begins.
#[derive(Debug, Clone)]
pub(crate) struct Paging {
    /// At most so many; all of them where nothing is said.
    limit: Option<u32>,
    /// The one before the first.
    pub(crate) marker: Option<String>,
    /// In which order they come; as they are kept where nothing is said.
    order: Option<Order>,
}

impl Paging {
    /// Reads `limit` and `marker`. A limit of zero is none, as in Ironic.
    ///
    /// # Errors
    ///
    /// 400.
    pub(crate) fn take(asked: &mut Asked) -> Result<Self, Refusal> {
        let limit: Option<u32> = asked.take_as("limit", 1, "a number that is not negative")?;
        let marker = asked.take("marker", 1)?;
        Ok(Self { limit: limit.filter(|limit| *limit > 0), marker, order: None })
    }

    /// Reads `sort_key` and `sort_dir` too, for a list of records with these fields.
    ///
    /// # Errors
    ///
    /// 400.
    pub(crate) fn take_sorted(asked: &mut Asked, fields: &'static [Field]) -> Result<Self, Refusal> {
        let paging = Self::take(asked)?;
        Ok(Self { order: Order::take(asked, fields)?, ..paging })
    }

    /// The field that the list is sorted by, where one is asked for.
    pub(crate) fn sort_key(&self) -> Option<&'static str> {
        self.order.map(|order| order.key)
    }
}

/// A list under way.
struct Listing<S> {
    source: S,
    /// How many members are read at a time.
    step: u32,
    left: Option<u32>,
    limit: Option<u32>,
    url: String,
    last: Option<Uuid>,
    written: bool,
    is_over: bool,
}

/// Answers with a list named `name`, `step` members at a time. When more may follow its last one, it says where; `url`
/// is that place without its marker.
///
/// # Errors
///
/// When its first piece cannot be read. Later, the answer is cut off.
pub(crate) async fn answer(
    name: &str,
    source: impl Source,
    step: u32,
    paging: &Paging,
    url: String,
) -> Result<Response, Refusal> {
    let Paging { limit, .. } = *paging;
    let mut listing =
        Listing { source, step, left: limit, limit, url, last: None, written: false, is_over: false };
    let begin = format!("{{\"{name}\":[{}", listing.piece().await?);
    let pieces = stream::try_unfold((Some(begin), listing), async |(begin, mut listing)| match begin {
        Some(begin) => Ok(Some((Bytes::from(begin), (None, listing)))),
        None if listing.is_over => Ok(None),
        None => match listing.piece().await {
            Ok(piece) => Ok(Some((Bytes::from(piece), (None, listing)))),
            Err(refusal) => {
                tracing::error!("a list is cut off: {refusal}");
                Err(std::io::Error::other(refusal.to_string()))
            }
        },
    });
    Ok(([(CONTENT_TYPE, "application/json")], Body::from_stream(pieces)).into_response())
}

/// Answers with a list whose members come by their identity. All of them are read first where they are asked for in another
/// order.
///
/// # Errors
///
/// As [`answer`].
pub(crate) async fn answer_successive<R, F>(
    name: &str,
    mut members: Successive<R>,
    step: u32,
    paging: &Paging,
    url: String,
) -> Result<Response, Refusal>
where
    R: FnMut(Option<Uuid>, u32) -> F + Send + 'static,
    F: Future<Output = Result<Vec<Member>, Error>> + Send + 'static,
{
    if paging.order.is_none() {
        return answer(name, members, step, paging, url).await;
    }
    let mut all: Vec<Member> = Vec::new();
    loop {
        let found = (members.read)(all.last().map(|member| member.uuid), step).await?;
        let is_last = found.len() < step as usize;
        all.extend(found);
        if is_last {
            break;
        }
    }
    let marker = members.after.map(|marker| marker.to_string());
    let given = Given::of(&Paging { marker, ..paging.clone() }, all)?;
    let step = given.step();
    answer(name, given, step, paging, url).await
}

impl<S: Source> Listing<S> {
    /// The text of the next members, and of the list's end after the last ones.
    async fn piece(&mut self) -> Result<String, Refusal> {
        let most = self.left.map_or(self.step, |left| left.min(self.step));
        let then = self.left.map_or(self.step, |left| (left - most).min(self.step));
        let piece = self.source.next(most, then).await?;
        let mut text = String::new();
        for member in &piece.members {
            let comma = if std::mem::replace(&mut self.written, true) { "," } else { "" };
            text.extend([comma, member.get()]);
        }
        let count = u32::try_from(piece.count).unwrap_or(u32::MAX);
        self.left = self.left.map(|left| left.saturating_sub(count));
        self.last = piece.last.or(self.last);
        self.is_over = count < most || self.left == Some(0);
        if self.is_over {
            text.push_str(&self.end());
        }
        Ok(text)
    }

    fn end(&self) -> String {
        match (self.limit, self.left, self.last) {
            (Some(limit), Some(0), Some(last)) => {
                let mark = if self.url.contains('?') { '&' } else { '?' };
                let next = format!("{}{mark}limit={limit}&marker={last}", self.url);
                format!("],\"next\":{}}}", json!(next))
            }
            _ => "]}".to_owned(),
        }
    }
}
