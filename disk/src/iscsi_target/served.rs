//! What a program that this process runs exports, beside what the kernel does: everything in the process that uses disks
//! has to know. There is one export at a time.

use super::layout::Exported;
use std::sync::{Mutex, PoisonError};

static EXPORTED: Mutex<Option<Exported>> = Mutex::new(None);

/// What is exported so.
pub(crate) fn exported() -> Option<Exported> {
    EXPORTED.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Something is exported from now on, or nothing any more; returns what was.
pub(super) fn replace(exported: Option<Exported>) -> Option<Exported> {
    std::mem::replace(&mut *EXPORTED.lock().unwrap_or_else(PoisonError::into_inner), exported)
}
