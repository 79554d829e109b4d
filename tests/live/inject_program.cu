// A plain CUDA program to be recorded: kernels, copies, a fill, two streams, a graph, and ranges of a domain of its own.
//     nvcc -O2 -o inject_program inject_program.cu
#include <cstdio>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

__global__ void scale(float *x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}
template <int Unroll> __global__ void add(float *x, const float *y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += Unroll * gridDim.x * blockDim.x)
        for (int j = 0; j < Unroll && i + j * gridDim.x * blockDim.x < n; ++j)
            x[i + j * gridDim.x * blockDim.x] += y[i + j * gridDim.x * blockDim.x];
}

int main() {
    const int n = 1 << 20;
    nvtxDomainHandle_t domain = nvtxDomainCreateA("LLM");
    nvtxEventAttributes_t named = {};
    named.version = NVTX_VERSION, named.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    named.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    named.message.registered = nvtxDomainRegisterStringA(domain, "decode_step");
    float *x, *y;
    cudaMalloc(&x, n * 4), cudaMalloc(&y, n * 4);
    float *host = new float[n]();
    cudaStream_t streams[2];
    cudaStreamCreate(&streams[0]), cudaStreamCreate(&streams[1]);
    nvtxRangePushA("prefill");
    cudaMemset(x, 0, n * 4);
    cudaMemcpyAsync(y, host, n * 4, cudaMemcpyHostToDevice, streams[0]);
    for (int i = 0; i < 10; ++i) scale<<<n / 256, 256, 0, streams[i % 2]>>>(x, 1.5f, n);
    cudaDeviceSynchronize();
    nvtxRangePop();
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeGlobal);
    for (int i = 0; i < 5; ++i) add<2><<<64, 256, 0, streams[0]>>>(x, y, n);
    cudaStreamEndCapture(streams[0], &graph);
    cudaGraphInstantiate(&executable, graph, 0);
    nvtxRangePushW(L"decode");
    for (int step = 0; step < 4; ++step) {
        nvtxDomainRangePushEx(domain, &named);
        cudaGraphLaunch(executable, streams[0]);
        add<4><<<32, 128, 0, streams[1]>>>(y, x, n);
        cudaMemcpy(host, x, 1024, cudaMemcpyDeviceToHost);
        nvtxDomainRangePop(domain);
    }
    nvtxRangePop();
    nvtxRangeId_t range = nvtxRangeStartA("whole");
    cudaStreamSynchronize(streams[1]);
    nvtxRangeEnd(range);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    return 0;
}
