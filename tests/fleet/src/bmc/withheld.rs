//! Answers that BMCs withhold: a conductor that waits for one of each machine does nothing else, and can be struck there.

use crate::journal::Who;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// The conductor from which the BMCs of a fleet withhold answers. The BMCs carry out its requests.
#[derive(Debug, Default)]
pub struct Withheld {
    /// The conductor whose changes are not answered.
    from: watch::Sender<Option<String>>,
    machines: Mutex<BTreeSet<u32>>,
}

/// An answer that is withheld. A client that gives up ends this as well.
struct Waiting<'a> {
    withheld: &'a Withheld,
    machine: u32,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.withheld.waiting().remove(&self.machine);
    }
}

impl Withheld {
    /// Withholds the answers to all changes that the conductor with a name asks for from now on.
    pub fn begin(&self, conductor: &str) {
        self.from.send_replace(Some(conductor.to_owned()));
    }

    /// Gives all answers.
    pub fn end(&self) {
        self.from.send_replace(None);
    }

    /// The machines whose BMCs withhold an answer.
    pub fn machines(&self) -> BTreeSet<u32> {
        self.waiting().clone()
    }

    /// Waits for as long as the answer to a change of a machine is withheld.
    pub(super) async fn wait(&self, machine: u32, by: &Who) {
        let mut from = self.from.subscribe();
        let is_given = |from: &Option<String>| from.is_none() || from.as_deref() != by.conductor();
        if is_given(&from.borrow()) {
            return;
        }
        self.waiting().insert(machine);
        let _waiting = Waiting { withheld: self, machine };
        // The sender lives as long as this.
        from.wait_for(is_given).await.ok();
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn by(conductor: &str) -> Who {
        let program = Some(format!("farrier/0.1.0 ({conductor})"));
        Who { peer: "192.0.2.1:5".parse().unwrap(), user: None, program }
    }

    #[test]
    fn answers_to_one_conductor_wait_until_they_are_given() {
        let withheld = Withheld::default();
        let (one, two) = (by("one"), by("two"));
        let mut context = Context::from_waker(Waker::noop());
        assert!(pin!(withheld.wait(6, &one)).poll(&mut context).is_ready(), "none is withheld");
        withheld.begin("one");
        assert!(pin!(withheld.wait(7, &two)).poll(&mut context).is_ready(), "those of another one");
        let mut waits = pin!(withheld.wait(8, &one));
        assert!(waits.as_mut().poll(&mut context).is_pending());
        {
            let mut is_given_up = pin!(withheld.wait(9, &one));
            assert!(is_given_up.as_mut().poll(&mut context).is_pending());
            assert_eq!(withheld.machines(), BTreeSet::from([8, 9]));
        }
        assert_eq!(withheld.machines(), BTreeSet::from([8]));
        withheld.end();
        assert!(waits.poll(&mut context).is_ready());
        assert_eq!(withheld.machines(), BTreeSet::new());
    }
}
