//! Several servers that share a load, as a user lays them out.

use std::str::FromStr;

use forecast::serving::{Apart, Fleet, Router};
use types::{BytesPerSecond, DecodingServers, UserError};

use super::room::Room;

/// Most servers of a layout.
const MOST: usize = 256;
/// Most servers times requests: every server has a state of every request.
const MOST_STATES: usize = 2_000_000;

/// How many servers share a load, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FleetSettings {
    /// Servers that do the same.
    pub data_parallel: Option<usize>,
    /// Which of them a request goes to.
    pub router: Router,
    /// Servers that prefill and servers that decode, in place of those.
    pub disaggregate: Option<Disaggregate>,
    /// Bandwidth of each device's link between the two.
    pub link: Option<BytesPerSecond>,
}

/// Servers that prefill, and servers that decode: `1p2d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disaggregate {
    prefill: usize,
    decode: usize,
}

impl FromStr for Disaggregate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let numbers = lower.strip_suffix('d').and_then(|rest| rest.split_once('p'));
        let servers = |text: &str| text.parse().ok().filter(|servers| (1..=MOST).contains(servers));
        let both = numbers.and_then(|(prefill, decode)| Some((servers(prefill)?, servers(decode)?)));
        let (prefill, decode) = both.ok_or_else(|| format!("expected 1p2d, with 1 to {MOST} servers of each kind"))?;
        Ok(Self { prefill, decode })
    }
}

/// A number of servers that share a load.
pub fn servers(text: &str) -> Result<usize, String> {
    let servers = text.parse().ok().filter(|servers| (1..=MOST).contains(servers));
    servers.ok_or_else(|| format!("expected a number from 1 to {MOST}"))
}

/// Most requests of a load on such servers.
pub(super) fn most_requests(fleet: &Fleet) -> usize {
    MOST_STATES / fleet.servers().max(1)
}

/// Refuses more requests than that.
pub(super) fn refuse_too_many(fleet: &Fleet, requests: usize) -> Result<(), UserError> {
    let most = most_requests(fleet);
    if requests <= most {
        return Ok(());
    }
    Err(UserError::usage(format!("{requests} requests on {} servers are too many to simulate", fleet.servers())).hint(
        format!("simulate at most {most} requests (--requests {most}), or fewer servers at their share of the load"),
    ))
}

impl FleetSettings {
    /// The servers, where all of their settings are there.
    pub(super) fn fleet(&self, room: &Room) -> Result<Fleet, UserError> {
        let Self { data_parallel, router, .. } = *self;
        let Some(Disaggregate { prefill, decode }) = self.disaggregate else {
            return Ok(Fleet { servers: data_parallel.unwrap_or(1), router, apart: None });
        };
        if data_parallel.is_some() {
            return Err(UserError::usage("--data-parallel and --disaggregate are two layouts").hint("give one of them"));
        }
        let link = self.link.ok_or_else(|| {
            UserError::usage("--disaggregate needs the bandwidth between its servers")
                .hint("give that of each device, such as --kv-link 50GB/s for a 400 Gb/s network card")
        })?;
        let token = room.per_token.as_f64() / link.get() * 1e6;
        Ok(Fleet { servers: prefill, router, apart: Some(Apart { servers: decode, token }) })
    }

    /// The servers that decode alone, as a document has them.
    pub(super) fn decoding(&self, room: &Room) -> Option<DecodingServers> {
        Some(DecodingServers {
            servers: self.disaggregate?.decode as u64,
            link_bytes_per_second: self.link?.get(),
            bytes_per_token: room.per_token,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_requests_on_many_servers_are_refused() {
        let fleet = Fleet { servers: 200, router: Router::default(), apart: Some(Apart { servers: 50, token: 1.0 }) };
        assert!(refuse_too_many(&fleet, 8_000).is_ok());
        let error = refuse_too_many(&fleet, 8_001).unwrap_err();
        assert_eq!(error.message, "8001 requests on 250 servers are too many to simulate");
        assert!(error.hints[0].contains("--requests 8000"), "{:?}", error.hints);
        assert!(refuse_too_many(&Fleet::ONE, 200_000).is_ok());
    }

    #[test]
    fn servers_apart_are_written_as_people_write_them() {
        assert_eq!("2P6D".parse(), Ok(Disaggregate { prefill: 2, decode: 6 }));
        for wrong in ["", "p", "1p", "0p1d", "1p0d", "1d1p", "300p1d", "1p1d1"] {
            assert!(wrong.parse::<Disaggregate>().is_err(), "{wrong}");
        }
    }
}
