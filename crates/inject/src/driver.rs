//! The CUDA driver that is in the process: its functions, and the devices as it describes them.

use core::ffi::{c_char, c_int, c_uint, c_void};

use crate::once::Once;
use crate::system::{self, functions};

/// A device as the driver describes it.
pub(crate) struct Device {
    pub(crate) name: [u8; 128],
    pub(crate) uuid: [u8; 16],
    pub(crate) memory: u64,
}

functions! {
    /// The functions of the driver that are used; all are there since CUDA 12.
    Driver {
        device: c"cuDeviceGet" (*mut c_int, c_int);
        device_name: c"cuDeviceGetName" (*mut c_char, c_int, c_int);
        device_uuid: c"cuDeviceGetUuid_v2" (*mut [u8; 16], c_int);
        device_memory: c"cuDeviceTotalMem_v2" (*mut usize, c_int);
        context: c"cuCtxGetCurrent" (*mut *mut c_void);
        context_number: c"cuCtxGetId" (*mut c_void, *mut u64);
        set_context: c"cuCtxSetCurrent" (*mut c_void);
        device_of_context: c"cuCtxGetDevice" (*mut c_int);
        create_stream: c"cuStreamCreate" (*mut *mut c_void, c_uint);
        is_capturing: c"cuStreamIsCapturing" (*mut c_void, *mut c_int);
        capture_mode: c"cuThreadExchangeStreamCaptureMode" (*mut c_int);
        create_event: c"cuEventCreate" (*mut *mut c_void, c_uint);
        record: c"cuEventRecord" (*mut c_void, *mut c_void);
        query: c"cuEventQuery" (*mut c_void);
        elapsed: c"cuEventElapsedTime" (*mut f32, *mut c_void, *mut c_void);
    }
}

static DRIVER: Once<Driver> = Once::new();

/// The driver, where [`load`] has found it.
#[inline]
pub(crate) fn driver() -> Option<&'static Driver> {
    DRIVER.get()
}

/// Finds the driver; `None` where there is none in the process. For the writer thread only.
pub(crate) fn load() -> Option<&'static Driver> {
    let library = system::loaded(c"libcuda.so.1");
    if DRIVER.get().is_none() && !library.is_null() {
        // SAFETY: there is none yet, and by the contract nobody else is here.
        unsafe { DRIVER.set(Driver::of(library)?) };
    }
    DRIVER.get()
}

impl Driver {
    /// The device with that ordinal. None of the functions needs a context, and CUDA is initialised when there is work.
    pub(crate) fn describe(&self, ordinal: u32) -> Option<Device> {
        let mut found = Device { name: [0; 128], uuid: [0; 16], memory: 0 };
        let (mut handle, mut bytes) = (0, 0);
        // SAFETY: all that they are given may be written to, and the name is shorter than its room by one byte, which stays zero.
        let code = unsafe {
            let code = (self.device)(&mut handle, ordinal as c_int);
            if code != 0 {
                return None;
            }
            let name = found.name.as_mut_ptr().cast();
            (self.device_name)(name, 127, handle)
                | (self.device_uuid)(&mut found.uuid, handle)
                | (self.device_memory)(&mut bytes, handle)
        };
        found.memory = bytes as u64;
        (code == 0).then_some(found)
    }
}
