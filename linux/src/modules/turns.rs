//! Doing something once per name, whoever asks for it and however often.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The names there were so far, and whether theirs is done.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<String, Arc<Mutex<bool>>>>);

impl Turns {
    /// Does the work if nobody did or does it. Who comes meanwhile waits until it is done: what follows
    /// may rest on it.
    pub(super) fn once<E>(&self, name: &str, work: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
        let turn = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(turns.entry(name.to_owned()).or_default())
        };
        let mut is_done = turn.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_done {
            return Ok(());
        }
        *is_done = true;
        work()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::thread;

    #[test]
    fn who_comes_second_waits_and_does_nothing() {
        let turns = Turns::default();
        let (has_begun, may_finish) = (Barrier::new(2), Barrier::new(2));
        let done = Mutex::new(Vec::new());
        let note = |what: &'static str| done.lock().unwrap().push(what);
        thread::scope(|scope| {
            scope.spawn(|| {
                turns.once("scsi_mod", || {
                    has_begun.wait();
                    may_finish.wait();
                    note("loaded");
                    Err("refused")
                })
            });
            has_begun.wait();
            let second = scope.spawn(|| {
                let outcome = turns.once("scsi_mod", || Err("done twice"));
                note("went on");
                outcome
            });
            assert_eq!(turns.once("ahci", || Err("another")), Err("another"));
            may_finish.wait();
            assert_eq!(second.join().unwrap(), Ok(()));
        });
        assert_eq!(*done.lock().unwrap(), ["loaded", "went on"]);
    }
}
