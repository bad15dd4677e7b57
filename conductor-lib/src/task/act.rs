//! Calls of interfaces, whose drivers may hang or crash.

use super::Task;
use super::host::Host;
use crate::error::Error;
use crate::interfaces::base::InterfaceError;
use crate::model::{InterfaceKind, Node};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{interval, timeout};

/// One call of an interface, as errors name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    driver: String,
    kind: InterfaceKind,
    method: &'static str,
}

/// Why a call came to nothing.
#[derive(Debug, thiserror::Error)]
enum NoAnswer {
    /// The driver hangs.
    #[error("driver {:?} did not answer {}.{} within {} s; {}", .call.driver, .call.kind.as_str(), .call.method, .limit.as_secs_f64(), .call.advice())]
    Late {
        /// The call.
        call: Call,
        /// Its limit.
        limit: Duration,
    },
    /// The driver is broken.
    #[error("driver {:?} crashed in {}.{}; see the conductor's log", .0.driver, .0.kind.as_str(), .0.method)]
    Crashed(Call),
}

impl Call {
    /// A call of a method of an interface of a node.
    pub fn of(node: &Node, kind: InterfaceKind, method: &'static str) -> Self {
        Self { driver: node.driver.clone(), kind, method }
    }

    /// Where to look when the driver hangs.
    fn advice(&self) -> &'static str {
        match self.kind {
            InterfaceKind::Network => "check Neutron (or the service behind network_interface)",
            _ => "look at the machine's BMC",
        }
    }

    /// What the driver answers within a limit. A call that hangs ends with its limit, and one that panics has failed.
    ///
    /// # Errors
    ///
    /// Those of the call, and [`InterfaceError::Driver`] with the name of the call when it hangs or panics.
    pub async fn answer<T>(
        self,
        limit: Duration,
        work: impl Future<Output = Result<T, InterfaceError>>,
    ) -> Result<T, InterfaceError> {
        let mut work = pin!(work);
        // Whatever a call that panics leaves behind is dropped with it: it is not polled again.
        let caught = std::future::poll_fn(|context| {
            match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
                Ok(Poll::Pending) => Poll::Pending,
                Ok(Poll::Ready(answer)) => Poll::Ready(Some(answer)),
                Err(_) => Poll::Ready(None),
            }
        });
        match timeout(limit, caught).await {
            Ok(Some(answer)) => answer,
            Ok(None) => Err(InterfaceError::driver(NoAnswer::Crashed(self))),
            Err(_) => Err(InterfaceError::driver(NoAnswer::Late { call: self, limit })),
        }
    }
}

impl Task {
    /// Asks an interface for something that changes nothing, within the limit for such calls.
    pub(crate) async fn ask<T>(
        &self,
        kind: InterfaceKind,
        method: &'static str,
        answer: impl Future<Output = Result<T, InterfaceError>>,
    ) -> Result<T, Error> {
        let limit = self.settings().interface_timeout;
        Ok(Call::of(&self.node, kind, method).answer(limit, answer).await?)
    }

    /// Has an interface act on the machine, within the limit for such calls. See [`act`].
    pub(crate) async fn act<T>(
        &self,
        kind: InterfaceKind,
        method: &'static str,
        work: impl Future<Output = Result<T, InterfaceError>>,
    ) -> Result<T, Error> {
        let limit = self.settings().interface_timeout;
        act(&self.host, Call::of(&self.node, kind, method), limit, work).await
    }
}

tokio::task_local! {
    /// Where a call of an interface asks for the confirmation of the lease under which it acts.
    static CONFIRMATIONS: mpsc::UnboundedSender<oneshot::Sender<()>>;
}

/// Has the store confirm the lease under which an interface acts now. An interface that sends several requests within one
/// call does that before each request that changes the machine: its host may have been suspended since the last answer, and
/// another conductor may have taken the node over, which no clock of this host shows. Without the lease the call ends here.
/// Where nothing acts on a node, this does nothing.
pub async fn confirm_lease() {
    let Ok(confirmations) = CONFIRMATIONS.try_with(Clone::clone) else { return };
    let (confirms, confirmed) = oneshot::channel();
    // Who has the other end polls this call, and drops it if the lease is lost.
    if confirmations.send(confirms).is_ok() && confirmed.await.is_err() {
        std::future::pending().await
    }
}

/// How often a call is looked at that waits.
const LOOK: Duration = Duration::from_secs(1);

/// A process that did not run for so long has stood still: another conductor may have its lease.
const STANDSTILL: Duration = Duration::from_secs(3);

/// Has an interface act on a machine: once the store has confirmed the lease, and until the call has answered, its limit is
/// over or the lease is lost. After a standstill of the process, and where the call [asks for it](confirm_lease), the store
/// confirms the lease again before the call goes on: else a request that waited to be sent would reach a machine that another
/// conductor has taken over.
///
/// # Errors
///
/// [`Error::Interface`] as [`Call::answer`], [`Error::Host`] where the lease is lost.
pub(crate) async fn act<T>(
    host: &dyn Host,
    call: Call,
    limit: Duration,
    work: impl Future<Output = Result<T, InterfaceError>>,
) -> Result<T, Error> {
    act_between(|| host.hold(), || host.lost(), call.answer(limit, work), STANDSTILL).await
}

/// As [`act`], with what confirms the lease, what tells that it is lost, and the length of a standstill.
async fn act_between<T, H, L>(
    hold: impl Fn() -> H,
    lost: impl Fn() -> L,
    answer: impl Future<Output = Result<T, InterfaceError>>,
    standstill: Duration,
) -> Result<T, Error>
where
    H: Future<Output = Result<(), Error>>,
    L: Future<Output = Error>,
{
    hold().await?;
    let (confirmations, mut asked) = mpsc::unbounded_channel();
    let mut answer = pin!(CONFIRMATIONS.scope(confirmations, answer));
    let (mut look, mut seen) = (interval(LOOK), Instant::now());
    loop {
        let goes_on = std::future::poll_fn(|context| {
            if std::mem::replace(&mut seen, Instant::now()).elapsed() > standstill {
                return Poll::Ready(None);
            }
            if let Poll::Ready(answer) = answer.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            while look.poll_tick(context).is_ready() {}
            Poll::Pending
        });
        let (answer, confirms) = tokio::select! {
            biased;
            lost = lost() => return Err(lost),
            Some(confirms) = asked.recv() => (None, Some(confirms)),
            answer = goes_on => (answer, None),
        };
        if let Some(answer) = answer {
            return Ok(answer?);
        }
        hold().await?;
        if let Some(confirms) = confirms {
            // What no longer waits for it goes on without it.
            confirms.send(()).ok();
        }
        seen = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewNode;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
    use time::OffsetDateTime;

    fn call() -> Call {
        let new = NewNode { driver: "strip".to_owned(), ..NewNode::default() };
        Call::of(&Node::enrol(new, OffsetDateTime::UNIX_EPOCH), InterfaceKind::Boot, "prepare_ramdisk")
    }

    #[tokio::test]
    async fn e03_e04_a_call_that_hangs_or_panics_ends_and_is_named() {
        let limit = Duration::from_millis(20);
        assert_eq!(call().answer(limit, async { Ok(7) }).await.unwrap(), 7);
        let hangs = call().answer::<()>(limit, std::future::pending()).await.unwrap_err();
        let expected =
            "driver \"strip\" did not answer boot.prepare_ramdisk within 0.02 s; look at the machine's BMC";
        assert_eq!(hangs.to_string(), expected);
        let panics =
            call().answer::<()>(limit, async { panic!("a defect of the driver") }).await.unwrap_err();
        let network = Call { kind: InterfaceKind::Network, ..call() };
        let hangs = network.answer::<()>(limit, std::future::pending()).await.unwrap_err();
        assert!(
            hangs.to_string().ends_with("check Neutron (or the service behind network_interface)"),
            "{hangs}"
        );
        let expected = "driver \"strip\" crashed in boot.prepare_ramdisk; see the conductor's log";
        assert_eq!(panics.to_string(), expected);
    }

    #[tokio::test]
    async fn e06_a_call_sends_its_next_request_only_if_the_lease_is_confirmed_again() {
        confirm_lease().await;
        for is_overtaken in [false, true] {
            let (holds, sent) = (AtomicU32::new(0), AtomicU32::new(0));
            let hold = || {
                // The host is suspended after the first request, and no clock moves meanwhile.
                let is_lost = is_overtaken && holds.fetch_add(1, Ordering::Relaxed) == 2;
                let overtaken = || Error::host(std::io::Error::other("overtaken"));
                std::future::ready(if is_lost { Err(overtaken()) } else { Ok(()) })
            };
            let answer = async {
                for _ in 0..3 {
                    confirm_lease().await;
                    sent.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            };
            let acted = act_between(hold, std::future::pending::<Error>, answer, STANDSTILL).await;
            let expected = if is_overtaken { (true, 1) } else { (false, 3) };
            assert_eq!((acted.is_err(), sent.into_inner()), expected);
        }
    }

    #[tokio::test]
    async fn f36_a_call_goes_on_after_a_standstill_only_if_the_lease_is_confirmed_again() {
        let standstill = Duration::from_millis(20);
        for is_overtaken in [false, true] {
            let (holds, sent) = (AtomicU32::new(0), AtomicBool::new(false));
            let hold = || {
                let is_first = holds.fetch_add(1, Ordering::Relaxed) == 0;
                let overtaken = || Error::host(std::io::Error::other("overtaken"));
                std::future::ready(if is_first || !is_overtaken { Ok(()) } else { Err(overtaken()) })
            };
            let answer = async {
                // The process stands still, as a thread that is not run.
                std::thread::sleep(standstill * 3);
                tokio::task::yield_now().await;
                sent.store(true, Ordering::Relaxed);
                Ok(())
            };
            let acted = act_between(hold, std::future::pending::<Error>, answer, standstill).await;
            assert_eq!((acted.is_err(), sent.into_inner()), (is_overtaken, !is_overtaken));
            assert!(holds.into_inner() >= 2);
        }
    }
}
