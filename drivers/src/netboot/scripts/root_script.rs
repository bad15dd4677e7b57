//! What every machine of a loader reads first, before it knows whose it is: `boot.ipxe`, which asks for the script of each
//! network card after the other, and GRUB's `grub.cfg`, which asks by the address of the card that booted (sections 6.4, 6.5 and
//! 7.4).
//!
//! It is the same for all machines and all conductors. A card without a script (404) is skipped.

use super::templates::{LOCAL_DISK, Template, TemplateError, Templates};
use minijinja::context;

/// Where iPXE finds the scripts of its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scripts<'a> {
    /// By the boot configuration API below this URL (`[pxe]ipxe_config_api_root_url`); below the server that the script
    /// itself came from, when there is none.
    Api(Option<&'a str>),
    /// As files below `pxelinux.cfg`, beside the script itself.
    Files,
}

/// Renders `boot.ipxe`. A machine whose cards have no scripts continues with the script `fallback`, where there is one
/// (`[pxe]ipxe_fallback_script`): a URL, or a name below the server that `boot.ipxe` itself came from.
///
/// # Errors
///
/// [`TemplateError`] of an operator's own template.
pub fn ipxe(
    templates: &Templates,
    scripts: Scripts<'_>,
    fallback: Option<&str>,
) -> Result<String, TemplateError> {
    let values = match scripts {
        Scripts::Api(url) => {
            let root = url.map(|url| format!("{}/", url.trim_end_matches('/'))).unwrap_or_default();
            context! { root, folder => "v1/boot/", script => "/boot.ipxe", fallback }
        }
        Scripts::Files => context! { root => "", folder => "pxelinux.cfg/", script => "", fallback },
    };
    templates.render(Template::RootScript, values)
}

/// Renders `grub.cfg`.
///
/// # Errors
///
/// [`TemplateError`] of an operator's own template.
pub fn grub(templates: &Templates) -> Result<String, TemplateError> {
    templates.render(Template::GrubRoot, context! { local_disk => LOCAL_DISK })
}

/// What PXELINUX reads of a machine that has no configuration of its own.
pub const PXELINUX_DEFAULT: &str = "pxelinux.cfg/default";

/// Lists of modules, which every GRUB asks for beside its configuration. They are empty: what it needs is in it. But they
/// are there, since GRUB 2.06 waits for half a minute by HTTP for each one that is not.
pub const GRUB_LISTS: [&str; 8] = [
    "grub/x86_64-efi/command.lst",
    "grub/x86_64-efi/fs.lst",
    "grub/x86_64-efi/crypto.lst",
    "grub/x86_64-efi/terminal.lst",
    "grub/arm64-efi/command.lst",
    "grub/arm64-efi/fs.lst",
    "grub/arm64-efi/crypto.lst",
    "grub/arm64-efi/terminal.lst",
];

/// What is in each of them: a file without a byte would be none.
pub const GRUB_LIST: &str = "\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netboot::names::Name;

    #[test]
    fn c06_every_card_is_asked_for_and_nothing_that_comes_back_is_a_success() {
        let templates = Templates::load(None).unwrap();
        let card = "${net${card}/mac:hexhyp}";
        for (scripts, place) in [
            (Scripts::Api(None), format!("v1/boot/{card}/boot.ipxe")),
            (
                Scripts::Api(Some("http://192.0.2.5:6385/")),
                format!("http://192.0.2.5:6385/v1/boot/{card}/boot.ipxe"),
            ),
            (Scripts::Files, format!("pxelinux.cfg/{card}")),
        ] {
            let script = ipxe(&templates, scripts, None).unwrap();
            assert!(script.starts_with("#!ipxe\n"), "{script}");
            assert!(script.contains(&format!("chain --autofree {place} && exit 1")), "{script}");
            assert!(!script.contains("exit 0") && !script.contains("has a script"), "{script}");
        }
    }

    #[test]
    fn a_machine_without_a_script_goes_on_with_the_fallback_script_where_there_is_one() {
        let templates = Templates::load(None).unwrap();
        let script = ipxe(&templates, Scripts::Api(None), Some("inspector.ipxe")).unwrap();
        let (_, none) = script.split_once("\n:none\n").unwrap();
        let lines: Vec<_> = none.lines().collect();
        assert!(lines.contains(&"chain --autofree inspector.ipxe && exit 1 ||"), "{script}");
        assert_eq!(lines.last(), Some(&"exit 1"), "{script}");
    }

    #[test]
    fn grub_is_sent_on_to_names_that_there_are() {
        let script = grub(&Templates::load(None).unwrap()).unwrap();
        let sent = script.lines().filter_map(|line| line.strip_prefix("configfile "));
        let values = [("${net_default_mac}", "52:54:00:00:00:01"), ("${net_default_ip}", "192.0.2.17")];
        let names: Vec<_> = sent
            .map(|name| values.iter().fold(name.to_owned(), |name, (key, value)| name.replace(key, value)))
            .collect();
        assert_eq!(names.len(), 2, "{script}");
        assert!(script.contains(LOCAL_DISK), "c06: the end of GRUB is a success for UEFI: {script}");
        assert!(names.iter().all(|name| Name::parse(name).is_some()), "{names:?}");
    }
}
