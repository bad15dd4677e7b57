//! The addresses of one image, asked in turns: each has the whole budget of requests (section 5.7).

use crate::error::{Error, Failed, Retry};
use crate::source::Download;
use std::time::{Duration, Instant};

/// All addresses of an image, in the order in which they were given.
pub(crate) struct Mirrors<'a> {
    mirrors: Vec<Mirror<'a>>,
    /// How many failures there were; tells which one came last.
    failures: usize,
}

/// One address, and how it fared so far.
struct Mirror<'a> {
    url: &'a str,
    download: Download<'a>,
    mismatches: u32,
    spent: Duration,
    /// The last failure, and its number among all.
    failure: Option<(usize, Error)>,
    /// Before then it is not asked again.
    due: Instant,
    is_given_up: bool,
}

impl<'a> Mirrors<'a> {
    /// Addresses of which none was asked yet, with a budget like that of `download` for each.
    pub(crate) fn new(urls: &'a [String], download: &Download<'a>) -> Self {
        let mirror = |url: &'a String| Mirror {
            url,
            download: download.another(),
            mismatches: 0,
            spent: Duration::ZERO,
            failure: None,
            due: Instant::now(),
            is_given_up: false,
        };
        Self { mirrors: urls.iter().map(mirror).collect(), failures: 0 }
    }

    /// Makes one attempt with each address that is due and not given up. Nothing when all failed.
    pub(crate) fn ask<T>(
        &mut self,
        mut attempt: impl FnMut(&Download<'a>, &str) -> Result<T, Error>,
    ) -> Option<T> {
        for index in 0..self.mirrors.len() {
            let mirror = &mut self.mirrors[index];
            if mirror.is_given_up || mirror.due > Instant::now() {
                continue;
            }
            let started = Instant::now();
            let outcome = attempt(&mirror.download, mirror.url);
            mirror.spent += started.elapsed();
            match outcome {
                Ok(done) => return Some(done),
                Err(error) => self.count(index, error),
            }
        }
        None
    }

    fn count(&mut self, index: usize, error: Error) {
        self.failures += 1;
        let mirror = &mut self.mirrors[index];
        let retry = error.retry();
        mirror.mismatches += u32::from(retry == Retry::Once);
        mirror.is_given_up = match retry {
            Retry::Never | Retry::Nowhere => true,
            Retry::Once => mirror.mismatches > 1,
            Retry::Often => !mirror.download.has_budget(),
        };
        tracing::warn!(%error, is_given_up = mirror.is_given_up, "the image was not written");
        if !mirror.is_given_up {
            mirror.due = mirror.download.resting_until(&error);
        }
        mirror.failure = Some((self.failures, error));
        if retry == Retry::Nowhere {
            self.mirrors.iter_mut().for_each(|mirror| mirror.is_given_up = true);
        }
    }

    /// When the first address may be asked again that is not given up.
    pub(crate) fn due(&self) -> Instant {
        let due = self.mirrors.iter().filter(|mirror| !mirror.is_given_up).map(|mirror| mirror.due);
        due.min().unwrap_or_else(Instant::now)
    }

    /// Whether no address is worth another attempt.
    pub(crate) fn are_given_up(&self) -> bool {
        self.mirrors.iter().all(|mirror| mirror.is_given_up)
    }

    /// Why none of them served: the failure of each address that was asked, the latest one last.
    pub(crate) fn failure(self) -> Error {
        let mut failed: Vec<_> = self.mirrors.into_iter().filter_map(Mirror::failed).collect();
        failed.sort_by_key(|(number, _)| *number);
        let mut failed: Vec<_> = failed.into_iter().map(|(_, failed)| failed).collect();
        match failed.pop() {
            Some(Failed { error, attempts: 1, .. }) if failed.is_empty() => error,
            last => {
                failed.extend(last);
                Error::Exhausted { failed }
            }
        }
    }
}

impl Mirror<'_> {
    fn failed(self) -> Option<(usize, Failed)> {
        let (number, error) = self.failure?;
        let attempts = self.download.requests().max(1);
        Some((number, Failed { error, attempts, seconds: self.spent.as_secs() }))
    }
}
