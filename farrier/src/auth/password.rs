//! Passwords: their hashes, and how they are asked for.

use anyhow::{Context, bail};
use bcrypt::HashParts;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcgetattr, tcsetattr};
use std::io::{self, BufRead, IsTerminal, Stdin, Write};

/// bcrypt reads no more bytes than these.
const MOST_BYTES: usize = 72;

/// What a hash may cost: two to the power of it rounds. One of 16 takes some seconds.
const MOST_COST: u32 = 16;

/// The end of a valid hash that belongs to no password.
const NOBODYS: &str = "abcdefghijklmnopqrstuuABCDEFGHIJKLMNOPQRSTUVWXYZabcde";

/// Refuses what is no hash, or one that takes too long.
pub(super) fn check_hash(hash: &str) -> Result<(), String> {
    match hash.parse::<HashParts>() {
        Ok(parts) if parts.get_cost() <= MOST_COST => Ok(()),
        Ok(parts) => {
            Err(format!("bcrypt with cost {} takes too long; use up to {MOST_COST}", parts.get_cost()))
        }
        Err(_) => {
            Err("the text after the name is not a bcrypt hash; use `farrier auth add` or `htpasswd -B`"
                .to_owned())
        }
    }
}

/// Hashes a new password.
pub(super) fn hash(password: &str, cost: u32) -> anyhow::Result<String> {
    if password.is_empty() || password.contains('\0') {
        bail!("a password must not be empty or contain a NUL character");
    }
    if password.len() > MOST_BYTES {
        bail!("a password may have at most {MOST_BYTES} bytes, the limit of bcrypt");
    }
    Ok(bcrypt::hash_with_result(password, cost)?.format_for_version(bcrypt::Version::TwoY))
}

/// Whether a password belongs to a hash. It takes its time: some tenths of a second.
pub(super) fn is_right(password: &[u8], hash: &str) -> bool {
    password.len() <= MOST_BYTES && bcrypt::verify(password, hash).unwrap_or(false)
}

/// What a hash costs: two to the power of it rounds.
pub(super) fn cost(hash: &str) -> u32 {
    hash.parse::<HashParts>().map_or(bcrypt::DEFAULT_COST, |parts| parts.get_cost())
}

/// The same as [`is_right`], after the work of a hash that costs so much, or of its own where that is more: hashes of all
/// costs from its own to the one below are as many rounds as are missing.
pub(super) fn is_right_after(password: &[u8], hash: &str, work: u32) -> bool {
    let is_right = is_right(password, hash);
    for cost in cost(hash)..work {
        spend(password, cost);
    }
    is_right
}

/// Does the work of one check.
fn spend(password: &[u8], cost: u32) {
    std::hint::black_box(is_right(password, &nobodys(cost)));
}

/// A hash of this cost that no password fits, for unknown names.
pub(super) fn nobodys(cost: u32) -> String {
    format!("$2y${cost:02}${NOBODYS}")
}

/// Asks for a new password on the terminal, twice and without showing it; elsewhere it is the first line of the input.
pub(super) fn ask() -> anyhow::Result<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return line(stdin.lock());
    }
    let hidden = Hidden::new(&stdin)?;
    let (first, second) = (prompt("Password: ")?, prompt("Once more: ")?);
    drop(hidden);
    if first != second {
        bail!("the two passwords differ");
    }
    Ok(first)
}

fn prompt(text: &str) -> anyhow::Result<String> {
    eprint!("{text}");
    io::stderr().flush()?;
    let line = line(io::stdin().lock());
    eprintln!();
    line
}

fn line(input: impl BufRead) -> anyhow::Result<String> {
    let mut line = String::new();
    input.take(1 << 10).read_line(&mut line).context("the password cannot be read")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// A terminal that does not show what is typed, until this is dropped.
struct Hidden<'a> {
    terminal: &'a Stdin,
    before: Termios,
}

impl<'a> Hidden<'a> {
    fn new(terminal: &'a Stdin) -> anyhow::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut hiding = before.clone();
        hiding.local_flags.remove(LocalFlags::ECHO);
        tcsetattr(terminal, SetArg::TCSAFLUSH, &hiding)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Hidden<'_> {
    fn drop(&mut self) {
        tcsetattr(self.terminal, SetArg::TCSANOW, &self.before).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::time::ClockId;
    use std::time::Duration;

    #[test]
    fn hashes_are_those_of_htpasswd_and_of_nobody_else() {
        let made = hash("Gr\u{fc}n", 4).unwrap();
        assert!(made.starts_with("$2y$04$") && check_hash(&made).is_ok());
        assert!(is_right("Gr\u{fc}n".as_bytes(), &made));
        for wrong in ["Grun", "", "Gr\u{fc}n\0", &"x".repeat(8 << 10)] {
            assert!(!is_right(wrong.as_bytes(), &made), "{wrong}");
        }
        // The example of Apache's documentation of htpasswd.
        let apaches = "$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC";
        assert!(check_hash(apaches).is_ok() && is_right(b"myPassword", apaches));
        let nobodys = nobodys(cost(&made));
        assert!(check_hash(&nobodys).is_ok() && nobodys.starts_with("$2y$04$"), "{nobodys}");
        assert!(!is_right(b"myPassword", &nobodys));
    }

    #[test]
    fn n21_every_check_is_the_work_of_the_dearest_hash() {
        // Time of a processor alone, as others work on this machine too.
        let now = || Duration::from(ClockId::CLOCK_THREAD_CPUTIME_ID.now().unwrap());
        let time = |hash: &str| {
            let begin = now();
            assert!(!is_right_after(b"wrong", hash, 9));
            now() - begin
        };
        let (cheap, dear) = (hash("a", 4).unwrap(), hash("b", 9).unwrap());
        assert!(is_right_after(b"a", &cheap, 9) && is_right_after(b"b", &dear, 4));
        let shortest = |hash: &str| (0..5).map(|_| time(hash)).min().unwrap();
        let times = [shortest(&cheap), shortest(&dear), shortest(&nobodys(9))];
        let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        assert!(*most < *least * 2, "{times:?}");
    }

    #[test]
    fn what_bcrypt_would_cut_off_is_refused() {
        let longest = "x".repeat(MOST_BYTES);
        let made = hash(&longest, 4).unwrap();
        assert!(is_right(longest.as_bytes(), &made) && !is_right(format!("{longest}y").as_bytes(), &made));
        for password in ["", "a\0b", &format!("{longest}y")] {
            assert!(hash(password, 4).is_err());
        }
    }

    #[test]
    fn a_password_is_one_line() {
        for (input, expected) in [("a b\n", "a b"), ("a\r\nb", "a"), (" a ", " a "), ("", "")] {
            assert_eq!(line(input.as_bytes()).unwrap(), expected);
        }
    }
}
