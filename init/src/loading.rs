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
/// The programs of PID 1 and of this process, below the root directory.
const PROGRAMS: [&str; 2] = ["proc/1/exe", "proc/self/exe"];

/// What is being loaded is not known. That is not "nothing": a driver may be bringing disks up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("/{PATH} cannot be read ({0})")]
pub struct Unknown(String);

/// What is being loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loading {
    /// Devices for which no driver was looked for yet.
    pub waiting: usize,
    /// Modules that the kernel is loading.
    pub modules: Vec<String>,
}

impl Loading {
    /// The report of PID 1 of the machine below `root`; nothing where PID 1 is another program.
    ///
    /// # Errors
    ///
    /// [`Unknown`] where there should be a report that cannot be read.
    pub fn read(root: &Path) -> Result<Self, Unknown> {
        match fs::read(root.join(PATH)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| Unknown(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !tells(root) => Ok(Self::default()),
            Err(error) => Err(Unknown(error.to_string())),
        }
    }
}

/// Whether PID 1 of the machine below `root` is this very program, which tells what it loads from its beginning.
fn tells(root: &Path) -> bool {
    let [first, own] = PROGRAMS.map(|path| fs::read_link(root.join(path)).ok());
    first.is_some() && first == own
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
        let ledger = Self { path: root.join(PATH), loading: Mutex::default() };
        ledger.tell(&Loading::default());
        ledger
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
        self.tell(&loading);
    }

    /// What cannot be told is not known: nobody may go by what was true before.
    fn tell(&self, loading: &Loading) {
        let written = serde_json::to_vec(loading).map_err(io::Error::from);
        if let Err(error) = written.and_then(|text| private_file::replace(&self.path, &text)) {
            tracing::error!(%error, "the list of loading drivers cannot be written to {}", self.path.display());
            // It may not have been there.
            fs::remove_file(&self.path).ok();
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
        assert_eq!(Loading::read(root.path()), Ok(Loading::default()), "another PID 1 tells nothing");
        let ledger = Ledger::open(root.path());
        ledger.expect();
        assert_eq!(Loading::read(root.path()).unwrap().waiting, 1);
        ledger.during("mpt3sas", || {
            ledger.during("ahci", || {
                assert_eq!(Loading::read(root.path()).unwrap().modules, ["mpt3sas", "ahci"]);
            });
            assert_eq!(Loading::read(root.path()).unwrap().modules, ["mpt3sas"]);
        });
        assert_eq!(Loading::read(root.path()), Ok(Loading { waiting: 1, modules: Vec::new() }));
        ledger.met();
        std::panic::catch_unwind(|| ledger.during("lpfc", || panic!("a defect"))).unwrap_err();
        assert_eq!(Loading::read(root.path()), Ok(Loading::default()));
    }

    /// A machine whose PID 1 is this program or another one.
    fn machine(first: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, program) in PROGRAMS.into_iter().zip([first, "/init"]) {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(program, root.path().join(path)).unwrap();
        }
        root
    }

    #[test]
    fn g10_what_should_be_told_and_cannot_be_read_is_not_nothing() {
        let nothing = Ok(Loading::default());
        assert_eq!(Loading::read(machine("/usr/lib/systemd/systemd").path()), nothing);
        let root = machine("/init");
        assert!(Loading::read(root.path()).is_err(), "it is not there");
        drop(Ledger::open(root.path()));
        assert_eq!(Loading::read(root.path()), nothing, "PID 1 tells from its beginning");
        let file = root.path().join(PATH);
        for text in ["", "{", "{}", "[]", "null", r#"{"waiting":0}"#, r#"{"waiting":-1,"modules":[]}"#] {
            fs::write(&file, text).unwrap();
            assert!(Loading::read(root.path()).is_err(), "{text}");
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(Loading::read(root.path()).is_err(), "a folder");
    }

    #[test]
    fn g10_what_cannot_be_written_is_not_known() {
        let root = machine("/init");
        let ledger = Ledger::open(root.path());
        // Nothing can be put in the place of the file.
        fs::create_dir_all(root.path().join(PATH).with_extension("new").join("in the way")).unwrap();
        ledger.expect();
        assert!(Loading::read(root.path()).is_err());
        fs::remove_dir_all(root.path().join(PATH).with_extension("new")).unwrap();
        ledger.met();
        assert_eq!(Loading::read(root.path()), Ok(Loading::default()));
    }
}
