/* Makes the disk of a server under test appear full while a file says so.
 *
 * Loaded before the server's own libraries (LD_PRELOAD). The first byte of the file named by TESTBED_DISK is 1
 * while the disk is full; the device of the file is the disk. A write that would lengthen a regular file on the
 * device then fails with ENOSPC. Buffered writes of the C library (fwrite) bypass these functions. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static volatile char *full;
static dev_t device;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TESTBED_DISK");
    struct stat state;
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *at = mmap(0, 1, PROT_READ, MAP_SHARED, file, 0);
    if (at != MAP_FAILED && !fstat(file, &state)) {
        device = state.st_dev;
        full = at;
    }
    close(file);
}

/* Returns 1 if a write of `length` bytes at `offset` has no room. A negative offset means the file's own offset. */
static int has_no_room(int file, off_t offset, size_t length) {
    struct stat state;
    int kept = errno;
    if (!full || !*full || fstat(file, &state) || !S_ISREG(state.st_mode) || state.st_dev != device) {
        errno = kept;
        return 0;
    }
    if (offset < 0) {
        int flags = fcntl(file, F_GETFL);
        offset = flags >= 0 && (flags & O_APPEND) ? state.st_size : lseek(file, 0, SEEK_CUR);
    }
    errno = kept;
    return offset + (off_t)length > state.st_size;
}

static long no_room(void) {
    errno = ENOSPC;
    return -1;
}

static size_t length_of(const struct iovec *parts, int count) {
    size_t length = 0;
    for (int n = 0; n < count; n++) length += parts[n].iov_len;
    return length;
}

ssize_t write(int file, const void *bytes, size_t length) {
    return has_no_room(file, -1, length) ? no_room() : syscall(SYS_write, file, bytes, length);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    return has_no_room(file, -1, length_of(parts, count)) ? no_room() : syscall(SYS_writev, file, parts, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
    return has_no_room(file, offset, length) ? no_room() : syscall(SYS_pwrite64, file, bytes, length, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
    return pwrite64(file, bytes, length, offset);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
    size_t length = length_of(parts, count);
    return has_no_room(file, offset, length) ? no_room() : syscall(SYS_pwritev, file, parts, count, offset, 0L);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
    return pwritev64(file, parts, count, offset);
}

int fallocate64(int file, int mode, off64_t offset, off64_t length) {
    return has_no_room(file, offset, length) ? no_room() : syscall(SYS_fallocate, file, mode, offset, length);
}

int fallocate(int file, int mode, off_t offset, off_t length) {
    return fallocate64(file, mode, offset, length);
}

/* Returns the error and leaves errno unchanged. */
int posix_fallocate64(int file, off64_t offset, off64_t length) {
    int kept = errno, failed = fallocate64(file, 0, offset, length) ? errno : 0;
    errno = kept;
    return failed;
}

int posix_fallocate(int file, off_t offset, off_t length) {
    return posix_fallocate64(file, offset, length);
}
