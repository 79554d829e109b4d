//! Calls of the CUDA runtime and driver.

use std::collections::HashMap;

use types::timeline::{Correlation, HostCall, NameId};

use super::identity::Threads;
use super::schema::{DRIVER_CALLS, RUNTIME_CALLS};
use super::span;
use super::strings::Strings;
use crate::IngestError;
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
                            let function = function(strings.names.get(name)).to_owned();
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

/// The name of a function without the version CUPTI puts behind runtime functions (`cudaLaunchKernel_v7000`). A driver
/// function's own version (`cuMemAlloc_v2`) has one digit and is part of its name.
fn function(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((function, version))
            if (4..=5).contains(&version.len()) && version.bytes().all(|b| b.is_ascii_digit()) =>
        {
            function
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::function;

    #[test]
    fn the_version_of_a_runtime_function_is_no_part_of_its_name() {
        assert_eq!(function("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(function("cudaStreamIsCapturing_v10000"), "cudaStreamIsCapturing");
        assert_eq!(function("cudaLaunchKernelExC_v11060"), "cudaLaunchKernelExC");
        assert_eq!(function("cuMemAlloc_v2"), "cuMemAlloc_v2");
        assert_eq!(function("cuLaunchKernel"), "cuLaunchKernel");
        assert_eq!(function("odd_vabcd"), "odd_vabcd");
    }
}
