//! The one table of routes.

use crate::route::Route;
use crate::{documents, openapi, socket, status, stream, whoami};

/// The rows by the noun they are about.
const TABLES: &[&[Route]] = &[
    documents::ROUTES,
    openapi::ROUTES,
    socket::ROUTES,
    status::ROUTES,
    stream::ROUTES,
    whoami::ROUTES,
];

/// Every row.
pub(crate) fn all() -> impl Iterator<Item = &'static Route> {
    TABLES.iter().copied().flatten()
}
