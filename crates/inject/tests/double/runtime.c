// Stands in for the CUDA runtime in tests: it launches graphs by the driver's function, and is found by its name itself.
int cuGraphLaunch(void *graph, void *stream);

int cudaGraphLaunch(void *graph, void *stream) { return cuGraphLaunch(graph, stream); }
