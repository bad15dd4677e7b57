//! In which order steps of equal priority run (section 3.2).

use crate::model::StepKind;
use std::cmp::Reverse;

/// The interfaces whose steps come first, the first one first. Those that are not named come last.
const CLEAN_AND_DEPLOY: &[&str] = &["vendor", "power", "management", "firmware", "deploy", "bios", "raid"];
const SERVICE: &[&str] = &["network", "vendor", "power", "management", "firmware", "deploy", "bios", "raid"];

/// Sorts steps by their priority, the highest first, and equal ones by their interface; `of` returns both of a step.
/// Steps that are equal in both keep their order.
pub fn sort<T>(kind: StepKind, steps: &mut [T], of: impl Fn(&T) -> (i64, &str)) {
    let interfaces = match kind {
        StepKind::Clean | StepKind::Deploy => CLEAN_AND_DEPLOY,
        StepKind::Service => SERVICE,
    };
    let rank =
        |interface: &str| interfaces.iter().position(|one| *one == interface).unwrap_or(interfaces.len());
    steps.sort_by_key(|step| {
        let (priority, interface) = of(step);
        (Reverse(priority), rank(interface))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priority_comes_first_and_then_the_interface() {
        let mut steps = [
            (10, "raid", "r"),
            (20, "bios", "b"),
            (10, "network", "n"),
            (10, "deploy", "d1"),
            (10, "vendor", "v"),
            (10, "deploy", "d2"),
            (10, "custom", "c"),
        ];
        let names = |steps: &[(i64, &str, &'static str)]| steps.iter().map(|step| step.2).collect::<Vec<_>>();
        sort(StepKind::Clean, &mut steps, |step| (step.0, step.1));
        assert_eq!(names(&steps), ["b", "v", "d1", "d2", "r", "n", "c"]);
        sort(StepKind::Service, &mut steps, |step| (step.0, step.1));
        assert_eq!(names(&steps), ["b", "n", "v", "d1", "d2", "r", "c"]);
    }
}
