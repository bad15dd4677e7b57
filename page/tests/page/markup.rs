//! What every page keeps to: it has nothing that a strict policy refuses, and what a reader of screens needs.

/// The attributes of each element of a name.
pub fn elements<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let parts = html.split('<').skip(1).filter_map(|part| part.strip_prefix(name));
    let parts = parts.filter(|rest| rest.starts_with([' ', '>']));
    parts.map(|rest| rest.split('>').next().unwrap()).collect()
}

/// The value of an attribute, as the browser reads it.
pub fn attribute(element: &str, name: &str) -> Option<String> {
    let (_, rest) = element.split_once(&format!(" {name}=\""))?;
    let value = rest.split('"').next()?;
    Some(value.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&"))
}

/// The text of a page as it is read aloud.
pub fn text(html: &str) -> String {
    let parts = html.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text));
    parts
        .collect::<String>()
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&amp;", "&")
}

/// Refuses a page that does not keep to it.
pub fn check(path: &str, html: &str) {
    assert!(html.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{path}: {html}");
    for script in html.split("<script").skip(1) {
        let (head, rest) = script.split_once('>').unwrap();
        assert!(attribute(head, "src").is_some_and(|path| path.starts_with("/page/")), "{path}: {head}");
        assert!(rest.starts_with("</script>"), "{path} has a script within: {rest}");
    }
    for name in ["style", "iframe", "object", "img"] {
        assert!(elements(html, name).is_empty(), "{path} has <{name}>: {html}");
    }
    let tags: Vec<_> = html.split('<').skip(1).filter_map(|part| part.split('>').next()).collect();
    for tag in &tags {
        let names = tag.split('"').step_by(2).flat_map(str::split_whitespace).skip(1);
        for name in names.map(|name| name.trim_end_matches('=')) {
            assert!(!name.starts_with("on") && name != "style", "{path}: <{tag}>");
        }
    }
    assert_eq!(elements(html, "h1").len(), 1, "{path}: {html}");
    assert_eq!(elements(html, "main").len(), 1, "{path}");
    for head in elements(html, "th") {
        assert!(attribute(head, "scope").is_some(), "{path}: <th{head}>");
    }
    assert_eq!(elements(html, "table").len(), elements(html, "caption").len(), "{path}");
    let labels: Vec<_> = elements(html, "label").iter().filter_map(|label| attribute(label, "for")).collect();
    for field in [elements(html, "input"), elements(html, "select")].concat() {
        let is_hidden = attribute(field, "type").as_deref() == Some("hidden");
        let id = attribute(field, "id").unwrap_or_default();
        let is_named = attribute(field, "aria-label").is_some() || labels.contains(&id);
        assert!(is_hidden || is_named, "{path}: <input{field}> has no label");
    }
    let mut ids: Vec<_> = tags.iter().filter_map(|tag| attribute(tag, "id")).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "{path} has an id twice: {html}");
}
