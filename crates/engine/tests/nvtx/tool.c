/* A tool that attaches as Nsight Systems does and writes what it is told to the file named by NVTX_TEST_LOG.
 * With NVTX_TEST_REFUSE set it refuses to attach. Written for this test from the published protocol. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*function)(void);

struct callbacks {
    size_t size;
    int (*module_table)(int module, function ***table, unsigned *size);
};

struct version_info {
    size_t size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
};

struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
};

static FILE *log_file;

static void *create(const char *name) {
    fprintf(log_file, "domain %s\n", name);
    return strdup(name);
}

static int push(void *domain, const struct attributes *range) {
    if (range->version != 3 || range->size != sizeof *range || range->message_type != 1) {
        fprintf(log_file, "wrong attributes\n");
        return -1;
    }
    return fprintf(log_file, "push %s %s\n", (const char *)domain, range->message);
}

static int pop(void *domain) { return fprintf(log_file, "pop %s\n", (const char *)domain); }

int InitializeInjectionNvtx2(const void *(*export_table)(uint32_t table)) {
    static const unsigned expected[] = {0, 16, 9, 15, 7, 16, 7};
    const struct callbacks *callbacks = export_table(1);
    const struct version_info *version = export_table(3);
    function **table;
    unsigned size;
    if (getenv("NVTX_TEST_REFUSE"))
        return 0;
    log_file = fopen(getenv("NVTX_TEST_LOG"), "w");
    if (!log_file || !callbacks || callbacks->size != sizeof *callbacks || !version || version->version != 3)
        return 0;
    setvbuf(log_file, NULL, _IOLBF, 0);
    version->set_tool_version(3);
    for (int module = 1; module <= 6; module++)
        if (!callbacks->module_table(module, &table, &size) || size != expected[module])
            return 0;
    callbacks->module_table(5, &table, &size);
    *table[12] = (function)create;
    *table[4] = (function)push;
    *table[5] = (function)pop;
    return 1;
}
