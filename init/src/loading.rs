//! What PID 1 is loading, told to the agent, which is another process: a file in memory that is replaced as a
//! whole whenever something changes.

use crate::private_file;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where the file lies, below the root directory. There is none where another PID 1 loads modules.
const PATH: &str = "run/farrier/loading.json";

/// What is being loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loading {
    /// Devices for which no driver was looked for yet.
    pub waiting: usize,
    /// Modules that the kernel is loading.
    pub modules: Vec<String>,
}

impl Loading {
    /// What PID 1 of the machine below `root` tells; nothing where it tells nothing.
    pub fn read(root: &Path) -> Self {
        let bytes = fs::read(root.join(PATH)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

/// PID 1's side of it.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    loading: Mutex<Loading>,
}

impl Ledger {
    /// A ledger of the machine below `root`, with nothing in it.
    pub fn open(root: &Path) -> Self {
        Self { path: root.join(PATH), loading: Mutex::default() }
    }

    /// One more device waits for its driver, or for being found.
    pub fn expect(&self) {
        self.change(|loading| loading.waiting += 1);
    }

    /// One device less waits.
    pub fn met(&self) {
        self.change(|loading| loading.waiting = loading.waiting.saturating_sub(1));
    }

    /// Whether nothing is being loaded, nor waits for that.
    pub fn is_idle(&self) -> bool {
        *self.loading.lock().unwrap_or_else(PoisonError::into_inner) == Loading::default()
    }

    /// Loads a module, which is on the ledger meanwhile.
    pub fn during<T>(&self, module: &str, load: impl FnOnce() -> T) -> T {
        let _entry = Entry::begin(self, module);
        load()
    }

    /// The number of devices matters to a person alone: it is written when it becomes zero or is no longer, and
    /// along with modules.
    fn change(&self, how: impl FnOnce(&mut Loading)) {
        let mut loading = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let before = loading.clone();
        how(&mut loading);
        if (before.waiting == 0) == (loading.waiting == 0) && before.modules == loading.modules {
            return;
        }
        let written = serde_json::to_vec(&*loading).map_err(io::Error::from);
        if let Err(error) = written.and_then(|text| private_file::replace(&self.path, &text)) {
            tracing::error!(%error, "what is being loaded cannot be told in {}", self.path.display());
        }
    }
}

/// A module on the ledger, for as long as this lives: a defect of the loader is survived, and must not leave
/// the module there.
struct Entry<'a>(&'a Ledger, &'a str);

impl<'a> Entry<'a> {
    fn begin(ledger: &'a Ledger, module: &'a str) -> Self {
        ledger.change(|loading| loading.modules.push(module.to_owned()));
        Self(ledger, module)
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.0.change(|loading| {
            let place = loading.modules.iter().position(|one| one == self.1);
            if let Some(place) = place {
                loading.modules.remove(place);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x02_what_is_being_loaded_is_told_to_other_processes() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Loading::read(root.path()), Loading::default(), "another PID 1 tells nothing");
        let ledger = Ledger::open(root.path());
        ledger.expect();
        assert_eq!(Loading::read(root.path()).waiting, 1);
        ledger.during("mpt3sas", || {
            ledger.during("ahci", || {
                assert_eq!(Loading::read(root.path()).modules, ["mpt3sas", "ahci"]);
            });
            assert_eq!(Loading::read(root.path()).modules, ["mpt3sas"]);
        });
        assert_eq!(Loading::read(root.path()), Loading { waiting: 1, modules: Vec::new() });
        ledger.met();
        std::panic::catch_unwind(|| ledger.during("lpfc", || panic!("a defect"))).unwrap_err();
        assert_eq!(Loading::read(root.path()), Loading::default());
    }
}
