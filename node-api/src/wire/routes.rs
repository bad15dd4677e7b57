//! Where paths are: with and without the version before them, and with and without a slash at their end, as Ironic has
//! them (section 8.1).

use super::asked::Asked;
use super::reply::Refusal;
use axum::Router;
use axum::routing::MethodRouter;

/// Serves each of these paths under all of its spellings.
pub(crate) fn everywhere<S: Clone + Send + Sync + 'static>(
    routes: impl IntoIterator<Item = (&'static str, MethodRouter<S>)>,
) -> Router<S> {
    routes.into_iter().fold(Router::new(), |router, (path, methods)| {
        spellings(path).fold(router, |router, path| router.route(&path, methods.clone()))
    })
}

/// The methods of a part of nodes that there is from a version on: before, nothing is found, also by any other method.
pub(crate) fn part<S: Clone + Send + Sync + 'static>(
    since: u16,
    methods: MethodRouter<S>,
) -> MethodRouter<S> {
    methods.fallback(move |asked: Asked| async move {
        asked.part_since(since)?;
        Err::<(), _>(Refusal::wrong_method())
    })
}

fn spellings(path: &str) -> impl Iterator<Item = String> {
    let prefixes = ["", "/v1"].into_iter();
    prefixes.flat_map(move |prefix| ["", "/"].into_iter().map(move |end| format!("{prefix}{path}{end}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_four_spellings() {
        let all: Vec<_> = spellings("/nodes/{node}").collect();
        assert_eq!(all, ["/nodes/{node}", "/nodes/{node}/", "/v1/nodes/{node}", "/v1/nodes/{node}/"]);
    }
}
