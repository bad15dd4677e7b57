//! PID 1 outlives its own defects: the kernel panics when it ends.
//!
//! What a loop holds is kept when one of its rounds panics, so that there is one reaper for life, one agent, and
//! somebody who serves the network: nothing is started a second time.

use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

/// Pause after a defect, which may come again at once.
const PAUSE: Duration = Duration::from_secs(1);

/// Does a round again and again until one says that it was the last. A round that panics is logged, and the next one
/// follows after a pause.
pub fn rounds(what: &str, mut round: impl FnMut() -> ControlFlow<()>) {
    loop {
        match once(what, &mut round) {
            Some(ControlFlow::Break(())) => return,
            Some(ControlFlow::Continue(())) => {}
            None => thread::sleep(PAUSE),
        }
    }
}

/// Does something; nothing where that panics, which is logged.
pub fn once<T>(what: &str, work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).inspect_err(|panic| tell(what, panic.as_ref())).ok()
}

fn tell(what: &str, panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
    tracing::error!("{what} of PID 1 has a defect ({text}) and continues; report this with the log");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x25_a_loop_goes_on_after_a_defect_with_what_it_has() {
        let mut seen = Vec::new();
        rounds("a test", || {
            seen.push(seen.len());
            match seen.len() {
                2 => panic!("a defect"),
                4 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        assert_eq!(seen, [0, 1, 2, 3]);
        assert_eq!(once("a test", || -> u8 { panic!("{}", "another one") }), None);
    }
}
