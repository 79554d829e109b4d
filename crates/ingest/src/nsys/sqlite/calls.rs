//! Calls of the CUDA runtime and driver.

use std::collections::HashMap;

use types::timeline::{Correlation, HostCall, NameId};

use super::identity::Threads;
use super::schema::{DRIVER_CALLS, RUNTIME_CALLS};
use super::span;
use super::strings::Strings;
use crate::IngestError;
use crate::cuda;
use crate::nsys::database::{Database, Losses};

/// Reads every call there is.
pub(crate) fn read(
    file: &str,
    database: &Database<'_>,
    strings: &mut Strings<'_>,
    threads: &mut Threads,
) -> Result<(Vec<HostCall>, Losses), IngestError> {
    let mut calls = Vec::new();
    let mut losses = Losses::default();
    let mut functions: HashMap<i64, NameId> = HashMap::new();
    for shape in [RUNTIME_CALLS, DRIVER_CALLS] {
        let Some((table, layout)) = shape.find(file, database)? else { continue };
        losses.add(database.rows(table, &layout, |[start, end, thread, correlation, name]| {
            let (start, duration) = span(start.required()?, end.required()?)?;
            let correlation = correlation.narrow()?.and_then(Correlation::new);
            let thread = thread.integer()?;
            let number = name.required()?;
            let name = match functions.get(&number) {
                Some(name) => *name,
                None => {
                    let name = match strings.find(number) {
                        Some(name) => {
                            let function = cuda::function(strings.names.get(name)).to_owned();
                            strings.names.place(&*function)
                        }
                        None => strings.unknown(),
                    };
                    functions.insert(number, name);
                    name
                }
            };
            let thread = threads.place(thread);
            calls.push(HostCall { name, thread, start, duration, correlation });
            Ok(())
        }));
    }
    Ok((calls, losses))
}
