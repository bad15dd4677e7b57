//! What the tests of each tier need beside themselves, and the variables that tell them where it is.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow};
use flate2::read::MultiGzDecoder;

use super::programs::{Built, CONDUCTOR, IMAGE_BUILDER, Tier};
use crate::build::dist::{self, Firmware};
use crate::build::instance_image::{self, Content, InstanceImage, System};
use crate::build::ironic_environment::{self, IronicEnvironment};
use crate::build::{python_manager, python_ramdisk, unpacked_kernel};
use crate::host::requirements::Purpose;
use crate::host::workspace::Workspace;
use crate::host::{npm_packages, python_environment};

/// Variables of a process.
pub type Environment = Vec<(&'static str, String)>;

/// What was made while the tests were compiled.
#[derive(Debug)]
pub enum Begun {
    /// Nothing is needed.
    Nothing,
    /// The agent is linked, and this is there.
    Machines {
        /// A whole disk and a partition.
        images: [InstanceImage; 2],
        /// A program that tries out HTTP interfaces.
        schemathesis: PathBuf,
    },
}

/// What the tests of a tier need installed.
pub fn purposes(tier: Tier) -> &'static [Purpose] {
    match tier {
        Tier::Unit | Tier::Process | Tier::Fault | Tier::Docs => &[Purpose::Unit],
        Tier::Disk => &[Purpose::Disk],
        Tier::Vm => &[Purpose::Dist, Purpose::InstanceImage, Purpose::Machine, Purpose::Python],
        Tier::Aarch64 => &[Purpose::Dist, Purpose::Machine, Purpose::MachineAarch64, Purpose::Python],
        Tier::Lifecycle => &[
            Purpose::Dist,
            Purpose::InstanceImage,
            Purpose::Machine,
            Purpose::Python,
            Purpose::Rival,
            Purpose::Bmc,
        ],
        Tier::Ironic => {
            &[Purpose::Dist, Purpose::InstanceImage, Purpose::Machine, Purpose::Python, Purpose::Ironic]
        }
        Tier::IronicIscsi => {
            &[Purpose::Dist, Purpose::Machine, Purpose::Python, Purpose::Ironic, Purpose::IronicIscsi]
        }
        Tier::Browser => &[Purpose::Browser],
        Tier::Client => &[Purpose::Python, Purpose::Client],
        Tier::Openstack => &[Purpose::Python],
    }
}

/// Makes what does not depend on the tests, to be called while they are compiled.
pub fn begin(tier: Tier, workspace: &Workspace) -> Result<Begun> {
    match tier {
        Tier::Vm => thread::scope(|scope| {
            // What comes from the network is made beside what the compiler makes.
            let fetched = scope.spawn(|| fetched(workspace));
            dist::link_agent(workspace, "x86_64")?;
            fetched.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))
        }),
        Tier::Aarch64 => {
            dist::fetch(workspace, "aarch64")?;
            dist::compile_c(workspace, "aarch64")?;
            Ok(Begun::Nothing)
        }
        _ => Ok(Begun::Nothing),
    }
}

/// Makes the rest, and tells where everything is: the tests of a tier run once with each set of variables.
pub fn finish(tier: Tier, begun: Begun, workspace: &Workspace, tests: &Built) -> Result<Vec<Environment>> {
    match (tier, begun) {
        (Tier::Ironic, _) => ironic_environments(workspace, tests),
        (Tier::IronicIscsi, _) => Ok(vec![ironic_iscsi_environment(workspace, tests)?]),
        (Tier::Browser, _) => Ok(vec![browser_environment(workspace, tests)?]),
        (Tier::Client, _) => Ok(vec![client_environment(workspace, tests)?]),
        (Tier::Openstack, _) => {
            let cloud = python_environment::openstack(workspace)?;
            Ok(vec![vec![("FARRIER_OPENSTACK", cloud.display().to_string())]])
        }
        (Tier::Lifecycle, _) => Ok(vec![lifecycle_environment(workspace, tests)?]),
        (Tier::Aarch64, _) => Ok(vec![aarch64_environment(workspace, tests)?]),
        (_, Begun::Nothing) => Ok(vec![Environment::new()]),
        (_, Begun::Machines { images, schemathesis }) => {
            let mut environment = machine_environment(workspace, tests, &images)?;
            environment.push(("FARRIER_SCHEMATHESIS", schemathesis.display().to_string()));
            Ok(vec![environment])
        }
    }
}

/// Where tests find the reference conductor, whose page they open, and their judge.
fn browser_environment(workspace: &Workspace, tests: &Built) -> Result<Environment> {
    Ok(vec![
        ("FARRIER_BIN", tests.program(CONDUCTOR)?.display().to_string()),
        ("FARRIER_AXE", npm_packages::axe(workspace)?.display().to_string()),
    ])
}

/// Where tests find the clients of operators.
fn client_environment(workspace: &Workspace, tests: &Built) -> Result<Environment> {
    Ok(vec![
        ("FARRIER_BIN", tests.program(CONDUCTOR)?.display().to_string()),
        ("FARRIER_CLIENTS", python_environment::clients(workspace)?.display().to_string()),
        ("FARRIER_ANSIBLE", python_environment::ansible(workspace)?.display().to_string()),
    ])
}

/// Where lives under the reference conductor find their ramdisks.
fn lifecycle_environment(workspace: &Workspace, tests: &Built) -> Result<Environment> {
    let dist = dist::build_with(workspace, "x86_64", Firmware::None, tests.program(IMAGE_BUILDER)?)?;
    let image =
        instance_image::cached(workspace, instance_image::TESTED_MEBIBYTES, System::Cloud, Content::USUAL)?;
    // The tutorial builds it again, in a network of its own that leads nowhere.
    instance_image::cached(workspace, instance_image::DEFAULT_MEBIBYTES, System::Server, Content::USUAL)?;
    Ok(vec![
        ("FARRIER_BIN", tests.program(CONDUCTOR)?.display().to_string()),
        ("FARRIER_DIST", dist.folder.display().to_string()),
        ("FARRIER_BOOT_LOADERS", dist.boot_loaders.display().to_string()),
        ("FARRIER_DIST_PYTHON_AGENT", python_ramdisk::cached(workspace)?.display().to_string()),
        ("FARRIER_IMAGE", image.path.display().to_string()),
        ("FARRIER_IMAGE_SHA256", image.sha256),
        ("FARRIER_REDFISH", ironic_environment::cached_bmc(workspace)?.display().to_string()),
    ])
}

/// Where tests find the ramdisk, a BMC and Ironic, for each version of Ironic.
fn ironic_environments(workspace: &Workspace, tests: &Built) -> Result<Vec<Environment>> {
    let builder = tests.program(IMAGE_BUILDER)?;
    let built = dist::build_with(workspace, "x86_64", Firmware::None, builder)?;
    let (dist, modules) = (built.folder.display().to_string(), built.modules.display().to_string());
    let builder = builder.display().to_string();
    let with_python = python_manager::ramdisk(workspace, &built)?.display().to_string();
    let image =
        instance_image::cached(workspace, instance_image::TESTED_MEBIBYTES, System::Cloud, Content::USUAL)?;
    let bmc = ironic_environment::cached_bmc(workspace)?.display().to_string();
    let ironics = ironic_environment::cached(workspace)?;
    let environment = |ironic: &IronicEnvironment| {
        vec![
            ("FARRIER_DIST", dist.clone()),
            ("FARRIER_DIST_PYTHON", with_python.clone()),
            ("FARRIER_MODULES", modules.clone()),
            ("FARRIER_IMAGE_BUILDER", builder.clone()),
            ("FARRIER_PROGRAMS", built.programs.display().to_string()),
            ("FARRIER_MODULE_CACHE", dist::module_cache(workspace).display().to_string()),
            ("FARRIER_IMAGE", image.path.display().to_string()),
            ("FARRIER_IMAGE_SHA256", image.sha256.clone()),
            ("FARRIER_REDFISH", bmc.clone()),
            ("FARRIER_IRONIC", ironic.folder.display().to_string()),
        ]
    };
    Ok(ironics.iter().map(environment).collect())
}

/// Where tests find the ramdisk and the Ironic that writes to it.
fn ironic_iscsi_environment(workspace: &Workspace, tests: &Built) -> Result<Environment> {
    let dist = dist::build_with(workspace, "x86_64", Firmware::None, tests.program(IMAGE_BUILDER)?)?;
    let ironic = ironic_environment::cached_with_iscsi(workspace)?;
    Ok(vec![
        ("FARRIER_DIST", dist.folder.display().to_string()),
        ("FARRIER_IRONIC_WITH_ISCSI", ironic.display().to_string()),
    ])
}

/// Where tests find the ramdisk that boots on aarch64. Sizes and memory are tested with the other one.
fn aarch64_environment(workspace: &Workspace, tests: &Built) -> Result<Environment> {
    let builder = tests.program(IMAGE_BUILDER)?;
    let dist = dist::build_quickly(workspace, "aarch64", builder)?;
    Ok(vec![
        ("FARRIER_DIST", dist.folder.display().to_string()),
        ("FARRIER_BOOT_LOADERS", dist.boot_loaders.display().to_string()),
        ("FARRIER_IMAGE_BUILDER", builder.display().to_string()),
    ])
}

/// Where tests with virtual machines find what they boot and deploy: the ramdisk that ships.
fn machine_environment(
    workspace: &Workspace,
    tests: &Built,
    [image, partition]: &[InstanceImage; 2],
) -> Result<Environment> {
    let builder = tests.program(IMAGE_BUILDER)?;
    let dist = dist::build_with(workspace, "x86_64", Firmware::Common, builder)?;
    let unpacked_kernel = workspace.cache().join("vmlinux");
    unpacked_kernel::write(&dist.folder.join("vmlinuz"), &unpacked_kernel)?;
    let unpacked_ramdisk = workspace.cache().join("initramfs.cpio");
    unpack(&dist.folder.join("initramfs.img"), &unpacked_ramdisk)?;
    Ok(vec![
        ("FARRIER_DIST", dist.folder.display().to_string()),
        ("FARRIER_UNPACKED_KERNEL", unpacked_kernel.display().to_string()),
        ("FARRIER_UNPACKED_RAMDISK", unpacked_ramdisk.display().to_string()),
        ("FARRIER_MODULES", dist.modules.display().to_string()),
        ("FARRIER_BOOT_LOADERS", dist.boot_loaders.display().to_string()),
        ("FARRIER_PROGRAMS", dist.programs.display().to_string()),
        ("FARRIER_MODULE_CACHE", dist::module_cache(workspace).display().to_string()),
        ("FARRIER_IMAGE_BUILDER", builder.display().to_string()),
        ("FARRIER_IMAGE", image.path.display().to_string()),
        ("FARRIER_IMAGE_SHA256", image.sha256.clone()),
        ("FARRIER_PARTITION_IMAGE", partition.path.display().to_string()),
        ("FARRIER_PARTITION_IMAGE_SHA256", partition.sha256.clone()),
        ("FARRIER_BIN", tests.program(CONDUCTOR)?.display().to_string()),
    ])
}

/// Writes what a gzip file holds to another file.
fn unpack(packed: &Path, file: &Path) -> Result<()> {
    let unpack = || {
        let mut content = MultiGzDecoder::new(BufReader::new(File::open(packed)?));
        io::copy(&mut content, &mut File::create(file)?)
    };
    unpack().with_context(|| format!("cannot unpack {} to {}", packed.display(), file.display()))?;
    Ok(())
}

/// What the ramdisk is made of, the images to deploy, and schemathesis.
fn fetched(workspace: &Workspace) -> Result<Begun> {
    dist::fetch(workspace, "x86_64")?;
    let image =
        |content| instance_image::cached(workspace, instance_image::TESTED_MEBIBYTES, System::Cloud, content);
    let images = [image(Content::USUAL)?, image(Content::Partition)?];
    Ok(Begun::Machines { images, schemathesis: python_environment::schemathesis(workspace)? })
}
