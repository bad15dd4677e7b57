//! The codes of the errors of `farrier-image`.

use crate::error_codes;

error_codes! {
    /// Errors of a build.
    BUILD_ERRORS:
    INPUT = 1001, "An input of the build cannot be read.", "Check the path that the text names, and its permissions.";
    OUTPUT = 1002, "An output of the build, or the summary, cannot be written.",
        "Free space, check the permissions, or choose another `--output`.";
    MODULES = 1003, "The folder of modules does not belong to a kernel, or is incomplete.",
        "Give `/lib/modules/RELEASE` of a whole kernel package as `--modules`.";
    PROGRAM = 1004, "An executable cannot run in the ramdisk.", "Reinstall it, or link it statically.";
    MISSING_MODULE = 1005, "The kernel does not have a module that the ramdisk needs or a user requested.",
        "Use a kernel package with drivers for servers, or correct the name of the module.";
    KERNEL = 1006, "The file is not a kernel for x86_64 or aarch64.", "Give `/boot/vmlinuz-RELEASE` as `--kernel`.";
    ARCHITECTURE = 1007, "Two inputs are for different architectures.", "Give files of one architecture.";
    BOOT_LOADER = 1008, "A boot loader is not installed, or does not exist for the architecture.",
        "Install the package that the text names, or choose another `--format`.";
    CONTENT = 1009, "An input file does not have the expected content.", "Give another file.";
    LIBRARY = 1010, "A program needs a library that is not installed.",
        "Install the library, or link the program statically.";
    RAMDISK_LIMIT = 1011, "A file is too large for the format of the ramdisk.", "Leave the file out.";
    KERNEL_PACKAGE = 1012, "The kernel package cannot be used.", "Give another package.";
    FIRMWARE = 1013, "No module needs the firmware that was requested, or it is not installed.",
        "Unpack the firmware packages, and give their folder as `--firmware-root`.";
    SIGNING = 1014, "The key, the certificate or the file cannot be used to sign.",
        "Give another `--signing-key` or `--signing-certificate`, or reinstall systemd-boot-efi.";
    NO_BUILD = 1015, "The folder does not have a finished build.", "Run `farrier-image build` first.";
    FOREIGN_PROGRAM = 1016, "A helper program is of an unknown or of another package.",
        "Install the package that the text names, or give another `--programs-root`.";
    MISSING_PROGRAM = 1017, "A helper program is not installed on the build machine.",
        "Install the package that the text names.";
    INVALID_OPTION = 1018, "An option or an argument of `farrier-image` is not valid.",
        "Correct the value that the text names; see `farrier-image COMMAND --help`.";
}
