//! The one place that decides which containers may run (S06).

use super::error::ContainerError;
use super::settings::{Settings, Words};

/// Beginnings of image names that say nothing.
const SCHEMES: &[&str] = &["docker://", "oci://"];

/// Name of an image, without a scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference(String);

/// A container that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Its image.
    pub image: &'a str,
    /// Options of `pull`, where they are given.
    pub pull_options: Option<&'a Words>,
    /// Options of `run`, where they are given.
    pub run_options: Option<&'a Words>,
    /// Who asks.
    pub origin: Origin,
}

/// Who asks for a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The operator's steps file, which is trusted.
    StepsFile,
    /// The arguments of a step.
    Arguments,
}

/// A container that may run, with these options and no others. Only [`permit`] makes one.
#[derive(Debug, PartialEq, Eq)]
pub struct Permitted {
    image: Reference,
    pull_options: Words,
    run_options: Words,
}

/// Decides about a container. Who may not choose the image may not choose options either: a mount or an
/// entry point would make an allowed image do anything.
///
/// # Errors
///
/// [`ContainerError::Image`] or [`ContainerError::NotPermitted`].
pub fn permit(settings: &Settings, request: Request<'_>) -> Result<Permitted, ContainerError> {
    let image = Reference::parse(request.image)?;
    let is_free = request.origin == Origin::StepsFile || settings.allow_arbitrary;
    if !is_free && !settings.allowed.iter().any(|allowed| without_scheme(allowed) == image.as_str()) {
        return Err(ContainerError::NotPermitted { image: request.image.to_owned() });
    }
    let choose = |given: Option<&Words>, configured: &Words, argument: &str| {
        if !is_free && given.is_some() {
            tracing::warn!(
                image = image.as_str(),
                "{argument} of the step ignored: only the image is allowed"
            );
        }
        given.filter(|_| is_free).unwrap_or(configured).clone()
    };
    let pull_options = choose(request.pull_options, &settings.pull_options, "pull_options");
    let run_options = choose(request.run_options, &settings.run_options, "run_options");
    Ok(Permitted { image, pull_options, run_options })
}

impl Permitted {
    /// The image.
    pub fn image(&self) -> &Reference {
        &self.image
    }

    /// Options of `pull`.
    pub fn pull_options(&self) -> &Words {
        &self.pull_options
    }

    /// Options of `run`.
    pub fn run_options(&self) -> &Words {
        &self.run_options
    }
}

impl Reference {
    /// Reads the name of an image.
    ///
    /// # Errors
    ///
    /// [`ContainerError::Image`] for what could be taken for an option, or for several words.
    pub fn parse(text: &str) -> Result<Self, ContainerError> {
        let name = without_scheme(text.trim());
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "._-/:@[]+".contains(letter);
        if name.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '[')
            && name.chars().all(allowed)
        {
            return Ok(Self(name.to_owned()));
        }
        Err(ContainerError::Image { image: text.to_owned() })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The registry it names.
    pub fn registry(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }
}

fn without_scheme(image: &str) -> &str {
    SCHEMES.iter().find_map(|scheme| image.strip_prefix(scheme)).unwrap_or(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALLOWED: &str = "registry.example/tools:1";

    fn settings(allow_arbitrary: bool, allowed: &[&str]) -> Settings {
        Settings {
            allow_arbitrary,
            allowed: allowed.iter().map(|one| (*one).to_owned()).collect(),
            pull_options: Words::parse("--quiet"),
            run_options: Words::parse("--rm"),
            ..Settings::default()
        }
    }

    fn ask(settings: &Settings, image: &str, origin: Origin) -> Result<Permitted, ContainerError> {
        let given = Words::parse("--privileged -v /:/host --entrypoint=/bin/sh");
        permit(settings, Request { image, pull_options: Some(&given), run_options: Some(&given), origin })
    }

    #[test]
    fn s06_only_what_the_operator_allows_is_permitted() {
        use Origin::{Arguments, StepsFile};
        for (arbitrary, allowed, image, origin, expected) in [
            (false, &[][..], ALLOWED, Arguments, false),
            (false, &[ALLOWED], ALLOWED, Arguments, true),
            (false, &[ALLOWED], "docker://registry.example/tools:1", Arguments, true),
            (false, &["oci://registry.example/tools:1"], ALLOWED, Arguments, true),
            (false, &[ALLOWED], "registry.example/tools:12", Arguments, false),
            (false, &[ALLOWED], "registry.example/tools", Arguments, false),
            (false, &["registry.example"], ALLOWED, Arguments, false),
            (true, &[], "registry.example/other", Arguments, true),
            (false, &[], "registry.example/other", StepsFile, true),
        ] {
            let outcome = ask(&settings(arbitrary, allowed), image, origin);
            assert_eq!(outcome.is_ok(), expected, "{arbitrary} {allowed:?} {image}: {outcome:?}");
        }
    }

    #[test]
    fn s06_who_may_not_choose_the_image_may_not_choose_its_options() {
        for (settings, origin, expected) in [
            (settings(false, &[ALLOWED]), Origin::Arguments, "--rm"),
            (settings(true, &[]), Origin::Arguments, "--privileged"),
            (settings(false, &[]), Origin::StepsFile, "--privileged"),
        ] {
            let permitted = ask(&settings, ALLOWED, origin).unwrap();
            assert_eq!(permitted.run_options().as_slice()[0], expected, "{origin:?}");
            let expected = if expected == "--rm" { "--quiet" } else { expected };
            assert_eq!(permitted.pull_options().as_slice()[0], expected, "{origin:?}");
        }
    }

    #[test]
    fn s06_an_image_cannot_be_an_option() {
        for bad in
            ["", "  ", "--privileged", "-v/:/host", "a b", "a\nb", "docker://", "docker://-x", "a;b", "$(x)"]
        {
            let error = ask(&settings(true, &[]), bad, Origin::Arguments).unwrap_err();
            assert!(matches!(error, ContainerError::Image { .. }), "{bad:?}: {error}");
        }
        for good in ["busybox", "localhost:5000/a/b_c:1.2", "[::1]:5000/a@sha256:0a"] {
            assert_eq!(Reference::parse(good).unwrap().as_str(), good);
        }
        assert_eq!(Reference::parse("oci://registry:5000/a/b").unwrap().registry(), "registry:5000");
    }
}
