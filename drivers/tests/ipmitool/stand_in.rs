//! A program that stands in for ipmitool, in front of a machine that is some files: what it is asked is written down, and one
//! answer can be another one.

use crate::fake_program::install;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// How long a command may take.
pub const LIMIT: Duration = Duration::from_secs(1);

/// What the program says in place of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrong {
    /// This, as an error, before the BMC has got anything.
    Before(&'static str),
    /// This, as an error, after the BMC has done what it was asked for.
    After(&'static str),
    /// Nothing, until it is ended.
    Silence,
    /// This, as if that were the answer.
    Garbage(&'static str),
    /// One half of the answer.
    Half,
    /// Nothing, as if that were the answer.
    Empty,
    /// The answer, when its time is long over.
    Late,
}

/// The program, and its machine. Dropping it takes both away.
pub struct StandIn {
    folder: TempDir,
}

impl StandIn {
    /// One whose machine is off, and whose BMC was made by somebody.
    pub fn new(maker: &str) -> Self {
        let stand_in = Self { folder: tempfile::tempdir().unwrap() };
        for (name, content) in [
            ("power", "off"),
            ("flags", "No override"),
            ("asked", ""),
            ("done", ""),
            ("count", "0"),
            ("maker", maker),
            ("at", "0"),
            ("until", "0"),
        ] {
            let line = if content.is_empty() { String::new() } else { format!("{content}\n") };
            fs::write(stand_in.file(name), line).unwrap();
        }
        let late = (LIMIT * 2).as_secs_f64().to_string();
        let program = PROGRAM.replace("FOLDER", stand_in.folder.path().to_str().unwrap());
        let program = program.replace("LATE", &late);
        install(&stand_in.file("ipmitool"), &program);
        stand_in
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn program(&self) -> String {
        self.file("ipmitool").to_str().unwrap().to_owned()
    }

    /// Has the answers to the commands with these numbers, the first of which is 1, be other ones.
    pub fn is_wrong(&self, first: usize, last: usize, wrong: Wrong) {
        let (kind, text) = match wrong {
            Wrong::Before(text) => ("before", text),
            Wrong::After(text) => ("after", text),
            Wrong::Silence => ("silence", ""),
            Wrong::Garbage(text) => ("garbage", text),
            Wrong::Half => ("half", ""),
            Wrong::Empty => ("empty", ""),
            Wrong::Late => ("late", ""),
        };
        for (name, content) in
            [("kind", kind), ("text", text), ("at", &first.to_string()), ("until", &last.to_string())]
        {
            fs::write(self.file(name), format!("{content}\n")).unwrap();
        }
    }

    /// The commands, without the arguments that lead to the BMC.
    pub fn asked(&self) -> Vec<String> {
        fs::read_to_string(self.file("asked")).unwrap().lines().map(str::to_owned).collect()
    }

    /// The orders that it has carried out and that start something each time.
    pub fn done(&self) -> Vec<String> {
        fs::read_to_string(self.file("done")).unwrap().split_whitespace().map(str::to_owned).collect()
    }

    pub fn flags(&self) -> String {
        fs::read_to_string(self.file("flags")).unwrap().trim().to_owned()
    }

    pub fn switch_on(&self) {
        fs::write(self.file("power"), "on\n").unwrap();
    }

    /// Has all answers be right.
    pub fn is_right(&self) {
        fs::write(self.file("until"), "0\n").unwrap();
    }

    pub fn power(&self) -> String {
        fs::read_to_string(self.file("power")).unwrap().trim().to_owned()
    }

    /// Has its BMC tell of its boot flags in these words, whatever they are.
    pub fn reports_flags(&self, text: &str) {
        fs::write(self.file("told"), format!("{text}\n")).unwrap();
    }
}

const PROGRAM: &str = r#"#!/bin/sh
cd 'FOLDER' || exit 1
while [ "$1" != -f ]; do shift; done
shift 2
echo "$*" >> asked
read number < count; number=$((number + 1)); echo $number > count
read at < at; read until < until
is_wrong=false
[ $number -ge $at ] && [ $number -le $until ] && read is_wrong < kind
case $is_wrong in
  before) cat text >&2; exit 1 ;;
  silence) exec sleep 3600 ;;
esac
answer() {
  case $is_wrong in
    half) printf %.$((${#1} / 2))s "$1" ;;
    garbage) cat text ;;
    empty | after) ;;
    late) sleep LATE; echo "$1" ;;
    *) echo "$1" ;;
  esac
}
case "$*" in
  'power status') read power < power; answer "Chassis Power is $power" ;;
  'power on') echo on > power; answer 'Chassis Power Control: Up/On' ;;
  'power off') echo off > power; answer 'Chassis Power Control: Down/Off' ;;
  'power reset' | 'power soft' | 'power diag') echo "$2" >> done; answer "Chassis Power Control: $2" ;;
  'mc info') read maker < maker; answer "Manufacturer Name         : $maker" ;;
  'raw 0x00 0x08 0x03 0x08') answer '' ;;
  'raw 0x06 0x01') answer ' 20 01 03 09 02' ;;
  'raw 0x00 0x08 0x05 '*' 0x24 '*) echo 'Force Boot from primary remote media' > flags; answer '' ;;
  'raw 0x00 0x08 0x05 '*' 0x08 '*) echo 'Force Boot from default Hard-Drive' > flags; answer '' ;;
  'raw 0x00 0x08 0x05 '*' 0x04 '*) echo 'Force PXE' > flags; answer '' ;;
  'chassis bootdev pxe'*) echo 'Force PXE' > flags; answer 'Set Boot Device to pxe' ;;
  'chassis bootdev disk'*) echo 'Force Boot from default Hard-Drive' > flags; answer 'Set Boot Device to disk' ;;
  'chassis bootparam get 5')
    told=flags
    [ -f told ] && told=told
    read flags < $told
    answer "   - Boot Device Selector : $flags" ;;
  'sel time get') answer "$(date -u '+%m/%d/%Y %H:%M:%S')" ;;
  'sel list last 40') answer '   1 | 11/24/2026 | 22:28:36 | Power Supply #0x51 | Power Supply AC lost | Asserted' ;;
  'sol info') answer 'Enabled                         : true' ;;
  'sol activate')
    answer 'horse login: '
    [ $is_wrong = false ] && exec cat > /dev/null ;;
  *) echo "nothing is known of $*" >&2; exit 1 ;;
esac
if [ $is_wrong = after ]; then cat text >&2; exit 1; fi
"#;
