//! What boot loaders on the network read.

/// The script of iPXE. Names are relative to its own URL.
pub fn ipxe_script(command_line: &str) -> String {
    format!(
        "#!ipxe\nkernel vmlinuz initrd=initramfs.img {command_line} || goto failed\n\
         initrd initramfs.img || goto failed\nboot || goto failed\n\
         :failed\necho Farrier cannot be loaded, trying again in 30 s\nsleep 30\nchain boot.ipxe\n"
    )
}
