//! The one table of routes.

use crate::route::Route;
use crate::{channel, documents, openapi, socket, status, stream, whoami};

/// The rows by the noun they are about.
const TABLES: &[&[Route]] = &[
    channel::ROUTES,
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
