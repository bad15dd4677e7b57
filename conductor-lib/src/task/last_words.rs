//! What a task does for a machine that stays silent.

use super::Task;
use crate::evidence::diagnosis::LastWords;
use crate::store::LastWordsChange;

/// What of the last words of a machine is to be saved.
pub(super) enum UnsavedLastWords {
    Nothing,
    Heard(LastWords),
    Forgotten,
}

impl UnsavedLastWords {
    pub(super) fn change(&self) -> LastWordsChange<'_> {
        match self {
            Self::Nothing => LastWordsChange::Keep,
            Self::Heard(words) => LastWordsChange::Put(words),
            Self::Forgotten => LastWordsChange::Remove,
        }
    }
}

impl Task {
    /// Keeps what could be had of the machine, which counts once saved.
    pub(crate) fn note_last_words(&mut self, words: LastWords) {
        self.last_words = UnsavedLastWords::Heard(words);
    }

    /// Has the next save forget what could be had of an earlier boot.
    pub(crate) fn forget_last_words(&mut self) {
        self.last_words = UnsavedLastWords::Forgotten;
    }
}
