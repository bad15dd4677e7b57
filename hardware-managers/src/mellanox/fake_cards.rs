//! Network cards in sysfs, and stand-ins for the vendor's programs that answer in their form.

use super::tools::Tools;
use crate::error::StepError;
use crate::fake_host::FakeHost;
use crate::inventory::fake_program::install;
use crate::inventory::fake_root::FakeRoot;
use crate::manager::StepCall;
use farrier_linux::process::{MSTCONFIG, MSTFLINT, MSTFWRESET, Program};
use farrier_protocol::error::{CommandError, ErrorKind};
use farrier_protocol::lookup::Node;
use farrier_protocol::step::Phase;
use serde_json::{Map, Value};
use std::fs;
use std::path::Path;

/// Version that the cards begin with.
pub const OLD: &str = "20.33.1048";
/// Kind of their boards; the second card is of another kind.
pub const PSID: &str = "MT_0000000223";

/// What `mstflint` prints of a file or card, from `version` and `psid` files; an image is such a file.
const FLINT: &str = r#"
case "$1" in -v) exit 0;; esac
target=$2
[ "$1" = -d ] && target=$ROOT/cards/$2
if [ "$3" = -i ]; then
    [ -e "$ROOT/lies" ] || cp "$4" "$target"
    exit 0
fi
[ -e "$target" ] || { echo "-E- Cannot open $target" >&2; exit 1; }
echo 'Image type:            FS4'
cat "$target"
[ "$1" = -d ] && [ -e "$ROOT/running" ] && echo "FW Version(Running):   $(cat "$ROOT/running")"
exit 0
"#;

/// A table of parameters per function; `i` describes all that the program knows.
const CONFIG: &str = r#"
case "$3" in
i) printf 'CHAIN=<n>\nSRIOV_EN=<False|True>\nNUM_OF_VFS=<n>\nLINK_TYPE_P1=<IB|ETH>\nTOOL_ONLY=<n>\n';;
q) printf '\nDevice #1:\n----------\n\nConfigurations:      Next Boot\n'; cat "$ROOT/parameters/$2";;
-y)
    file=$ROOT/parameters/$2
    shift 4
    [ -e "$ROOT/lies" ] && exit 0
    for one in "$@"; do
        case $one in *'['*) continue;; esac
        sed -i "s/${one%%=*} .*/${one%%=*} ${one#*=}/" "$file"
    done;;
esac
"#;

/// The cards, their programs, and what these were asked.
pub struct FakeCards(FakeRoot);

impl FakeCards {
    /// One card with two functions and one of another kind; and a disk controller of the vendor.
    pub fn new() -> Self {
        let root = FakeRoot::new(&[]);
        for (address, device, class) in [
            ("0000:3b:00.0", "0x101b", "0x020700"),
            ("0000:3b:00.1", "0x101b", "0x020700"),
            ("0000:af:00.0", "0x1017", "0x020000"),
            ("0000:d8:00.0", "0x6001", "0x010802"),
        ] {
            let folder = format!("sys/bus/pci/devices/{address}");
            for (name, value) in [("vendor", super::VENDOR), ("device", device), ("class", class)] {
                root.write(&format!("{folder}/{name}"), format!("{value}\n"));
            }
            let parameters =
                "  CHAIN Array[0..7]\n* SRIOV_EN False(0)\n  NUM_OF_VFS 8\n  LINK_TYPE_P1 ETH(2)\n";
            root.write(&format!("parameters/{address}"), parameters);
        }
        root.write("cards/0000:3b:00.0", firmware(PSID, OLD));
        root.write("cards/0000:af:00.0", firmware("MT_0000000011", "16.32.1010"));
        let cards = Self(root);
        for (name, script) in [
            ("mstflint", FLINT),
            ("mstconfig", CONFIG),
            ("mstfwreset", "[ \"$1\" = -v ] || rm -f \"$ROOT/running\"\n"),
        ] {
            cards.program(name, script);
        }
        cards
    }

    fn program(&self, name: &str, script: &str) {
        let root = self.root().display();
        let text = format!("#!/bin/sh\nROOT={root}\necho \"$*\" >> \"$ROOT/calls\"\n{script}");
        fs::create_dir_all(self.root().join("bin")).unwrap();
        install(&self.root().join("bin").join(name), &text);
    }

    pub fn root(&self) -> &Path {
        self.0.path()
    }

    pub fn tools(&self) -> Tools {
        let [flint, config, reset] = [MSTFLINT, MSTCONFIG, MSTFWRESET].map(|program| {
            let path = self.root().join("bin").join(program.name).display().to_string();
            Program { path: path.leak(), ..program }
        });
        Tools { flint, config, reset }
    }

    /// Has the first card run another version until it is restarted.
    pub fn set_running(&self, version: &str) {
        self.0.write("running", version);
    }

    /// Has the programs report success without doing anything.
    pub fn lie(&self) {
        self.0.write("lies", "");
    }

    /// URL and content of an image.
    pub fn image(&self, psid: &str, version: &str) -> (String, Vec<u8>) {
        let name = format!("images/{psid}-{version}.bin");
        let content = firmware(psid, version);
        self.0.write(&name, &content);
        (format!("file://{}", self.root().join(name).display()), content.into_bytes())
    }

    /// The calls of programs that hold a text.
    pub fn calls(&self, text: &str) -> Vec<String> {
        let calls = fs::read_to_string(self.root().join("calls")).unwrap_or_default();
        calls.lines().filter(|call| call.contains(text)).map(str::to_owned).collect()
    }

    /// Runs a step with one argument, and gives the text of its failure.
    pub fn call(
        &self,
        argument: &str,
        value: Value,
        run: &dyn Fn(&StepCall<'_>) -> Result<Value, StepError>,
    ) -> Result<Value, String> {
        let arguments = Map::from_iter([(argument.to_owned(), value)]);
        let (node, record, ports) = (&Node::default(), &Value::Null, &Value::Null);
        let host = &FakeHost { download: read, ..FakeHost::default() };
        let (phase, step) = (Phase::Clean, "test");
        let call = StepCall { phase, step, nonce: None, node, record, ports, arguments: &arguments, host };
        run(&call).map_err(|error| CommandError::from(error).details)
    }
}

/// The file of a URL, as an agent fetches it.
fn read(url: &str, _: bool) -> Result<Vec<u8>, CommandError> {
    fs::read(url.trim_start_matches("file://"))
        .map_err(|error| CommandError::new(ErrorKind::CommandExecutionError, error.to_string()))
}

fn firmware(psid: &str, version: &str) -> String {
    format!("FW Version:            {version}\nPSID:                  {psid}\n")
}
