//! The pages of the book.

use crate::commands::{Command, Kind, Parameter};
use crate::extensions::EXTENSIONS;
use crate::inspection::COLLECTORS;
use crate::settings::options;
use crate::steps::managers;
use farrier_hardware::manager::StepDeclaration;
use farrier_protocol::step::Phase;

/// First lines of a page.
fn page(title: &str, introduction: &str) -> String {
    format!("# {title}\n\n{introduction}\n")
}

/// A table; cells are escaped, and empty ones are a dash.
fn table<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let line = |cells: &[String; N]| {
        let cells = cells.each_ref().map(|cell| {
            let cell = cell.trim().replace('|', "\\|").replace('\n', " ");
            if cell.is_empty() { "–".to_owned() } else { cell }
        });
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = format!("|{}\n", " --- |".repeat(N));
    let rows: String = rows.into_iter().map(|row| line(&row)).collect();
    format!("\n{}{rule}{rows}", line(&head.map(str::to_owned)))
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

pub fn options() -> String {
    let introduction = "An option is set by its flag (`--name value`), in its section of a config file \
                        (`name = value`) or by its kernel parameter. Flags override config files, and config \
                        files override the kernel line. Only options of `[DEFAULT]` are flags.";
    let mut sections: Vec<&str> = options::specs().map(|spec| spec.section).collect();
    sections.dedup();
    let mut text = page("Options of the agent", introduction);
    for section in sections.iter().enumerate().filter(|(i, one)| !sections[..*i].contains(one)) {
        text += &options_of(section.1);
    }
    text
}

fn options_of(section: &str) -> String {
    let rows = options::specs().filter(|spec| spec.section == section).map(|spec| {
        [
            code(spec.name),
            code(spec.kernel_parameter.unwrap_or_default()),
            code(&(spec.default)()),
            spec.kind.to_owned(),
            spec.help.to_owned(),
        ]
    });
    let head = ["option", "kernel parameter", "default", "value", "description"];
    format!("\n## `[{section}]`\n{}", table(head, rows))
}

pub fn commands() -> String {
    let introduction = "A conductor sends commands with `POST /v1/commands/`. A synchronous command returns its result. An \
                        asynchronous one returns at once; `GET /v1/commands/` has its result. \
                        [openapi.json](../../openapi.json) describes the same for programs.";
    let mut text = page("Commands of the agent", introduction);
    for (extension, commands) in EXTENSIONS {
        for command in *commands {
            text += &describe(extension, command);
        }
    }
    text
}

fn describe(extension: &str, command: &Command) -> String {
    let kind = match command.kind {
        Kind::Sync => "Synchronous",
        Kind::Async => "Asynchronous",
    };
    let head = format!("\n## `{extension}.{}`\n\n{}. {kind}.\n", command.name, command.help);
    if command.parameters.is_empty() {
        return head;
    }
    let row = |parameter: &Parameter| {
        let types = if parameter.types.is_empty() { "any".to_owned() } else { parameter.type_names() };
        [code(parameter.name), types, yes(parameter.required), parameter.help.to_owned()]
    };
    head + &table(["parameter", "type", "required", "purpose"], command.parameters.iter().map(row))
}

pub fn steps() -> String {
    let introduction = "Steps of the built-in hardware managers. A number is the priority in an automatic run, highest first; \
                        a step with 0 runs only on request.";
    let managers = managers::declared();
    let managers = managers.iter().filter(|manager| !manager.steps().is_empty());
    let parts = managers.map(|manager| steps_of(manager.class_name(), manager.steps()));
    page("Steps", introduction) + &parts.collect::<String>()
}

fn steps_of(class_name: &str, steps: &[StepDeclaration]) -> String {
    let place = |step: &StepDeclaration, phase| {
        step.priority(phase).map_or(String::new(), |priority| priority.to_string())
    };
    let rows = steps.iter().map(|step| {
        [
            code(step.step),
            step.interface.to_owned(),
            place(step, Phase::Clean),
            place(step, Phase::Deploy),
            place(step, Phase::Service),
            abortable(step),
            yes(step.reboot_requested),
        ]
    });
    let head = ["step", "interface", "clean", "deploy", "service", "abortable", "reboots"];
    let mut text = format!("\n## `{class_name}`\n{}", table(head, rows));
    for step in steps.iter().filter(|step| !step.arguments.is_empty()) {
        text += &format!("\n### Arguments of `{}`\n", step.step);
        let rows = step.arguments.iter();
        let rows = rows.map(|one| [code(one.name), yes(one.required), one.description.to_owned()]);
        text += &table(["argument", "required", "purpose"], rows);
    }
    text
}

/// Whether, or else in which of its phases.
fn abortable(step: &StepDeclaration) -> String {
    let phases = step.priorities.iter().map(|(phase, _)| phase);
    let abortable: Vec<_> = phases.filter(|phase| step.abortable.contains(phase)).collect();
    match abortable.len() {
        0 => yes(false),
        all if all == step.priorities.len() => yes(true),
        _ => abortable.iter().map(|phase| phase.name()).collect::<Vec<_>>().join(", "),
    }
}

pub fn collectors() -> String {
    let introduction = "An inspection runs the collectors in `ipa-inspection-collectors`, in this order. A collector that fails \
                        adds its error to the data; the others still run.";
    let rows = COLLECTORS.iter().map(|collector| {
        let keys: Vec<_> = collector.keys.iter().map(|key| code(key)).collect();
        [code(collector.name), keys.join(", "), collector.help.to_owned()]
    });
    page("Collectors", introduction) + &table(["collector", "keys it adds", "contents"], rows)
}

fn yes(is_so: bool) -> String {
    if is_so { "yes" } else { "no" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_cannot_break_a_table() {
        let text = table(
            ["a", "b"],
            [["x | y".to_owned(), " two\nlines ".to_owned()], [String::new(), "z".to_owned()]],
        );
        assert_eq!(text, "\n| a | b |\n| --- | --- |\n| x \\| y | two lines |\n| – | z |\n");
    }

    #[test]
    fn everything_declared_is_on_a_page_with_its_help() {
        let page = commands();
        for (extension, commands) in EXTENSIONS {
            for command in *commands {
                assert!(page.contains(&format!("`{extension}.{}`", command.name)));
                assert!(!command.help.is_empty(), "{}", command.name);
                assert!(command.parameters.iter().all(|one| !one.help.is_empty()), "{}", command.name);
            }
        }
        assert!(COLLECTORS.iter().all(|one| !one.help.is_empty() && !one.keys.is_empty()));
        assert!(options::specs().all(|one| !one.help.trim().is_empty()));
    }
}
