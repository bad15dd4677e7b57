//! `boot.ipxe`, the script that DHCP sends every machine to: it asks for the script of each network card in turn
//! (sections 6.5 and 7.4).
//!
//! It is the same for all machines and all conductors. A card without a script of its own, told by a 404, is passed over.

use super::templates::{Template, TemplateError, Templates};
use minijinja::context;

/// Renders it, for machines that reach the boot configuration API below this URL; below the server that the script
/// itself came from, when there is none.
///
/// # Errors
///
/// [`TemplateError`] of an operator's own template.
pub fn render(templates: &Templates, api_root_url: Option<&str>) -> Result<String, TemplateError> {
    let root = api_root_url.map(|url| format!("{}/", url.trim_end_matches('/'))).unwrap_or_default();
    templates.render(Template::RootScript, context! { root })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_card_is_asked_for() {
        let templates = Templates::load(None).unwrap();
        for (root, server) in [(None, ""), (Some("http://192.0.2.5:6385/"), "http://192.0.2.5:6385/")] {
            let first =
                format!("chain --autofree {server}v1/boot/${{net${{card}}/mac:hexhyp}}/boot.ipxe && exit 0");
            let script = render(&templates, root).unwrap();
            assert!(script.starts_with("#!ipxe\n"), "{script}");
            assert!(script.contains(&first), "{script}");
        }
    }
}
