//! What the torch profiler calls its kinds of events, and what becomes of each.

types::named! {
    /// A kind of event, with the name that the profiler gives it today.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Category {
        /// An operator of the framework.
        Operator = "cpu_op",
        /// A Python function.
        PythonFunction = "python_function",
        /// A range the user opened.
        UserAnnotation = "user_annotation",
        /// A call of the CUDA runtime.
        RuntimeCall = "cuda_runtime",
        /// A call of the CUDA driver.
        DriverCall = "cuda_driver",
        /// A kernel.
        Kernel = "kernel",
        /// A copy on a device.
        Copy = "gpu_memcpy",
        /// A memset on a device.
        Memset = "gpu_memset",
        /// An allocation or a release.
        Memory = "[memory]",
        /// A user's range as seen from a device. The profiler derives it from launches, so it is counted and not kept.
        DeviceAnnotation = "gpu_user_annotation",
        /// A wait recorded on a device. Counted and not kept.
        Synchronisation = "cuda_sync",
        /// Time the profiler itself took. Counted and not kept.
        Overhead = "overhead",
        /// The span of a whole recording. Counted and not kept.
        Recording = "Trace",
        /// A point in time that is no allocation. Counted and not kept.
        Instant = "instant",
        /// An arrow between two events, which their numbers say as well. Counted and not kept.
        Flow = "flow",
        /// Names and sort orders for viewers. Counted and not kept.
        Metadata = "metadata",
    }
}

impl Category {
    /// The kind of a span by the `cat` that profilers of all ages write.
    #[inline]
    pub(crate) fn of_span(category: &[u8]) -> Option<Self> {
        Some(match category {
            b"cpu_op" | b"Operator" => Self::Operator,
            b"python_function" => Self::PythonFunction,
            b"user_annotation" => Self::UserAnnotation,
            b"cuda_runtime" | b"Runtime" => Self::RuntimeCall,
            b"cuda_driver" | b"Driver" => Self::DriverCall,
            b"kernel" | b"Kernel" => Self::Kernel,
            b"gpu_memcpy" | b"Memcpy" => Self::Copy,
            b"gpu_memset" | b"Memset" => Self::Memset,
            b"gpu_user_annotation" => Self::DeviceAnnotation,
            b"cuda_sync" => Self::Synchronisation,
            b"overhead" => Self::Overhead,
            b"Trace" => Self::Recording,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn todays_names_are_recognised() {
        for (place, category) in Category::ALL.into_iter().enumerate() {
            assert_eq!(category as usize, place);
            let points = [Category::Memory, Category::Instant, Category::Flow, Category::Metadata];
            let found = Category::of_span(category.name().as_bytes());
            assert_eq!(found, (!points.contains(&category)).then_some(category));
        }
    }
}
