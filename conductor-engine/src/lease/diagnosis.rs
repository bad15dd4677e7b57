//! What a task keeps of a machine that stays silent.

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

    pub(super) fn note(&mut self, words: LastWords) {
        *self = Self::Heard(words);
    }
}
