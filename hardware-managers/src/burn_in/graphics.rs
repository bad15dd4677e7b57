//! Graphics processors, by `gpu_burn`.

use super::{BurnInError, GRACE};
use crate::error::StepError;
use crate::manager::StepCall;
use crate::setting::Section;
use farrier_linux::process::{Conditions, GPU_BURN};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);
const FOLDER: &str = "/opt/gpu-burn";
const MOST_MEMORY: &str = "95%";

/// Puts load on all graphics processors. Returns how many were found good.
///
/// # Errors
///
/// [`StepError::InvalidSetting`], or what [`BurnInError`] says: also when another number of processors is
/// there than the operator expects.
pub fn burn_in(call: &StepCall<'_>) -> Result<Value, StepError> {
    let section = Section::driver_info(call.node);
    let expected = section.number("agent_burnin_gpu_count", 0)?;
    let folder = section.path("agent_burnin_gpu_install_dir")?.unwrap_or_else(|| FOLDER.into());
    let timeout = section.duration("agent_burnin_gpu_timeout", DAY)?;
    let memory = section.share("agent_burnin_gpu_memory", MOST_MEMORY)?;
    if expected > 0 {
        let list = run(call, &folder, &["-l".to_owned()], GRACE)?;
        let found = list.lines().filter(|line| line.trim_start().starts_with("ID ")).count() as u64;
        require_all(found, expected)?;
    }
    let arguments = ["-m".to_owned(), memory, timeout.as_secs().to_string()];
    let verdicts = verdicts(&run(call, &folder, &arguments, timeout + GRACE)?);
    let faulty: Vec<_> = verdicts.iter().filter(|(_, is_good)| !is_good).map(|(name, _)| &**name).collect();
    if !faulty.is_empty() {
        return Err(BurnInError::Faulty(format!("{} computed wrong results", faulty.join(", "))).into());
    }
    if verdicts.is_empty() {
        let reason = "no processor in its verdict".to_owned();
        return Err(BurnInError::NoProof { program: GPU_BURN.name, reason }.into());
    }
    let good = verdicts.len() as u64;
    require_all(good, if expected > 0 { expected } else { good })?;
    Ok(json!({"graphics_processors": good, "seconds": timeout.as_secs()}))
}

fn run(
    call: &StepCall<'_>,
    folder: &Path,
    arguments: &[String],
    limit: Duration,
) -> Result<String, BurnInError> {
    let conditions = Conditions { limit, is_stopped: &|| call.host.is_ending(), folder: Some(folder) };
    Ok(GPU_BURN.finish(arguments, &conditions)?.succeeded()?.output)
}

fn require_all(found: u64, expected: u64) -> Result<(), BurnInError> {
    if found == expected {
        return Ok(());
    }
    let text = format!("{found} graphics processors were found where agent_burnin_gpu_count says {expected}");
    Err(BurnInError::Faulty(text))
}

/// The table at the end of the output: `GPU 0: OK` or `GPU 0: FAULTY`.
fn verdicts(output: &str) -> Vec<(String, bool)> {
    let verdict = |line: &str| {
        let (name, verdict) = line.trim().split_once(": ")?;
        let number = name.strip_prefix("GPU ")?;
        let is_good = match verdict {
            "OK" => true,
            "FAULTY" => false,
            _ => return None,
        };
        number.bytes().all(|byte| byte.is_ascii_digit()).then(|| (name.to_owned(), is_good))
    };
    output.lines().filter_map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_of_each_processor_is_read() {
        let output = "100.0%  proc'd: 21 (1 Gflop/s)   errors: 0   temps: 40 C\n\
                      Killing processes with SIGTERM (soft kill)\n\nTested 2 GPUs:\n\
                      \tGPU 0: OK\n\tGPU 1: FAULTY\nGPU 0: NVIDIA (UUID: x)\n";
        assert_eq!(verdicts(output), [("GPU 0".to_owned(), true), ("GPU 1".to_owned(), false)]);
    }
}
