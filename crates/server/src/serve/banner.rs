//! What the terminal shows once the server runs: what to open and what to type next.

use std::fmt::Write;
use std::net::SocketAddr;

use auth::Authority;

use super::access::Access;
use crate::config::Settings;

/// Where the server listens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) mark: SocketAddr,
    pub(super) web: Option<SocketAddr>,
    pub(super) admin: SocketAddr,
}

/// Says on stderr where the server is and how to begin.
pub(super) fn print(settings: &Settings, access: &Access, addresses: Addresses) {
    eprint!("{}", text(settings, access, addresses));
}

/// Logs what a person should know of the tokens though they are in force.
pub(super) fn warn(authority: &Authority) {
    for warning in authority.warnings() {
        tracing::warn!("{warning}");
    }
}

fn text(settings: &Settings, access: &Access, addresses: Addresses) -> String {
    let Addresses { mark, web, admin } = addresses;
    let data = settings.data.display();
    let rights = match access {
        Access::Dev => "dev: everyone on this machine may read and publish everything",
        Access::Tokens(files) if files.tokens.exists() => "by tokens; public places are readable",
        Access::Tokens(_) => "no tokens file: public places are readable, nothing is writable",
    };
    let url = format!("mark://{mark}");
    let scheme = if settings.tls { "https" } else { "http" };
    let page = web.map(|web| format!("  open       {scheme}://{}/\n", reachable(web)));
    let page = page.unwrap_or_default();
    let mut lines = format!(
        "\nTidings serves {data}\n\
         \n\
         {page}\
         \x20 documents  {url}\n\
         \x20 health     http://{admin}/readyz\n\
         \x20 rights     {rights}\n\
         \n\
         Type next, in other terminals:\n\
         \n"
    );
    let own = match mark {
        _ if mark == Settings::default().mark => String::new(),
        _ => format!(" --url mark://{}", reachable(mark)),
    };
    let writes = matches!(access, Access::Dev);
    if !writes {
        let place = if settings.data == Settings::default().data {
            String::new()
        } else {
            format!(" --data '{data}'")
        };
        let _ = writeln!(lines, "  tidings token{place} add --publish '/**'");
    }
    let token = if writes { "" } else { " --token TOKEN" };
    let _ = write!(
        lines,
        "\x20 tidings watch /{own}\n\
         \x20 echo '# Tea' | tidings publish /notes/tea.md{own}{token}\n\
         \n"
    );
    lines
}

/// Where to connect: an unspecified address is only where to listen.
fn reachable(address: SocketAddr) -> SocketAddr {
    match address.ip().is_unspecified() {
        true => SocketAddr::from(([127, 0, 0, 1], address.port())),
        false => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(settings: &Settings) -> Addresses {
        Addresses {
            mark: settings.mark,
            web: settings.http,
            admin: settings.admin,
        }
    }

    #[test]
    fn the_default_server_needs_no_address_in_the_commands() {
        let settings = Settings::default();
        let text = text(&settings, &Access::Dev, addresses(&settings));
        assert!(
            text.contains("  open       http://127.0.0.1:8080/\n"),
            "{text}"
        );
        assert!(text.contains("  tidings watch /\n"), "{text}");
        assert!(text.contains("http://127.0.0.1:9309/readyz"), "{text}");
        assert!(!text.contains("token"), "{text}");
    }

    #[test]
    fn without_rights_the_first_thing_to_type_is_a_token() {
        let settings = Settings::default();
        let access = Access::Tokens(auth::Files {
            tokens: "nowhere/tokens.toml".into(),
            tokens_required: false,
            closed: "nowhere/closed.toml".into(),
        });
        let everywhere = Addresses {
            mark: SocketAddr::from(([0, 0, 0, 0], 7000)),
            web: None,
            ..addresses(&settings)
        };
        let text = text(&settings, &access, everywhere);
        assert!(!text.contains("open"), "{text}");
        assert!(
            text.contains("tidings token add --publish '/**'\n"),
            "{text}"
        );
        assert!(
            text.contains("watch / --url mark://127.0.0.1:7000\n"),
            "{text}"
        );
    }
}
