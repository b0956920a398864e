//! LOOKUP: documents below a directory by tag and title.

use documents::{Lookup, LookupRequest, Resolved};
use wire::{Metadata, Status};

use super::{Answer, Ask, Handler, bad_request, not_found, response, unread};

impl Handler {
    pub(super) fn lookup(&self, ask: &Ask) -> Answer {
        let scope = match self.store.resolve(&ask.path) {
            Resolved::Directory(scope) => scope,
            Resolved::ContentAddress(_) => return Err(not_found(&ask.spelled)),
            Resolved::Document(path) | Resolved::Nothing(path) | Resolved::Version(path, _) => {
                self.may_read(ask, &path)?;
                return Err(not_found(&ask.spelled));
            }
        };
        self.may_read(ask, &scope)?;
        let keys = &ask.request.metadata;
        let lookup = Lookup::parse(LookupRequest {
            query: keys.get("query").unwrap_or_default(),
            filter: keys.get("filter"),
            limit: keys.get("limit"),
            mode: keys.get("match"),
        })
        .map_err(|fault| bad_request(&fault.to_string()))?;
        let can_read = self.can_read(ask);
        let matches = self
            .store
            .lookup(&lookup, &scope, &can_read)
            .map_err(|fault| unread(ask, fault))?;
        let table = matches.table(&lookup, &scope);
        let mut metadata = Metadata::new();
        metadata.set("matches", table.rows.to_string());
        if keys.get("match").is_some() {
            // Bodies aren't searched; the answer says what was.
            metadata.set("match", "catalog");
        }
        Ok(response(Status::Ok, metadata, table.text))
    }
}
