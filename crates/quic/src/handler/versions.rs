//! VERSIONS: the history of a document, newest first, and whether its chain holds.

use documents::{Resolved, VersionsRequest};
use wire::{Metadata, Response, Status, limits};

use super::fetch::time;
use super::listing::page_size;
use super::{Answer, Ask, Handler, bad_request, not_found, response, unread};

impl Handler {
    pub(super) fn versions(&self, ask: &Ask) -> Answer {
        let path = match self.store.resolve(&ask.path) {
            Resolved::Document(path) => path,
            Resolved::ContentAddress(_) => return Err(not_found(&ask.spelled)),
            Resolved::Directory(path) | Resolved::Nothing(path) | Resolved::Version(path, _) => {
                self.may_read(ask, &path)?;
                return Err(not_found(&ask.spelled));
            }
        };
        self.may_read(ask, &path)?;
        let request = versions_request(&ask.request.metadata)?;
        let page = self
            .store
            .versions(&path, &request)
            .map_err(|fault| unread(ask, fault))?;
        let mut text = format!("\n# Version History: {path}\n\n");
        let link = segment(path.as_str());
        let mut last = None;
        for (version, modified, _) in &page.versions {
            let line = format!("- [v{version}]({link}/v{version}) - {}\n", time(*modified));
            if text.len() + line.len() > limits::PAGE_LEN_MAX {
                break;
            }
            text.push_str(&line);
            last = Some(*version);
        }
        let mut metadata = Metadata::new();
        metadata
            .set("chain-valid", page.chain_valid.to_string())
            .set("current", page.current.to_string())
            .set("total", page.total.to_string());
        if !page.chain_valid {
            metadata.set("chain-error", "chain integrity check failed");
        }
        let is_cut = last != page.versions.last().map(|(version, ..)| *version);
        if let Some(last) = last.filter(|_| is_cut || !page.complete) {
            metadata
                .set("complete", "false")
                .set("next-cursor", last.to_string());
        }
        Ok(response(Status::Ok, metadata, text))
    }
}

/// Reads the keys of a VERSIONS. The cursor is the last version of the page before.
fn versions_request(keys: &Metadata) -> Result<VersionsRequest, Response> {
    let before = keys.get("cursor").map(str::parse).transpose();
    Ok(VersionsRequest {
        page_size: page_size(keys)?,
        before: before.map_err(|_| bad_request("invalid VERSIONS cursor"))?,
    })
}

/// A whole path as one segment of a link, the way the original writes it.
fn segment(path: &str) -> String {
    use std::fmt::Write;
    let mut link = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~$&+:=@".contains(&byte) {
            link.push(char::from(byte));
        } else {
            // Writing to a string can't fail.
            let _ = write!(link, "%{byte:02X}");
        }
    }
    link
}
