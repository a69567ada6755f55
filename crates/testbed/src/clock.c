/* Shifts the wall clock of a server under test by a number of nanoseconds read from a file.
 *
 * Loaded before the server's own libraries (LD_PRELOAD). TESTBED_CLOCK names a file with the shift as one
 * 64-bit number; a write to the file changes the clock at once. The functions call the kernel directly and
 * allocate no memory, so they also work while an allocator that reads the clock is still starting. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static volatile long long *shift;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TESTBED_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *at = mmap(0, sizeof *shift, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (at != MAP_FAILED) shift = at;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (failed || !shift || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
    long long shifted = now->tv_sec * SECOND + now->tv_nsec + *shift;
    now->tv_sec = shifted / SECOND;
    now->tv_nsec = shifted % SECOND;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec read;
    int failed = clock_gettime(CLOCK_REALTIME, &read);
    (void)zone;
    now->tv_sec = read.tv_sec;
    now->tv_usec = read.tv_nsec / 1000;
    return failed;
}

time_t time(time_t *seconds) {
    struct timespec read;
    clock_gettime(CLOCK_REALTIME, &read);
    if (seconds) *seconds = read.tv_sec;
    return read.tv_sec;
}
