//! Config files in Ironic's form (section 3.2): sections, `key = value`, comments.
//!
//! A file is part of a machine's configuration, and a mistake in it must not keep the machine from
//! answering: whatever cannot be used is reported and left out.

use crate::settings::options::{DEFAULT_SECTION, Named, OptionSpec};
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the file that is read when none is given.
const FILE: &str = "ironic-python-agent.conf";
/// Folder that is read when none is given.
const DIRECTORY: &str = "/etc/ironic-python-agent.d";
/// Options by the section and name that they had before.
const OLD_NAMES: &[((&str, &str), &str)] =
    &[(("ssl", "cert_file"), "tls_cert_file"), (("ssl", "key_file"), "tls_key_file")];

/// What the files say.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Texts by option.
    pub values: Named,
    /// What could not be used, each with its place.
    pub problems: Vec<String>,
}

impl Settings {
    /// Reads the given files and the `*.conf` files of the given folders, in order; a later value
    /// wins. Without any given, those at the usual places are read if they exist.
    pub fn read(files: &[PathBuf], directories: &[PathBuf]) -> Self {
        let mut settings = Self::default();
        match files {
            [] => default_file().into_iter().for_each(|file| settings.read_file(&file)),
            files => files.iter().for_each(|file| settings.read_file(file)),
        }
        match directories {
            [] if Path::new(DIRECTORY).is_dir() => settings.read_directory(Path::new(DIRECTORY)),
            directories => directories.iter().for_each(|directory| settings.read_directory(directory)),
        }
        settings
    }

    fn read_directory(&mut self, directory: &Path) {
        let entries = match fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(error) => {
                self.problems.push(format!("{} cannot be read: {error}", directory.display()));
                return;
            }
        };
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "conf"));
        files.sort();
        files.iter().for_each(|file| self.read_file(file));
    }

    fn read_file(&mut self, file: &Path) {
        match fs::read(file) {
            Ok(bytes) => self.parse(&file.display().to_string(), &String::from_utf8_lossy(&bytes)),
            Err(error) => self.problems.push(format!("{} cannot be read: {error}", file.display())),
        }
    }

    fn parse(&mut self, file: &str, text: &str) {
        let mut section = DEFAULT_SECTION;
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let place = || format!("{file}, line {}", index + 1);
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = name.trim();
            } else if let Some((key, value)) = line.split_once(['=', ':']) {
                match option(section, key.trim()) {
                    Some(spec) => drop(self.values.insert(spec.key(), unquoted(value.trim()).to_owned())),
                    None => self.problems.push(format!(
                        "{}: this agent has no option {} in [{section}]; it is ignored",
                        place(),
                        key.trim()
                    )),
                }
            } else {
                // The line may hold a secret, and is not shown.
                self.problems.push(format!("{}: neither a section nor an option; ignored", place()));
            }
        }
    }
}

fn default_file() -> Option<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    home.into_iter().chain([PathBuf::from("/etc")]).map(|place| place.join(FILE)).find(|file| file.exists())
}

/// The option that a key means; some are written with dashes.
fn option(section: &str, key: &str) -> Option<&'static OptionSpec> {
    let name = key.replace('-', "_");
    match OLD_NAMES.iter().find(|(old, _)| *old == (section, &name)) {
        Some((_, name)) => OptionSpec::find(DEFAULT_SECTION, name),
        None => OptionSpec::find(section, &name),
    }
}

/// Quotes around a whole value are not part of it.
fn unquoted(value: &str) -> &str {
    let inside = |quote| value.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    inside('"').or_else(|| inside('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::options::Options;
    use proptest::prelude::*;

    #[test]
    fn rows_of_the_contract() {
        for (text, name, expected) in [
            ("[DEFAULT]\nlisten_port = 1\n", "listen_port", Some("1")),
            ("listen_port=1\nlisten_port=2", "listen_port", Some("2")),
            ("[DEFAULT]\nlisten_port: 1", "listen_port", Some("1")),
            ("  cafile = /etc/x.pem  ", "cafile", Some("/etc/x.pem")),
            ("# cafile = a\n;cafile = b", "cafile", None),
            ("cafile = \"/a b\"", "cafile", Some("/a b")),
            ("api_url = http://a:1,http://b:2", "api_url", Some("http://a:1,http://b:2")),
            ("guard-special-filesystems = no", "guard_special_filesystems", Some("no")),
            ("[metrics]\nlisten_port = 1", "listen_port", None),
            ("[ssl]\ncert_file = /c.pem", "tls_cert_file", Some("/c.pem")),
        ] {
            let mut settings = Settings::default();
            settings.parse("x.conf", text);
            let found = settings.values.get(&(DEFAULT_SECTION, name));
            assert_eq!(found.map(String::as_str), expected, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_used_is_reported_with_its_place() {
        let mut settings = Settings::default();
        settings.parse("x.conf", "[DEFAULT]\nno_such_option = secret\nhalf a line\nlisten_port = 7\n");
        assert_eq!(settings.values[&(DEFAULT_SECTION, "listen_port")], "7");
        let [unknown, broken] = &settings.problems[..] else { panic!("{:?}", settings.problems) };
        assert!(unknown.starts_with("x.conf, line 2: this agent has no option no_such_option"), "{unknown}");
        assert!(broken.starts_with("x.conf, line 3: "), "{broken}");
        assert!(!unknown.contains("secret") && !broken.contains("half"));
    }

    #[test]
    fn folders_follow_files_in_the_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("main.conf", "listen_port = 1\nadvertise_port = 1\ncafile = 1"),
            ("d/20.conf", "listen_port = 3"),
            ("d/10.conf", "listen_port = 2\nadvertise_port = 2"),
            ("d/notes.txt", "cafile = 2"),
        ] {
            let file = directory.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let place = |name| directory.path().join(name);
        let settings = Settings::read(&[place("main.conf"), place("absent.conf")], &[place("d")]);
        let values: Vec<_> = settings.values.values().map(String::as_str).collect();
        assert_eq!(values, ["2", "1", "3"]);
        assert!(settings.problems[0].contains("absent.conf"), "{:?}", settings.problems);
    }

    #[test]
    fn every_section_of_the_contract_is_known() {
        let mut settings = Settings::default();
        let text = "[disk_utils]\nefi_system_partition_size = 200\n[mdns]\nlookup_attempts = 5\n\
                    [metrics]\nbackend = statsd\n[container]\nrun_options = --rm -v a:b\n";
        settings.parse("x.conf", text);
        assert_eq!(settings.problems, Vec::<String>::new());
        let (options, errors) = Options::load(&Default::default(), &settings.values);
        assert_eq!(errors, []);
        assert_eq!((options.efi_system_partition_size, options.mdns_lookup_attempts), (200, 5));
    }

    proptest! {
        #[test]
        fn no_file_is_too_odd(text in "(?s).*") {
            Settings::default().parse("x.conf", &text);
        }
    }
}
