/* Makes the disk of a server under test appear full or read-only while a file says so.
 *
 * Loaded before the server's own libraries (LD_PRELOAD). The first byte of the file named by TESTBED_DISK is the state
 * of the disk: 1 full, 2 read-only; the device of the file is the disk. On a full disk a write that would lengthen a
 * regular file fails with ENOSPC. On a read-only disk every write fails with EROFS, and so does opening a file for
 * writing. Buffered writes of the C library (fwrite) bypass these functions, as do changes of mapped memory. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FULL = 1, READ_ONLY = 2 };

static volatile char *state;
static dev_t device;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TESTBED_DISK");
    struct stat found;
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *at = mmap(0, 1, PROT_READ, MAP_SHARED, file, 0);
    if (at != MAP_FAILED && !fstat(file, &found)) {
        device = found.st_dev;
        state = at;
    }
    close(file);
}

static int is_on_disk(const struct stat *found) {
    return S_ISREG(found->st_mode) && found->st_dev == device;
}

/* Returns the error of a write of `length` bytes at `offset`, or 0. A negative offset means the file's own offset. */
static int refusal(int file, off_t offset, size_t length) {
    struct stat found;
    int kept = errno, now = state ? *state : 0, error = 0;
    if (now && !fstat(file, &found) && is_on_disk(&found)) {
        if (offset < 0) {
            int flags = fcntl(file, F_GETFL);
            offset = flags >= 0 && (flags & O_APPEND) ? found.st_size : lseek(file, 0, SEEK_CUR);
        }
        if (now == READ_ONLY) error = EROFS;
        if (now == FULL && offset + (off_t)length > found.st_size) error = ENOSPC;
    }
    errno = kept;
    return error;
}

static long refuse(int error) {
    errno = error;
    return -1;
}

/* A file that is not there would be created on the disk. */
int open64(const char *path, int flags, ...) {
    struct stat found;
    mode_t mode = 0;
    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    int writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT);
    if (state && *state == READ_ONLY && writes && (stat(path, &found) || is_on_disk(&found))) return refuse(EROFS);
    return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int open(const char *path, int flags, ...) __attribute__((alias("open64")));

static size_t length_of(const struct iovec *parts, int count) {
    size_t length = 0;
    for (int n = 0; n < count; n++) length += parts[n].iov_len;
    return length;
}

ssize_t write(int file, const void *bytes, size_t length) {
    int error = refusal(file, -1, length);
    return error ? refuse(error) : syscall(SYS_write, file, bytes, length);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    int error = refusal(file, -1, length_of(parts, count));
    return error ? refuse(error) : syscall(SYS_writev, file, parts, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
    int error = refusal(file, offset, length);
    return error ? refuse(error) : syscall(SYS_pwrite64, file, bytes, length, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t length, off_t offset) {
    return pwrite64(file, bytes, length, offset);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t offset) {
    size_t length = length_of(parts, count);
    int error = refusal(file, offset, length);
    return error ? refuse(error) : syscall(SYS_pwritev, file, parts, count, offset, 0L);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t offset) {
    return pwritev64(file, parts, count, offset);
}

int fallocate64(int file, int mode, off64_t offset, off64_t length) {
    int error = refusal(file, offset, length);
    return error ? refuse(error) : syscall(SYS_fallocate, file, mode, offset, length);
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
