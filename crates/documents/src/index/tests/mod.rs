//! The index by example, and against a model that knows nothing of trees.

mod examples;
mod model;
