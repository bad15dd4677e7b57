//! What a task keeps of a machine that stays silent.

use crate::evidence::diagnosis::Diagnosis;
use crate::store::DiagnosisChange;

/// What of the last words of a machine is to be saved.
pub(super) enum UnsavedDiagnosis {
    Nothing,
    Heard(Diagnosis),
    Forgotten,
}

impl UnsavedDiagnosis {
    pub(super) fn change(&self) -> DiagnosisChange<'_> {
        match self {
            Self::Nothing => DiagnosisChange::Keep,
            Self::Heard(words) => DiagnosisChange::Put(words),
            Self::Forgotten => DiagnosisChange::Remove,
        }
    }

    pub(super) fn note(&mut self, words: Diagnosis) {
        *self = Self::Heard(words);
    }
}
