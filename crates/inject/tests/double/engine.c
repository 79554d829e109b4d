// Stands in for a library such as libtorch_cuda.so in tests: it launches graphs by the name of a function in another library.
int LAUNCH(void *graph, void *stream);

int engine_launch(void *graph, void *stream) { return LAUNCH(graph, stream); }
