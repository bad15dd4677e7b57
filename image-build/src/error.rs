//! What can go wrong while a ramdisk is built.

use std::io;
use std::path::{Path, PathBuf};

use farrier_protocol::error_code::{ErrorCode, image_build as codes};

use crate::role::Role;

/// A ramdisk could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// An input file or folder cannot be read.
    #[error("cannot read {}: {source}; check the path and its permissions", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An output cannot be written.
    #[error("cannot write {}: {source}; check free space and permissions, or choose another --output", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The modules folder does not end in the kernel's release.
    #[error("{} does not end in a kernel release; give /lib/modules/<release> as --modules", path.display())]
    NoRelease {
        /// The folder given.
        path: PathBuf,
    },
    /// The modules folder has no modules.
    #[error("{} holds no kernel modules; unpack the kernel package that belongs to --kernel there", path.display())]
    NoModules {
        /// The folder given.
        path: PathBuf,
    },
    /// A file that should be an ELF object is not.
    #[error("{} is not a usable ELF file ({reason}); rebuild or reinstall it", path.display())]
    Elf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// An executable needs a dynamic loader, which the ramdisk does not have.
    #[error("{} is linked dynamically and cannot run in the ramdisk; {remedy}", path.display())]
    Dynamic {
        /// The executable.
        path: PathBuf,
        /// How to get a static one.
        remedy: String,
    },
    /// The kernel has no driver without which no machine can be deployed.
    #[error(
        "kernel {release} has no module {module} and does not have it built in; \
         take a kernel package with drivers for servers, such as linux-image-amd64"
    )]
    RequiredModule {
        /// Name of the module.
        module: String,
        /// Release of the kernel.
        release: String,
    },
    /// A module that was asked for does not exist.
    #[error(
        "kernel {release} has no module {module} and does not have it built in; see the names below --modules"
    )]
    ExtraModule {
        /// Name of the module.
        module: String,
        /// Release of the kernel.
        release: String,
    },
    /// A file is no kernel.
    #[error("{} is no kernel for x86_64 or aarch64; give /boot/vmlinuz-<release> as --kernel", path.display())]
    Kernel {
        /// The file.
        path: PathBuf,
    },
    /// Two inputs are for different architectures.
    #[error("{} is for {found}, but {} is for {wanted}; give files of one architecture", path.display(), other.display())]
    Architecture {
        /// The file that differs.
        path: PathBuf,
        /// Its architecture.
        found: &'static str,
        /// The file it differs from.
        other: PathBuf,
        /// That one's architecture.
        wanted: &'static str,
    },
    /// A boot loader's package is not there.
    #[error("there is no {}; install or unpack the package {package}, or give its folder as --boot-loaders", path.display())]
    BootLoader {
        /// Where it was looked for.
        path: PathBuf,
        /// Debian package that has it.
        package: &'static str,
    },
    /// There is no such boot loader for the architecture.
    #[error("{role:?} does not exist for {architecture}; choose another --format")]
    NoBootLoader {
        /// What was looked for.
        role: Role,
        /// For which architecture.
        architecture: &'static str,
    },
    /// The stub of unified kernel images cannot be used.
    #[error("{} cannot be the head of a unified kernel image ({reason}); reinstall the package systemd-boot-efi", path.display())]
    Stub {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file does not hold what it should.
    #[error("{} is not {expected}; give another file", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What was expected.
        expected: &'static str,
    },
    /// A library of a program is missing.
    #[error("{} needs the library {library}, which is not below {}; install it there, or link the program statically", program.display(), root.display())]
    Library {
        /// The program, or another library.
        program: PathBuf,
        /// The missing library.
        library: String,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// The ramdisk's format has no room for a file.
    #[error("the ramdisk cannot be packed: {reason}; leave the file out")]
    TooLarge {
        /// The file and its limit.
        reason: String,
    },
    /// A kernel package cannot be used.
    #[error("{} cannot be used as kernel package: {reason}", path.display())]
    Package {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No firmware was found for a choice.
    #[error(
        "no module of the ramdisk asks for firmware of {choice} that is below {}; \
         unpack the firmware packages and give their lib/firmware as --firmware-root", root.display()
    )]
    Firmware {
        /// Whose firmware was chosen.
        choice: String,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// A private key or its certificate cannot be used.
    #[error("{} cannot be used to sign: {reason}; give another --signing-key or --signing-certificate", path.display())]
    SigningKey {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file to sign is not an EFI program.
    #[error("only 64-bit EFI programs can be signed; reinstall the package systemd-boot-efi")]
    Sign,
    /// The folder holds no finished build.
    #[error("{} does not describe a build ({reason}); run farrier-image build first", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A module that another one needs is missing.
    #[error("module {module} needs {dependency}, which is not below {}; unpack the whole kernel package", tree.display())]
    Dependency {
        /// The module that needs another.
        module: String,
        /// The missing one.
        dependency: String,
        /// Where it was looked for.
        tree: PathBuf,
    },
    /// A helper program comes from another package, which may do something else under its name.
    #[error("{} is of the package {found}, not of {wanted}; install {wanted}, or give a --programs-root that has it", path.display())]
    OtherPackage {
        /// The program.
        path: PathBuf,
        /// The package that owns it.
        found: String,
        /// The one that has what the ramdisk needs.
        wanted: &'static str,
    },
    /// The package of a helper program or its library is unknown.
    #[error("{} belongs to no package that dpkg knows below {}; give a --programs-root made by debootstrap, or remove what was put there by hand", path.display(), root.display())]
    Owner {
        /// The file.
        path: PathBuf,
        /// The root whose packages were asked.
        root: PathBuf,
    },
    /// A helper program is not on the build machine.
    #[error("{program} is not at {}; install the package {package}, or give another --programs-root", path.display())]
    Program {
        /// Name of the program.
        program: &'static str,
        /// Where it was looked for first.
        path: PathBuf,
        /// Debian package that has it.
        package: &'static str,
    },
}

impl BuildError {
    /// The code of the error.
    pub fn code(&self) -> &'static ErrorCode {
        match self {
            Self::Read { .. } => codes::INPUT,
            Self::Write { .. } => codes::OUTPUT,
            Self::NoRelease { .. } | Self::NoModules { .. } | Self::Dependency { .. } => codes::MODULES,
            Self::Elf { .. } | Self::Dynamic { .. } => codes::PROGRAM,
            Self::RequiredModule { .. } | Self::ExtraModule { .. } => codes::MISSING_MODULE,
            Self::Kernel { .. } => codes::KERNEL,
            Self::Architecture { .. } => codes::ARCHITECTURE,
            Self::BootLoader { .. } | Self::NoBootLoader { .. } => codes::BOOT_LOADER,
            Self::Content { .. } => codes::CONTENT,
            Self::Library { .. } => codes::LIBRARY,
            Self::TooLarge { .. } => codes::RAMDISK_LIMIT,
            Self::Package { .. } => codes::KERNEL_PACKAGE,
            Self::Firmware { .. } => codes::FIRMWARE,
            Self::Stub { .. } | Self::SigningKey { .. } | Self::Sign => codes::SIGNING,
            Self::Manifest { .. } => codes::NO_BUILD,
            Self::OtherPackage { .. } | Self::Owner { .. } => codes::FOREIGN_PROGRAM,
            Self::Program { .. } => codes::MISSING_PROGRAM,
        }
    }

    /// Names the path that could not be read.
    pub(crate) fn reading(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Read { path, source }
    }

    /// Names the path that could not be written.
    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }
}
