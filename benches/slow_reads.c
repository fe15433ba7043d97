/* Delays each read of a file below a folder, as a slow disk does: a library for LD_PRELOAD, which store_questions.py builds.
 *
 * SLOW_FOLDER: the folder, without links. SLOW_MS: milliseconds that a read takes; reads of several threads take them at the same
 * time. SLOW_COUNT: a file of 8 bytes, which gets the number of the reads.
 *
 * Reads that the C library does itself, and files that are mapped into memory, are not delayed. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static const char *folder;
static size_t length;
static struct timespec delay;
static uint64_t *count;

__attribute__((constructor)) static void begin(void) {
    const char *ms = getenv("SLOW_MS"), *path = getenv("SLOW_COUNT");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    folder = getenv("SLOW_FOLDER");
    if (!folder || !ms || file < 0) {
        folder = NULL;
        return;
    }
    void *mapped = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    count = mapped == MAP_FAILED ? NULL : mapped;
    long number = atol(ms);
    delay.tv_sec = number / 1000;
    delay.tv_nsec = number % 1000 * 1000000;
    length = strlen(folder);
    close(file);
}

static void wait_for_disk(int file) {
    char link[32], path[PATH_MAX];
    if (!folder) {
        return;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t found = readlink(link, path, sizeof path - 1);
    if (found < (ssize_t)length || strncmp(path, folder, length) != 0) {
        return;
    }
    if (count) {
        __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
    }
    nanosleep(&delay, NULL);
}

#define SLOW(name, parameters, arguments)                           \
    ssize_t name parameters {                                       \
        static ssize_t(*real) parameters;                           \
        if (!real) {                                                \
            real = (ssize_t(*) parameters)dlsym(RTLD_NEXT, #name);  \
        }                                                           \
        wait_for_disk(file);                                        \
        return real arguments;                                      \
    }

SLOW(read, (int file, void *into, size_t bytes), (file, into, bytes))
SLOW(pread, (int file, void *into, size_t bytes, off_t at), (file, into, bytes, at))
SLOW(pread64, (int file, void *into, size_t bytes, off64_t at), (file, into, bytes, at))
SLOW(readv, (int file, const struct iovec *into, int parts), (file, into, parts))
SLOW(preadv, (int file, const struct iovec *into, int parts, off_t at), (file, into, parts, at))
SLOW(preadv64, (int file, const struct iovec *into, int parts, off64_t at), (file, into, parts, at))
