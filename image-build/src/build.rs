//! From inputs to `dist/<arch>`.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flate2::{Compression, GzBuilder};

use crate::closure::Closure;
use crate::cpio::Archive;
use crate::error::BuildError;
use crate::executable::static_architecture;
use crate::manifest::{FileRecord, Manifest};
use crate::module_tree::ModuleTree;
use crate::ramdisk::{add_agent, add_modules, add_programs};
use crate::select::CLASSES;

/// What a ramdisk is built from.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// The kernel's file.
    pub kernel: PathBuf,
    /// Its modules, a folder named after the kernel's release.
    pub modules: PathBuf,
    /// The agent, linked statically.
    pub agent: PathBuf,
    /// Folder below which the helper programs are installed.
    pub programs_root: PathBuf,
}

/// Builds into `output`, or into `dist/<architecture of the agent>`.
///
/// Gives the description that is also written there as `manifest.json`, and the folder.
///
/// # Errors
///
/// [`BuildError`], naming the file and what to do.
pub fn build(inputs: &Inputs, output: Option<&Path>) -> Result<(Manifest, PathBuf), BuildError> {
    let kernel = fs::read(&inputs.kernel).map_err(BuildError::reading(&inputs.kernel))?;
    let agent = fs::read(&inputs.agent).map_err(BuildError::reading(&inputs.agent))?;
    let remedy = "build it with --target x86_64-unknown-linux-musl";
    let architecture = static_architecture(&inputs.agent, &agent, remedy)?;
    let tree = ModuleTree::read(&inputs.modules)?;
    let closure = Closure::of(&tree, CLASSES, &[])?;

    let mut archive = Archive::default();
    let modules = add_modules(&mut archive, &tree.release, &closure, CLASSES)?;
    let programs = add_programs(&mut archive, &inputs.programs_root)?;
    add_agent(&mut archive, agent.clone());
    let output = output.map_or_else(|| Path::new("dist").join(architecture), Path::to_owned);
    let initramfs = compress(&archive).map_err(BuildError::writing(&output.join("initramfs.img")))?;

    let contents = [("vmlinuz", kernel), ("initramfs.img", initramfs), ("farrier-agent", agent)];
    fs::create_dir_all(&output).map_err(BuildError::writing(&output))?;
    let mut files = BTreeMap::new();
    for (name, content) in &contents {
        write_file(&output.join(name), content)?;
        files.insert(*name, FileRecord::of(content));
    }
    let manifest = Manifest {
        farrier_version: env!("CARGO_PKG_VERSION"),
        architecture,
        kernel_release: tree.release.clone(),
        files,
        programs,
        modules: modules.into_iter().collect(),
        selection: closure.selection,
    };
    let path = output.join("manifest.json");
    let text = serde_json::to_string_pretty(&manifest)
        .map_err(io::Error::from)
        .map_err(BuildError::writing(&path))?;
    write_file(&path, format!("{text}\n").as_bytes())?;
    Ok((manifest, output))
}

fn compress(archive: &Archive) -> io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    archive.write_to(&mut encoder)?;
    encoder.finish()
}

/// Writes under another name first, so that a machine that is booting meanwhile never reads half a file.
fn write_file(path: &Path, content: &[u8]) -> Result<(), BuildError> {
    let unfinished = path.with_extension("unfinished");
    fs::write(&unfinished, content).map_err(BuildError::writing(&unfinished))?;
    fs::rename(&unfinished, path).map_err(BuildError::writing(path))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;
    use crate::cpio::tests::unpack;
    use crate::executable::tests::synthetic_executable;
    use crate::module_tree::tests::write_tree;

    /// A machine to build on: a kernel with the required modules, a static agent and busybox.
    fn inputs(root: &Path) -> Inputs {
        let modules = root.join("lib/modules/6.1.0-test");
        let required: Vec<_> = CLASSES.iter().flat_map(|class| class.required).collect();
        for name in required {
            write_tree(&modules, &[(&format!("kernel/{name}.ko.zst"), &["depends=", "alias=pci:*"])]);
        }
        let executable = synthetic_executable(1);
        fs::create_dir_all(root.join("bin")).unwrap();
        for (path, content) in
            [("bin/busybox", &executable), ("agent", &executable), ("vmlinuz", &b"kernel".to_vec())]
        {
            fs::write(root.join(path), content).unwrap();
        }
        Inputs {
            kernel: root.join("vmlinuz"),
            modules,
            agent: root.join("agent"),
            programs_root: root.to_owned(),
        }
    }

    #[test]
    fn two_builds_are_equal_and_hold_what_a_node_boots() {
        let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let output = first.path().join("dist");
        let (manifest, folder) = build(&inputs(first.path()), Some(&output)).unwrap();
        let (again, _) = build(&inputs(second.path()), Some(&second.path().join("dist"))).unwrap();
        assert_eq!(manifest, again);
        assert_eq!((folder, manifest.architecture), (output.clone(), "x86_64"));

        let image = fs::read(output.join("initramfs.img")).unwrap();
        assert_eq!(manifest.files["initramfs.img"], FileRecord::of(&image));
        let mut archive = Vec::new();
        flate2::read::GzDecoder::new(&*image).read_to_end(&mut archive).unwrap();
        let entries = unpack(&archive);
        let entry = |path: &str| entries.iter().find(|entry| entry.path == path).expect(path);
        assert_eq!(entry("init").data, b"usr/bin/farrier-agent");
        assert_eq!(entry("dev/console").device, (5, 1));
        assert_eq!(entry("usr/bin/busybox").mode, 0o100_755);
        assert_eq!(entry("etc/modules-load.d/farrier.conf").data, b"af_packet\nefivarfs\n");
        let module = &entry("lib/modules/6.1.0-test/kernel/nvme.ko.zst").data;
        assert!(zstd::decode_all(&**module).unwrap().starts_with(b"\x7fELF"));
        let aliases = String::from_utf8_lossy(&entry("lib/modules/6.1.0-test/modules.alias").data);
        assert!(aliases.contains("alias pci:* nvme\n"), "{aliases}");
    }

    #[test]
    fn what_cannot_be_packed_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = inputs(folder.path());
        let refusal = |inputs: &Inputs| build(inputs, Some(folder.path())).unwrap_err().to_string();
        let missing = Inputs { kernel: folder.path().join("absent"), ..inputs.clone() };
        assert!(refusal(&missing).starts_with(&format!("cannot read {}", missing.kernel.display())));
        fs::write(&inputs.agent, synthetic_executable(3)).unwrap();
        assert!(refusal(&inputs).contains("is linked dynamically"));
        fs::write(&inputs.agent, synthetic_executable(1)).unwrap();
        fs::remove_file(folder.path().join("bin/busybox")).unwrap();
        assert!(refusal(&inputs).contains("install the package busybox-static"));
    }
}
