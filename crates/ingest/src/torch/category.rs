//! What the torch profiler calls its kinds of events, and what becomes of each.

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// An operator of the framework.
    Operator,
    /// A Python function.
    PythonFunction,
    /// A range the user opened.
    UserAnnotation,
    /// A call of the CUDA runtime.
    RuntimeCall,
    /// A call of the CUDA driver.
    DriverCall,
    /// A kernel.
    Kernel,
    /// A copy on a device.
    Copy,
    /// A memset on a device.
    Memset,
    /// An allocation or a release.
    Memory,
    /// A user's range as seen from a device. The profiler derives it from launches, so it is counted and not kept.
    DeviceAnnotation,
    /// A wait recorded on a device. Counted and not kept.
    Synchronisation,
    /// Time the profiler itself took. Counted and not kept.
    Overhead,
    /// The span of a whole recording. Counted and not kept.
    Recording,
    /// A point in time that is no allocation. Counted and not kept.
    Instant,
    /// An arrow between two events, which their numbers say as well. Counted and not kept.
    Flow,
    /// Names and sort orders for viewers. Counted and not kept.
    Metadata,
}

/// Every kind, in the order above.
pub(crate) const ALL: [Category; 16] = [
    Category::Operator,
    Category::PythonFunction,
    Category::UserAnnotation,
    Category::RuntimeCall,
    Category::DriverCall,
    Category::Kernel,
    Category::Copy,
    Category::Memset,
    Category::Memory,
    Category::DeviceAnnotation,
    Category::Synchronisation,
    Category::Overhead,
    Category::Recording,
    Category::Instant,
    Category::Flow,
    Category::Metadata,
];

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

    /// The name the profiler gives the kind today.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "cpu_op",
            Self::PythonFunction => "python_function",
            Self::UserAnnotation => "user_annotation",
            Self::RuntimeCall => "cuda_runtime",
            Self::DriverCall => "cuda_driver",
            Self::Kernel => "kernel",
            Self::Copy => "gpu_memcpy",
            Self::Memset => "gpu_memset",
            Self::Memory => "[memory]",
            Self::DeviceAnnotation => "gpu_user_annotation",
            Self::Synchronisation => "cuda_sync",
            Self::Overhead => "overhead",
            Self::Recording => "Trace",
            Self::Instant => "instant",
            Self::Flow => "flow",
            Self::Metadata => "metadata",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn todays_names_are_recognised() {
        for (place, category) in ALL.into_iter().enumerate() {
            assert_eq!(category as usize, place);
            let points = [Category::Memory, Category::Instant, Category::Flow, Category::Metadata];
            let found = Category::of_span(category.name().as_bytes());
            assert_eq!(found, (!points.contains(&category)).then_some(category));
        }
    }
}
