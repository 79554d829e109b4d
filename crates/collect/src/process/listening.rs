//! Which process listens on a port of this machine.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// The state of a listening socket, and its column and that of its inode in `/proc/net/tcp`.
const LISTENS: &str = "0A";
const STATE: usize = 3;
const INODE: usize = 9;

/// The process that listens on a TCP port; of several that share the socket, the one with the smallest number, which commonly started
/// the others. Processes of other users are not seen.
pub fn listening_process(port: u16) -> Option<u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let sockets: HashSet<String> = tables.iter().flat_map(|table| sockets(table, port)).collect();
    let ids = fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|id| holds(Path::new(&format!("/proc/{id}/fd")), &sockets)).min()
}

/// Sockets of a table that listen on a port, as the links of open files name them.
fn sockets(table: &str, port: u16) -> impl Iterator<Item = String> {
    let port = format!(":{port:04X}");
    table.lines().skip(1).filter_map(move |line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let listens = columns.get(1)?.ends_with(&port) && columns.get(STATE) == Some(&LISTENS);
        listens.then_some(format!("socket:[{}]", columns.get(INODE)?))
    })
}

fn holds(files: &Path, sockets: &HashSet<String>) -> bool {
    let mut links = fs::read_dir(files).into_iter().flatten().filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    links.any(|link| link.to_str().is_some_and(|link| sockets.contains(link)))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_leads_to_the_process_that_listens_on_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listening_process(port), Some(std::process::id()));
        drop(listener);
        assert_eq!(listening_process(port), None);
    }
}
