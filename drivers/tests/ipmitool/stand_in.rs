//! A program that stands in for ipmitool, in front of a machine that is some files: what it is asked is written down, and one
//! answer can be another one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use tempfile::TempDir;

/// What the program says in place of an answer.
#[derive(Debug, Clone, Copy)]
pub enum Wrong {
    /// This, as an error, before the BMC has got anything.
    Before(&'static str),
    /// This, as an error, after the BMC has done what it was asked for.
    After(&'static str),
    /// Nothing, until it is ended.
    Silence,
    /// This, as if that were the answer.
    Instead(&'static str),
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
            ("maker", maker),
            ("at", "0"),
            ("until", "0"),
        ] {
            fs::write(stand_in.file(name), content).unwrap();
        }
        let program = PROGRAM.replace("FOLDER", stand_in.folder.path().to_str().unwrap());
        fs::write(stand_in.file("ipmitool"), program).unwrap();
        fs::set_permissions(stand_in.file("ipmitool"), fs::Permissions::from_mode(0o755)).unwrap();
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
            Wrong::Instead(text) => ("instead", text),
        };
        for (name, content) in
            [("kind", kind), ("text", text), ("at", &first.to_string()), ("until", &last.to_string())]
        {
            fs::write(self.file(name), content).unwrap();
        }
    }

    /// The commands, without the arguments that lead to the BMC.
    pub fn asked(&self) -> Vec<String> {
        fs::read_to_string(self.file("asked")).unwrap().lines().map(str::to_owned).collect()
    }

    pub fn power(&self) -> String {
        fs::read_to_string(self.file("power")).unwrap().trim().to_owned()
    }

    /// Has its BMC tell of its boot flags in these words, whatever they are.
    pub fn tells_flags(&self, text: &str) {
        fs::write(self.file("told"), text).unwrap();
    }
}

const PROGRAM: &str = r#"#!/bin/sh
cd 'FOLDER' || exit 1
while [ "$1" != -f ]; do shift; done
shift 2
echo "$*" >> asked
number=$(wc -l < asked)
is_wrong=false
[ "$number" -ge "$(cat at)" ] && [ "$number" -le "$(cat until)" ] && is_wrong=$(cat kind)
case $is_wrong in
  before) cat text >&2; exit 1 ;;
  silence) exec sleep 3600 ;;
  instead) cat text; exit 0 ;;
esac
case "$*" in
  'power status') echo "Chassis Power is $(cat power)" ;;
  'power on') echo on > power ;;
  'power off') echo off > power ;;
  'power reset' | 'power soft' | 'power diag') ;;
  'mc info') echo "Manufacturer Name         : $(cat maker)" ;;
  'raw 0x00 0x08 0x03 0x08') ;;
  'raw 0x00 0x08 0x05 '*' 0x24 '*) echo 'Force Boot from primary remote media' > flags ;;
  'raw 0x00 0x08 0x05 '*' 0x08 '*) echo 'Force Boot from default Hard-Drive' > flags ;;
  'raw 0x00 0x08 0x05 '*' 0x04 '*) echo 'Force PXE' > flags ;;
  'chassis bootdev pxe'*) echo 'Force PXE' > flags ;;
  'chassis bootdev disk'*) echo 'Force Boot from default Hard-Drive' > flags ;;
  'chassis bootparam get 5')
    told=flags
    [ -f told ] && told=told
    echo "   - Boot Device Selector : $(cat $told)" ;;
  'sel time get') date -u '+%m/%d/%Y %H:%M:%S' ;;
  'sel list last 40') echo '   1 | 11/24/2026 | 22:28:36 | Power Supply #0x51 | Power Supply AC lost | Asserted' ;;
  *) echo "nothing is known of $*" >&2; exit 1 ;;
esac
if [ $is_wrong = after ]; then cat text >&2; exit 1; fi
"#;
