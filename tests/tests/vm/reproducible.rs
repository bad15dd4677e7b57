//! Two builds of everything that is booted, as different as two builds of the same inputs can be.
//!
//! `cargo xtask test vm` makes the inputs and says where they are.

use farrier_tests::environment;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const HOUR: u64 = 60 * 60;

/// What differs from build to build.
struct Circumstances {
    /// Name of the folder with inputs and outputs.
    folder: &'static str,
    /// How far the clock is ahead, in hours.
    hours_ahead: u64,
    /// Permissions that new files do not get.
    umask: &'static str,
    /// Whether files are created in the opposite order.
    is_reversed: bool,
    /// What is in the place of this machine's own helper programs, if not these.
    own_programs: Option<&'static str>,
    /// Whether modules come from the cache of the builds before.
    is_cached: bool,
}

/// A helper program of the ramdisk that every Debian has too.
const OWN_PROGRAM: &str = "/usr/sbin/mke2fs";

impl Circumstances {
    /// Runs a program with this clock, these permissions and these programs on the machine.
    fn run(&self, program: &Path, arguments: &[&Path]) -> Output {
        let clock = format!("+{}h", self.hours_ahead);
        let own_program = self.own_programs.unwrap_or(OWN_PROGRAM);
        let script = "mount --bind \"$0\" \"$1\" && umask \"$2\" && shift 2 && exec \"$@\"";
        let output = Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", script, own_program, OWN_PROGRAM, self.umask])
            .args(["faketime", "-f", &clock])
            .arg(program)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    /// Copies a folder; every file in it was last changed `hours_ahead` of 2020.
    fn copy(&self, from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        let mut entries: Vec<_> = fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        if self.is_reversed {
            entries.reverse();
        }
        for source in entries {
            let target = to.join(source.file_name().unwrap());
            if source.is_symlink() {
                symlink(fs::read_link(&source).unwrap(), target).unwrap();
            } else if source.is_dir() {
                self.copy(&source, &target);
            } else {
                fs::copy(&source, &target).unwrap();
                let changed = UNIX_EPOCH + Duration::from_secs((50 * 365 * 24 + self.hours_ahead) * HOUR);
                File::options().append(true).open(&target).unwrap().set_modified(changed).unwrap();
            }
        }
    }

    /// Builds all formats below `root`, and returns the folder with them.
    fn build(&self, root: &Path) -> PathBuf {
        let (dist, folder) = (environment::path("FARRIER_DIST"), root.join(self.folder));
        let modules = environment::path("FARRIER_MODULES");
        let copies = ["modules", "boot-loaders", "dist", "programs"].map(|name| folder.join(name));
        self.copy(&modules, &copies[0].join(modules.file_name().unwrap()));
        self.copy(&environment::path("FARRIER_BOOT_LOADERS"), &copies[1]);
        self.copy(&dist, &copies[2]);
        self.copy(&environment::path("FARRIER_PROGRAMS"), &copies[3]);
        let output = folder.join("output");
        let words = ["build", "--format", "iso,uki,netboot,ironic", "--kernel"].map(Path::new);
        let kernel = copies[2].join("vmlinuz");
        let agent = copies[2].join("farrier-agent");
        let modules = copies[0].join(modules.file_name().unwrap());
        let options = [
            &kernel,
            Path::new("--modules"),
            &modules,
            Path::new("--agent"),
            &agent,
            Path::new("--boot-loaders"),
            &copies[1],
            Path::new("--programs-root"),
            &copies[3],
            Path::new("--output"),
            &output,
        ];
        let cache = environment::path("FARRIER_MODULE_CACHE");
        let caching = if self.is_cached { vec![Path::new("--cache"), &cache] } else { vec![] };
        self.run(&environment::path("FARRIER_IMAGE_BUILDER"), &[&words[..], &options[..], &caching].concat());
        output
    }

    fn assert_the_machine_has_other_programs(&self) {
        // The proper one complains about that.
        self.run(Path::new(OWN_PROGRAM), &[Path::new("/nonexistent")]);
    }

    /// The clock is that of the builder too, which is linked with the library that shifts it.
    fn assert_the_builder_sees_the_clock(&self) {
        let date = self.run(Path::new("date"), &[Path::new("+%s")]);
        let seconds: u64 = String::from_utf8(date.stdout).unwrap().trim().parse().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!((seconds - now).abs_diff(self.hours_ahead * HOUR) < 60, "{seconds} {now}");
        let builder = environment::path("FARRIER_IMAGE_BUILDER");
        let linked = self.run(Path::new("env"), &[Path::new("LD_TRACE_LOADED_OBJECTS=1"), &builder]);
        let linked = String::from_utf8(linked.stdout).unwrap();
        assert!(linked.contains("libfaketime"), "{linked}");
    }
}

/// Every file below a folder, by its path in it.
fn files(folder: &Path) -> BTreeMap<PathBuf, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), path);
            }
        }
    }
    found
}

#[test]
fn vm_x40_two_builds_a_day_and_a_machine_apart_are_equal_in_every_byte() {
    let folder = TempDir::new().unwrap();
    let today = Circumstances {
        folder: "a",
        hours_ahead: 0,
        umask: "022",
        is_reversed: false,
        own_programs: None,
        is_cached: true,
    };
    let tomorrow = Circumstances {
        folder: "another/place",
        hours_ahead: 25,
        umask: "077",
        is_reversed: true,
        own_programs: Some("/bin/true"),
        is_cached: false,
    };
    tomorrow.assert_the_builder_sees_the_clock();
    tomorrow.assert_the_machine_has_other_programs();
    let (one, other) = (files(&today.build(folder.path())), files(&tomorrow.build(folder.path())));
    assert!(one.keys().eq(other.keys()), "{:?} {:?}", one.keys(), other.keys());
    for name in ["initramfs.img", "farrier.iso", "farrier.efi", "netboot/boot.ipxe", "manifest.json"] {
        assert!(one.contains_key(Path::new(name)), "{name} was not built");
    }
    let manifest: Value =
        serde_json::from_slice(&fs::read(&one[Path::new("manifest.json")]).unwrap()).unwrap();
    let packed = ["programs", "libraries"].map(|kind| manifest[kind].as_array().unwrap());
    for file in packed.into_iter().flatten() {
        assert!(file["version"].is_string() && file["package"].is_string(), "{file}");
    }
    for (name, path) in &one {
        assert!(fs::read(path).unwrap() == fs::read(&other[name]).unwrap(), "{} differs", name.display());
    }
}
