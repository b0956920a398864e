//! Which process has a port, by the kernel's table of sockets.

use std::fmt;
use std::fs;
use std::path::Path;

/// What a port is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Tcp,
    Udp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// What the table says of a TCP socket that listens.
const LISTENS: &str = "0A";

/// The process that has the port; `None` where it can't be seen.
pub(super) fn owner(transport: Transport, port: u16) -> Option<u32> {
    let tables: [&str; 2] = match transport {
        Transport::Tcp => ["tcp", "tcp6"],
        Transport::Udp => ["udp", "udp6"],
    };
    let read = |table: &str| fs::read_to_string(Path::new("/proc/net").join(table)).ok();
    let texts = tables.into_iter().filter_map(read);
    let sockets: Vec<String> = texts
        .flat_map(|text| inodes(&text, transport, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .find(|pid| has_open(*pid, &sockets))
}

/// The inodes of the sockets on `port`. A row is a number, the local address as hexadecimal
/// `ADDRESS:PORT`, the remote one, the state, and further on the inode as the tenth field.
fn inodes(table: &str, transport: Transport, port: u16) -> Vec<u64> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
        let is_meant = u16::from_str_radix(local_port, 16).ok()? == port;
        let counts = transport == Transport::Udp || *fields.get(3)? == LISTENS;
        (is_meant && counts).then(|| fields.get(9)?.parse().ok())?
    };
    table.lines().skip(1).filter_map(row).collect()
}

fn has_open(pid: u32, sockets: &[String]) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    open.flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| sockets.iter().any(|socket| target == Path::new(socket)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_of_this_process_is_found() {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = udp.local_addr().unwrap().port();
        assert_eq!(owner(Transport::Udp, port), Some(std::process::id()));
        let tcp = std::net::TcpListener::bind("[::1]:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        assert_eq!(owner(Transport::Tcp, port), Some(std::process::id()));
    }

    #[test]
    fn a_connection_that_uses_the_port_does_not_hold_it() {
        let table = "head\n\
            0: 0100007F:18A5 0100007F:9C40 01 0:0 0:0 0 0 0 77 1\n\
            1: 0100007F:18A5 00000000:0000 0A 0:0 0:0 0 0 0 78 1\n";
        assert_eq!(inodes(table, Transport::Tcp, 0x18a5), [78]);
        assert_eq!(inodes(table, Transport::Tcp, 1), [0u64; 0]);
    }
}
