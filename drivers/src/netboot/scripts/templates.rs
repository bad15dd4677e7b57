//! What boot scripts look like: templates, as Ironic's in the language of Jinja.
//!
//! An operator replaces one by a file of its name in one folder, which `farrier serve` is started with; nothing that a
//! record holds chooses a template (S44). Values come in as types that hold nothing a boot loader interprets (S43). A
//! template that names a value which is not there fails, and so does one that does not end.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};
use std::path::{Path, PathBuf};

/// How many instructions a template may take. The built-in ones take a hundred.
const FUEL: u64 = 100_000;

/// The templates that there are, with those that are built in.
const BUILT_IN: [(Template, &str); 5] = [
    (Template::IpxeConfig, include_str!("ipxe_config.template")),
    (Template::PxeConfig, include_str!("pxe_config.template")),
    (Template::PxeGrubConfig, include_str!("pxe_grub_config.template")),
    (Template::RootScript, include_str!("boot.ipxe.template")),
    (Template::GrubRoot, include_str!("grub.cfg.template")),
];

/// The part of GRUB's script for the local disk, which the templates for GRUB have as `local_disk`.
pub(in crate::netboot) const LOCAL_DISK: &str = include_str!("local_disk.grub");

/// A template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// The script of a node for iPXE.
    IpxeConfig,
    /// The configuration of a node for PXELINUX.
    PxeConfig,
    /// The configuration of a node for GRUB.
    PxeGrubConfig,
    /// The script that every machine with iPXE is sent to first.
    RootScript,
    /// The configuration that every machine with GRUB reads first.
    GrubRoot,
}

impl Template {
    /// The name of its file.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::IpxeConfig => "ipxe_config.template",
            Self::PxeConfig => "pxe_config.template",
            Self::PxeGrubConfig => "pxe_grub_config.template",
            Self::RootScript => "boot.ipxe.template",
            Self::GrubRoot => "grub.cfg.template",
        }
    }
}

/// A template cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// Its file cannot be read.
    #[error("the boot template {file} cannot be read: {source}")]
    File {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no template, or does not render.
    #[error("the boot template {name}: {reason}; mend it, or remove it from the folder of templates")]
    Render {
        /// Its name.
        name: &'static str,
        /// What is wrong, and where.
        reason: String,
    },
}

/// The templates in use.
#[derive(Debug)]
pub struct Templates(Environment<'static>);

impl Templates {
    /// Those that are built in, but for those with a file of their name in `folder`.
    ///
    /// # Errors
    ///
    /// A file that is there cannot be read, or is no template.
    pub fn load(folder: Option<&Path>) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        let syntax = SyntaxConfig::builder().trim_blocks(true).keep_trailing_newline(true).build();
        environment.set_syntax(syntax.unwrap_or_default());
        for (template, built_in) in BUILT_IN {
            let name = template.file_name();
            let own = folder.map(|folder| folder.join(name)).filter(|file| file.exists());
            let text = match own {
                None => built_in.to_owned(),
                Some(file) => {
                    std::fs::read_to_string(&file).map_err(|source| TemplateError::File { file, source })?
                }
            };
            environment.add_template_owned(name, text).map_err(failed(name))?;
        }
        Ok(Self(environment))
    }

    /// The text of a template with these values.
    ///
    /// # Errors
    ///
    /// [`TemplateError::Render`].
    pub fn render(&self, template: Template, values: Value) -> Result<String, TemplateError> {
        let name = template.file_name();
        self.0.get_template(name).and_then(|template| template.render(values)).map_err(failed(name))
    }
}

fn failed(name: &'static str) -> impl Fn(minijinja::Error) -> TemplateError {
    move |error| TemplateError::Render { name, reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use minijinja::context;

    #[test]
    fn s44_an_operators_template_is_bounded_and_strict() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ipxe_config.template");
        for (text, expected) in [
            ("#!ipxe\nkernel {{ kernel }}\n", Ok("#!ipxe\nkernel http://h/k\n")),
            ("{% for n in range(10000) %}{% for m in range(10000) %}x{% endfor %}{% endfor %}", Err("fuel")),
            ("{{ password }}", Err("undefined")),
        ] {
            std::fs::write(&file, text).unwrap();
            let templates = Templates::load(Some(folder.path())).unwrap();
            let rendered = templates.render(Template::IpxeConfig, context! { kernel => "http://h/k" });
            match (expected, rendered.map_err(|error| error.to_string())) {
                (Ok(text), Ok(rendered)) => assert_eq!(rendered, text),
                (Err(part), Err(error)) => assert!(error.contains(part), "{error}"),
                (_, rendered) => panic!("{text}: {rendered:?}"),
            }
        }
        for text in ["{% if %}", "{% include '/etc/passwd' %}"] {
            std::fs::write(&file, text).unwrap();
            let error = Templates::load(Some(folder.path())).unwrap_err().to_string();
            assert!(error.contains("ipxe_config.template:1"), "{error}");
        }
    }
}
