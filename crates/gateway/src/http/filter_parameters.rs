//! The filters of evaluations as query parameters in the OpenAPI document.

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::{RefOr, Required, Schema};
use utoipa::{IntoParams, PartialSchema};

use assay_contracts::evaluations::EvaluationFilters;

/// Every filter, from the schema of `filters` in exports. Without examples: the API reference would fill them in, and send all of
/// them with each request that is tried out.
pub(crate) struct FilterParameters;

impl IntoParams for FilterParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let RefOr::T(Schema::Object(filters)) = EvaluationFilters::schema() else { return Vec::new() };
        let parameter = |(name, schema): (&String, &RefOr<Schema>)| {
            let description = match schema {
                RefOr::T(Schema::Object(object)) => object.description.clone(),
                RefOr::T(Schema::Array(array)) => array.description.clone(),
                _ => None,
            };
            ParameterBuilder::new()
                .name(name)
                .parameter_in(ParameterIn::Query)
                .required(Required::False)
                .description(description)
                .schema(Some(schema.clone()))
                .build()
        };
        filters.properties.iter().map(parameter).collect()
    }
}
