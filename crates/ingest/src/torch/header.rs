//! What a document says beside its events: devices, clock, rank, versions.

use serde_json::Value;
use types::timeline::{Job, ProcessGroup};
use types::{Bytes, Device, DeviceId, Nanos};

use super::census::{Census, Fault};
use super::number::{integer, whole};

/// The fields of the document that are read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Header {
    pub(crate) devices: Vec<Device>,
    pub(crate) unix_ns_at_zero: Option<Nanos>,
    pub(crate) job: Option<Job>,
    schema_version: Option<u64>,
    cuda_runtime: Option<u64>,
    cuda_driver: Option<u64>,
    /// Names of all fields, for the case that this is something else.
    pub(crate) names: Vec<String>,
}

/// Names of fields that are kept for a message.
const NAMES_KEPT: usize = 8;

impl Header {
    /// Takes note of one field. Fields that say where the trace was made are passed over.
    pub(crate) fn add(&mut self, name: &str, token: &[u8], census: &mut Census) {
        let understood = match name {
            "schemaVersion" => kept(&mut self.schema_version, whole(token)),
            "cuda_runtime_version" => kept(&mut self.cuda_runtime, whole(token)),
            "cuda_driver_version" => kept(&mut self.cuda_driver, whole(token)),
            "baseTimeNanoseconds" => kept(&mut self.unix_ns_at_zero, integer(token).map(Nanos::new)),
            "deviceProperties" => devices(token).map(|devices| self.devices = devices).is_some(),
            "distributedInfo" => kept(&mut self.job, job(token)),
            _ => true,
        };
        if !understood {
            census.add_fault(Fault::Header);
        }
        if self.names.len() < NAMES_KEPT {
            self.names.push(name.chars().take(40).collect());
        }
    }

    /// The tool that wrote the trace, as far as it says.
    pub(crate) fn tool(&self) -> String {
        let version = |name: &str, number: Option<u64>| {
            number.map(|number| format!("{name} {}.{}", number / 1_000, number % 1_000 / 10))
        };
        let facts = [
            self.schema_version.map(|version| format!("schema {version}")),
            version("CUDA runtime", self.cuda_runtime),
            version("driver", self.cuda_driver),
        ];
        let facts: Vec<_> = facts.into_iter().flatten().collect();
        if facts.is_empty() { "torch profiler".to_owned() } else { format!("torch profiler ({})", facts.join(", ")) }
    }
}

fn kept<T>(place: &mut Option<T>, value: Option<T>) -> bool {
    let understood = value.is_some();
    *place = value;
    understood
}

/// The devices of a list of properties; those without a number or a name are not there.
fn devices(token: &[u8]) -> Option<Vec<Device>> {
    let Ok(Value::Array(list)) = serde_json::from_slice::<Value>(token) else { return None };
    let device = |properties: &Value| {
        let ordinal = u32::try_from(properties.get("id")?.as_u64()?).ok()?;
        Some(Device {
            id: DeviceId::cuda(ordinal),
            name: properties.get("name")?.as_str()?.to_owned(),
            uuid: None,
            hardware: None,
            memory_bytes: properties.get("totalGlobalMem").and_then(Value::as_u64).map(Bytes::new),
            multiprocessors: properties
                .get("numSms")
                .and_then(Value::as_u64)
                .and_then(|count| u32::try_from(count).ok()),
        })
    };
    list.iter().map(device).collect()
}

/// The distributed job; `None` where that is not what stands there. `pg_config` lists its process groups, in versions of
/// PyTorch that write it.
fn job(token: &[u8]) -> Option<Job> {
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(token) else { return None };
    let number = |value: &Value| value.as_u64().and_then(|number| u32::try_from(number).ok());
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let rank = match fields.get("rank") {
        Some(rank) => Some(number(rank)?),
        None => None,
    };
    let group = |group: &Value| {
        Some(ProcessGroup {
            name: group.get("pg_name").and_then(text)?,
            description: group.get("pg_desc").and_then(text).unwrap_or_default(),
            ranks: group.get("ranks").and_then(Value::as_array)?.iter().filter_map(number).collect(),
            size: group.get("pg_size").and_then(number),
        })
    };
    let groups = fields.get("pg_config").and_then(Value::as_array);
    Some(Job {
        rank,
        world_size: fields.get("world_size").and_then(number).filter(|size| (1..=Job::LARGEST_WORLD).contains(size)),
        backend: fields.get("backend").and_then(text),
        groups: groups.into_iter().flatten().filter_map(group).collect(),
    })
}
