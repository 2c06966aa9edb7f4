//! Filters in the body of a request: the fields have the names of the query's parameters, several values are an array.

use super::filters::{EvaluationFilters, FILTER_NAMES};
use super::query::QueryReader;
use crate::json::{ObjectReader, Tree, ValidationErrors};
use crate::time::Timestamp;

/// Reads the fields of an object as filters. A field with another name is an error, unlike in other objects, see
/// [`EvaluationFilters`].
pub fn read_filters(
    value: Tree<'_>,
    pointer: &str,
    errors: &mut ValidationErrors,
) -> Option<EvaluationFilters> {
    let mut object = ObjectReader::new(value, pointer, errors)?;
    let mut pairs = Vec::new();
    for name in FILTER_NAMES {
        let Some(field) = object.take(name) else { continue };
        // A JSON number may have any notation (1.7e12); the query reader accepts digits only.
        if name == "from" || name == "to" {
            let (min, max) = (Timestamp::MIN.as_millis(), Timestamp::MAX.as_millis());
            pairs.extend(object.integer(name, &field, min, max).map(|millis| (name, millis.to_string())));
            continue;
        }
        let values = match field {
            Tree::Array(values) => values,
            single => vec![single],
        };
        for value in values {
            match value {
                Tree::String(text) => pairs.push((name, text.into_owned())),
                Tree::Number(number) => pairs.push((name, number.to_string())),
                other => object.add_error(
                    name,
                    format!("must be text, a number or an array of them, not {}", other.kind()),
                ),
            }
        }
    }
    object.refuse_unknown(&FILTER_NAMES, "is not a filter");
    let mut query = QueryReader::new(pairs);
    let filters = EvaluationFilters::read(&mut query);
    match query.finish(filters) {
        Ok(filters) => Some(filters),
        Err(errors) => {
            for error in errors {
                object.add_error(&error.pointer, error.detail);
            }
            None
        }
    }
}
