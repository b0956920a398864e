//! The ports: free, or held by the server; and the buffers that the kernel grants a socket.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use super::Surroundings;
use super::finding::Finding;
use super::socket_table::{Transport, owner};

const PORTS: &str = "ports";
const BUFFERS: &str = "buffers";

pub(super) fn examine(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let settings = around.settings;
    let http = settings
        .http
        .map(|http| ("serve.http", Transport::Tcp, http));
    let always = [
        ("serve.mark", Transport::Udp, settings.mark),
        ("serve.admin", Transport::Tcp, settings.admin),
    ];
    for (key, transport, address) in always.into_iter().chain(http) {
        found.push(port(key, transport, address, around.holder));
    }
    found.push(buffers(settings.mark, settings.limits.udp_buffer_bytes));
}

fn port(key: &str, transport: Transport, address: SocketAddr, holder: Option<u32>) -> Finding {
    let port = format!("{transport} {address} ({key})");
    // It is bound and let go at once. Port 0 is whichever is free.
    let bound = match transport {
        Transport::Tcp => TcpListener::bind(address).map(drop),
        Transport::Udp => UdpSocket::bind(address).map(drop),
    };
    let Err(error) = bound else {
        return Finding::ok(PORTS, format!("{port} is free"));
    };
    match error.kind() {
        ErrorKind::AddrInUse => taken(key, &port, owner(transport, address.port()), holder),
        ErrorKind::AddrNotAvailable => {
            let what = format!("{port} is no address of this machine");
            let mend = format!("ip -brief address   # and set {key} to one of these");
            Finding::bad(PORTS, what, mend)
        }
        ErrorKind::PermissionDenied => {
            let what = format!("{port} is not for this user");
            let mend = format!("set {key} to a port above 1023");
            Finding::bad(PORTS, what, mend)
        }
        _ => Finding::bad(PORTS, format!("{port}: {error}"), format!("set {key}")),
    }
}

fn taken(key: &str, port: &str, owner: Option<u32>, holder: Option<u32>) -> Finding {
    match owner {
        Some(pid) if holder == Some(pid) => Finding::ok(
            PORTS,
            format!("{port} is held by the server, process {pid}"),
        ),
        Some(pid) => {
            let what = format!("{port} is held by process {pid}");
            let mend = format!("kill {pid}   # or set {key} to another port");
            Finding::bad(PORTS, what, mend)
        }
        None => {
            let what = format!("{port} is held by a process that can't be seen from here");
            let mend = format!("sudo ss -lnptu   # names it; or set {key} to another port");
            Finding::bad(PORTS, what, mend)
        }
    }
}

fn buffers(address: SocketAddr, asked: usize) -> Finding {
    match granted(address, asked) {
        Ok((receive, send)) if receive.min(send) < asked => {
            let what = format!(
                "asked for {asked} bytes each way, granted {receive} to receive and {send} to \
                 send: bursts are dropped by the kernel"
            );
            let mend =
                format!("sudo sysctl -w net.core.rmem_max={asked} net.core.wmem_max={asked}");
            Finding::warn(BUFFERS, what, mend)
        }
        Ok(_) => Finding::ok(BUFFERS, format!("{asked} bytes each way are granted")),
        Err(error) => Finding::bad(
            BUFFERS,
            format!("no UDP socket: {error}"),
            "ulimit -n 65536",
        ),
    }
}

/// What a socket gets of `asked` bytes to receive and to send.
fn granted(address: SocketAddr, asked: usize) -> io::Result<(usize, usize)> {
    // Linux reports twice what it grants: the other half is for its own bookkeeping.
    const REPORTED: usize = if cfg!(target_os = "linux") { 2 } else { 1 };

    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    socket.set_recv_buffer_size(asked)?;
    socket.set_send_buffer_size(asked)?;
    let receive = socket.recv_buffer_size()? / REPORTED;
    Ok((receive, socket.send_buffer_size()? / REPORTED))
}
