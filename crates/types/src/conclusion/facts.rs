//! Facts: the quantities a conclusion rests on, by name and with their units, and not a word about them.
//!
//! `analysis` concludes in facts; `report::words` has the sentences they are put into. In a document they are one object whose
//! keys say the unit, like everywhere else: `idle_ns`, `moved_bytes`, `idle_share: {share, of}`.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{Bytes, BytesPerSecond, Flops, FlopsPerByte, FlopsPerSecond, Nanos, Remark, Stage};

/// One quantity.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Fact {
    /// A time.
    Time(Nanos),
    /// A share, with what it is a share of.
    Share(Share),
    /// A number of things.
    Count(u64),
    /// A factor, a mean or another plain number.
    Number(f64),
    /// An amount of data.
    Bytes(Bytes),
    /// A rate of data.
    Rate(BytesPerSecond),
    /// An amount of work.
    Work(Flops),
    /// A rate of work.
    WorkRate(FlopsPerSecond),
    /// Work per amount of data.
    Intensity(FlopsPerByte),
    /// Which part of the run.
    Part(Base),
    /// A name from the run: a kernel, an operator, a call.
    Name(String),
    /// Something that holds.
    #[serde(serialize_with = "holds")]
    Yes,
    /// Several of the same kind, one after the other.
    Rows(Vec<Facts>),
    /// Another sentence, such as a reason. In a document it is the sentence alone, and is a name when read back.
    Said(Remark),
}

/// A share and its base.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Between 0 and 1, but for growth, which may be above.
    pub share: f64,
    /// What it is a share of.
    pub of: Base,
}

/// What a share is of, or which part of a run something concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Base {
    /// The run as a whole.
    Run,
    /// Its time outside of stages.
    OutsideStages,
    /// The time from the first to the last work of its devices.
    DeviceTime,
    /// The time its devices are busy.
    BusyTime,
    /// The time of all kernels.
    KernelTime,
    /// The time of all GEMMs.
    GemmTime,
    /// The time of all GEMMs and convolutions.
    ProductTime,
    /// The time of all operators.
    OperatorTime,
    /// The time that is lost.
    LostTime,
    /// The time of communication.
    CommunicationTime,
    /// The latency of all requests.
    Latency,
    /// The time of the other ranks.
    OtherRanks,
    /// The profiled pass of a stage.
    ProfiledPass,
    /// Peak FLOP/s.
    PeakCompute,
    /// Peak bandwidth.
    PeakBandwidth,
    /// Bandwidth of a device's links, one way.
    LinkBandwidth,
    /// Nothing that needs a name: the sentence says it.
    Itself,
    /// A stage of the run.
    #[serde(untagged)]
    Stage(Stage),
}

/// Quantities by name, in the order they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts(Vec<(String, Fact)>);

impl Facts {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with one more.
    #[must_use]
    pub fn with(mut self, name: &str, fact: impl Into<Fact>) -> Self {
        self.0.push((name.to_owned(), fact.into()));
        self
    }

    /// The same with one more, where it is known.
    #[must_use]
    pub fn with_known(self, name: &str, fact: Option<impl Into<Fact>>) -> Self {
        match fact {
            Some(fact) => self.with(name, fact),
            None => self,
        }
    }

    /// The same with one more, where it holds.
    #[must_use]
    pub fn with_if(self, name: &str, holds: bool) -> Self {
        if holds { self.with(name, Fact::Yes) } else { self }
    }

    /// The same with a share and what it is of, where the share is known.
    #[must_use]
    pub fn with_share(self, name: &str, share: impl Into<Option<f64>>, of: Base) -> Self {
        self.with_known(name, share.into().map(|share| Share { share, of }))
    }

    /// The fact of this name.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, fact)| fact)
    }

    /// The rows of this name; none where there is no such fact.
    pub fn rows(&self, name: &str) -> &[Facts] {
        match self.get(name) {
            Some(Fact::Rows(rows)) => rows,
            _ => &[],
        }
    }

    /// Whether there is a fact of this name.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Every remark among them, those in rows included.
    pub fn remarks_mut<'a>(&'a mut self) -> Vec<&'a mut Remark> {
        let of = |(_, fact): &'a mut (String, Fact)| match fact {
            Fact::Said(remark) => vec![remark],
            Fact::Rows(rows) => rows.iter_mut().flat_map(Self::remarks_mut).collect(),
            _ => Vec::new(),
        };
        self.0.iter_mut().flat_map(of).collect()
    }

    /// Every fact with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Fact)> {
        self.0.iter().map(|(name, fact)| (name.as_str(), fact))
    }
}

/// Defines how the facts of one kind are got by name.
macro_rules! getters {
    ($($(#[$about:meta])* $name:ident: $variant:ident($fact:ident) -> $of:ty = $value:expr;)+) => {
        impl Facts {
            $($(#[$about])*
            pub fn $name(&self, name: &str) -> Option<$of> {
                match self.get(name)? {
                    Fact::$variant($fact) => Some($value),
                    _ => None,
                }
            })+
        }
    };
}

getters! {
    /// The time of this name.
    time: Time(time) -> Nanos = *time;
    /// The count of this name.
    count: Count(count) -> u64 = *count;
    /// The share of this name.
    share: Share(share) -> f64 = share.share;
    /// The plain number of this name.
    number: Number(number) -> f64 = *number;
    /// The name of this name.
    name: Name(name) -> &str = name;
}

macro_rules! fact {
    ($($from:ty => $variant:ident),* $(,)?) => {
        $(impl From<$from> for Fact {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        })*
    };
}

fact! {
    Nanos => Time, Share => Share, u64 => Count, u32 => Count, f64 => Number, Bytes => Bytes, BytesPerSecond => Rate,
    Flops => Work, FlopsPerSecond => WorkRate, FlopsPerByte => Intensity, Base => Part, String => Name, &str => Name, &String => Name, Vec<Facts> => Rows, Remark => Said,
}

impl From<usize> for Fact {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl Fact {
    /// What its key in a document ends in.
    const fn suffix(&self) -> &'static str {
        match self {
            Self::Time(_) => "_ns",
            Self::Bytes(_) => "_bytes",
            Self::Rate(_) => "_bytes_per_second",
            Self::Work(_) => "_flops",
            Self::WorkRate(_) => "_flops_per_second",
            Self::Intensity(_) => "_flops_per_byte",
            Self::Part(_) => "_part",
            _ => "",
        }
    }
}

impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, fact) in &self.0 {
            map.serialize_key(&format!("{name}{}", fact.suffix()))?;
            map.serialize_value(fact)?;
        }
        map.end()
    }
}

fn holds<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(true)
}

impl<'de> Deserialize<'de> for Facts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let map = Map::<String, Value>::deserialize(deserializer)?;
        let facts = map.into_iter().map(|(key, value)| read(key, value)).collect::<Result<_, _>>();
        facts.map(Self).map_err(D::Error::custom)
    }
}

/// An amount of work; past 64 bits a buffered number is the nearest double.
fn work(value: Value) -> Result<Fact, serde_json::Error> {
    match value.as_u64() {
        Some(flops) => Ok(Fact::Work(Flops::new(flops.into()))),
        None => serde_json::from_value::<f64>(value).map(|flops| Fact::Work(Flops::new(flops as u128))),
    }
}

/// A key of a document and its value as a fact; the key says the unit.
fn read(mut key: String, value: Value) -> Result<(String, Fact), serde_json::Error> {
    type Reader = fn(Value) -> Result<Fact, serde_json::Error>;
    const UNITS: [(&str, Reader); 7] = [
        ("_ns", |value| serde_json::from_value(value).map(Fact::Time)),
        ("_bytes", |value| serde_json::from_value(value).map(Fact::Bytes)),
        ("_bytes_per_second", |value| serde_json::from_value(value).map(Fact::Rate)),
        ("_flops", work),
        ("_flops_per_second", |value| serde_json::from_value(value).map(Fact::WorkRate)),
        ("_flops_per_byte", |value| serde_json::from_value(value).map(Fact::Intensity)),
        ("_part", |value| serde_json::from_value(value).map(Fact::Part)),
    ];
    if let Some((suffix, read)) = UNITS.iter().find(|(suffix, _)| key.ends_with(suffix)) {
        key.truncate(key.len() - suffix.len());
        return Ok((key, read(value)?));
    }
    let fact = match value {
        Value::Object(_) => Fact::Share(serde_json::from_value(value)?),
        Value::Array(_) => Fact::Rows(serde_json::from_value(value)?),
        Value::String(name) => Fact::Name(name),
        Value::Number(number) => match number.as_u64() {
            Some(count) => Fact::Count(count),
            None => Fact::Number(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::Bool(_) | Value::Null => Fact::Yes,
    };
    Ok((key, fact))
}

#[cfg(test)]
impl schemars::JsonSchema for Facts {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Facts".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "object",
            "description": "Named quantities. Keys end in their unit (`_ns`, `_bytes`, `_bytes_per_second`); a share is an object with what it is of."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_say_their_units_in_a_document_and_come_back_from_it() {
        let calls = vec![Facts::new().with("call", "cudaFree").with("calls", 3_u64)];
        let facts = Facts::new()
            .with("idle", Nanos::new(237_000_000))
            .with_share("idle_share", 0.94, Base::Stage(Stage::Decode))
            .with_share("all", 0.5, Base::DeviceTime)
            .with("launches", 1_280_u64)
            .with("ratio", 1.5)
            .with("whole", 2.0)
            .with("moved", Bytes::new(7))
            .with("at", BytesPerSecond::new(1.5))
            .with("work", Flops::new(9))
            .with("reached", FlopsPerSecond::new(2.5))
            .with("stage", Base::OutsideStages)
            .with_if("repeats", true)
            .with_if("never", false)
            .with_known("unknown", None::<u64>)
            .with("calls", calls);
        let text = serde_json::to_string(&facts).unwrap();
        assert!(text.starts_with(r#"{"idle_ns":237000000,"idle_share":{"share":0.94,"of":"decode"},"all":{"share":0.5,"of":"device_time"}"#), "{text}");
        assert!(
            text.contains(r#""moved_bytes":7"#) && text.contains(r#""stage_part":"outside_stages","repeats":true"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Facts>(&text).unwrap(), facts);
    }
}
