//! Typed HTTP clients of Assay's own services.
