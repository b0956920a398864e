//! LIST and the listing that FETCH gives of a directory.
//!
//! The text of a page is the store's ([`documents::Listing`]); here are the keys around it.

use documents::{Detail, ListRequest, Listing, Resolved};
use wire::{DocPath, ListCursor, Metadata, Response, Status, limits};

use super::condition::copy_is_current;
use super::{Answer, Ask, Handler, bad_request, not_found, response, unread};

impl Handler {
    pub(super) fn list(&self, ask: &Ask) -> Answer {
        let dir = match self.store.resolve(&ask.path) {
            Resolved::ContentAddress(_) => return Err(not_found(&ask.spelled)),
            Resolved::Directory(dir) => dir,
            Resolved::Document(path) | Resolved::Nothing(path) | Resolved::Version(path, _) => {
                self.may_read(ask, &path)?;
                return Err(not_found(&ask.spelled));
            }
        };
        self.may_read(ask, &dir)?;
        let request = list_request(&ask.request.metadata, &dir)?;
        let detail = match ask.request.metadata.get("details") {
            Some("true") => Detail::Versions,
            _ => Detail::Names,
        };
        let listing = self.listing(ask, &dir, &request, detail)?;
        let mut metadata = Metadata::new();
        metadata
            .set("complete", listing.is_complete().to_string())
            .set("entries", listing.entries.to_string());
        if let Some(after) = listing.next {
            let include_archived = request.include_archived;
            let cursor = ListCursor {
                path: dir,
                include_archived,
                after,
            };
            metadata.set("next-cursor", cursor.encode());
        }
        Ok(response(Status::Ok, metadata, listing.text))
    }

    /// What FETCH gives of a directory that has no index.
    pub(super) fn directory_text(&self, ask: &Ask, dir: &DocPath) -> Answer {
        let request = ListRequest {
            page_size: limits::PAGE_ENTRIES_MAX,
            after: None,
            include_archived: false,
        };
        let listing = self.listing(ask, dir, &request, Detail::Names)?;
        let hash = listing.content_hash();
        if copy_is_current(&ask.request.metadata, &hash.hex(), None) {
            return Ok(response(Status::NotModified, Metadata::new(), ""));
        }
        let mut metadata = Metadata::new();
        metadata
            .set("content-hash", hash.to_string())
            .set("entries", listing.entries.to_string())
            .set("etag", hash.hex());
        Ok(response(Status::Ok, metadata, listing.text))
    }

    fn listing(
        &self,
        ask: &Ask,
        dir: &DocPath,
        request: &ListRequest,
        detail: Detail,
    ) -> Result<Listing, Response> {
        let can_read = self.can_read(ask);
        let page = self
            .store
            .list(dir, request, &can_read)
            .map_err(|fault| unread(ask, fault))?;
        Ok(Listing::new(dir, &page, detail))
    }
}

/// Reads the keys of a LIST.
fn list_request(keys: &Metadata, dir: &DocPath) -> Result<ListRequest, Response> {
    let page_size = page_size(keys)?;
    let include_archived = match keys.get("include-archived") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(bad_request("include-archived must be true or false")),
    };
    let cursor = keys
        .get("cursor")
        .map(|text| ListCursor::decode_for(text, dir, include_archived))
        .transpose()
        .map_err(|fault| bad_request(&fault.to_string()))?;
    Ok(ListRequest {
        page_size,
        after: cursor.map(|cursor| cursor.after),
        include_archived,
    })
}

/// Reads how many entries a page may have.
pub(super) fn page_size(keys: &Metadata) -> Result<usize, Response> {
    let Some(text) = keys.get("page-size") else {
        return Ok(limits::PAGE_ENTRIES_MAX);
    };
    text.parse()
        .ok()
        .filter(|size| (1..=limits::PAGE_ENTRIES_MAX).contains(size))
        .ok_or_else(|| bad_request("page-size must be between 1 and 1000"))
}
