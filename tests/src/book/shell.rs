//! A shell in which the commands of a page run one after another, as somebody types them.

use super::commands::Command as PageCommand;
use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(100);
/// What the shell prints behind a command, with its number and its exit status.
const ENDED: &str = "the command of the page has ended:";

/// A shell, where a folder is `/srv` and all else is as on this host. Dropping it ends what it has started.
#[derive(Debug)]
pub struct Shell {
    child: Child,
    input: ChildStdin,
    folder: PathBuf,
    commands: usize,
}

impl Shell {
    /// Starts it in the folder `current` with its files in `folder`. What is written below `/srv` is in `srv`.
    ///
    /// # Errors
    ///
    /// There is no shell, or no right to a mount namespace.
    pub fn start(current: &Path, folder: &Path, srv: &Path) -> Result<Self> {
        for folder in [folder, srv] {
            fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        }
        let output = File::create(folder.join("output"))?;
        let mut shell = Command::new("unshare");
        shell
            .args(["--mount", "sh", "-c", "mount --bind \"$0\" /srv && exec bash --norc --noprofile"])
            .arg(srv);
        shell.current_dir(current).process_group(0);
        shell.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output);
        let mut child = shell.spawn().context("cannot start unshare")?;
        let input = child.stdin.take().context("the shell has no input")?;
        Ok(Self { child, input, folder: folder.to_owned(), commands: 0 })
    }

    /// Runs a command, and waits until it has ended and has printed what the page shows. One that runs in the background
    /// only has to print that.
    ///
    /// # Errors
    ///
    /// The command failed, or did not print that in time; the text has its output.
    pub fn run(&mut self, command: &PageCommand, limit: Duration) -> Result<String> {
        self.commands += 1;
        let script = self.folder.join(format!("command-{}", self.commands));
        fs::write(&script, format!("{}\n", command.text))?;
        let before = self.printed()?.len();
        let end = format!("{ENDED} {}", self.commands);
        // What a command reads is not the next command.
        writeln!(self.input, "source {} < /dev/null; echo \"{end} $?\"", script.display())?;
        let begin = Instant::now();
        loop {
            let printed = self.printed()?;
            let printed = printed.get(before..).unwrap_or_default();
            let status = printed.lines().find_map(|line| line.split_once(&end)?.1.trim().parse::<i32>().ok());
            let what = || format!("line {}: {}\n{printed}", command.line, command.text);
            match (status, command.missing(printed)) {
                (Some(0), None) => return Ok(printed.to_owned()),
                (Some(0), Some(missing)) if begin.elapsed() > limit => {
                    bail!("no line of its output is {missing:?}\n{}", what())
                }
                (Some(0), Some(_)) => {}
                (Some(status), _) => bail!("exit status {status}\n{}", what()),
                (None, _) => ensure!(begin.elapsed() < limit, "nothing in {limit:?}\n{}", what()),
            }
            ensure!(self.child.try_wait()?.is_none(), "the shell has ended\n{}", what());
            thread::sleep(POLL);
        }
    }

    fn printed(&self) -> Result<String> {
        let output = fs::read(self.folder.join("output")).context("cannot read what the shell printed")?;
        Ok(String::from_utf8_lossy(&output).into_owned())
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // The conductor ends its dnsmasq, which it has in a group of its own.
        let group = Pid::from_raw(self.child.id().cast_signed());
        killpg(group, Signal::SIGTERM).ok();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(30) && killpg(group, None).is_ok() {
            self.child.try_wait().ok();
            thread::sleep(POLL);
        }
        killpg(group, Signal::SIGKILL).ok();
        self.child.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::super::commands::commands;
    use super::*;

    #[test]
    fn loop_commands_run_in_one_shell_and_fail_by_status_and_output() {
        let folder = tempfile::tempdir().unwrap();
        let srv = folder.path().join("srv");
        let mut shell = Shell::start(folder.path(), &folder.path().join("shell"), &srv).unwrap();
        let page = "```console\n$ export WORD=horse\n$ cat > /srv/word <<END\n$WORD\nEND\n$ cat /srv/word\nh…e\n$ cat\n\
                    $ (sleep 0.2; echo ready) &\nready\n$ false\n$ echo one\ntwo\n```\n";
        let mut commands = commands(page).unwrap();
        let (wrong, failing) = (commands.pop().unwrap(), commands.pop().unwrap());
        for command in &commands {
            shell.run(command, Duration::from_secs(60)).unwrap();
        }
        assert_eq!(fs::read_to_string(srv.join("word")).unwrap(), "horse\n");
        assert!(!Path::new("/srv/word").exists());
        let error = shell.run(&failing, Duration::from_secs(60)).unwrap_err().to_string();
        assert!(error.contains("exit status 1"), "{error}");
        let error = shell.run(&wrong, Duration::from_millis(300)).unwrap_err().to_string();
        assert!(error.contains("no line of its output is \"two\""), "{error}");
    }
}
