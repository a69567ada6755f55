/*
 * Seatkeeper: hold a license seat from a program in C99 or newer.
 *
 *     sk_options options = { .size = sizeof options, .server = "https://seats.example", .license_key = "CAD-2030" };
 *     sk_client *client;
 *     sk_error *error;
 *     if (sk_client_open(&options, &client, &error) != SK_OK) { puts(sk_error_message(error)); ... }
 *
 *     sk_request request = { .size = sizeof request, .machine_id = "workstation-7" };
 *     sk_seat *seat;
 *     if (sk_acquire(client, &request, &seat, &error) != SK_OK) { ... }
 *     while (work_to_do() && sk_seat_check(seat) >= 0) work();
 *     sk_seat_release(seat, 2000);
 *     sk_seat_free(seat);
 *     sk_client_close(client, 2000);
 *
 * Results: 0 and above mean that the program may go on, below 0 that it must not.
 *
 * Strings are UTF-8 and end with a zero. A NULL or empty string is the default, except for an empty state_dir. The library
 * copies the strings of a call.
 *
 * Structs begin with `size`, which the caller sets to sizeof the struct. Members are only ever added at the end. Set the
 * members that you do not use to zero, as an initializer does.
 *
 * Threads: each function may be called from any thread. A client has one thread of its own, one more after the first
 * sk_seat_on_change, and some that live for seconds, for files and for the names of hosts. All of them block all signals but
 * those of a fault (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS and SIGABRT), so no other signal handler runs on them. A
 * callback runs on such a thread, and a process that the callback starts inherits the mask: unblock the signals before exec
 * (posix_spawnattr_setsigmask, or sigprocmask in the child).
 *
 * Handles: NULL, a freed handle and a handle of another kind are refused (SK_MISUSE), and never read. After a fork, the
 * handles belong to the parent: in the child, each call answers SK_NOT_OWNER and does nothing. The child opens a client of
 * its own. Handles may be freed in any order.
 *
 * The end of a thread or of the program: destructors of thread-specific data and functions of atexit may call the library.
 *
 * Without room for a thread, sk_client_open and sk_seat_on_change answer SK_INTERNAL. An acquire that wants a thread tries
 * again, and answers SK_UNREACHABLE after patience_ms; heartbeats try again as in an outage.
 *
 * If the thread of a client fails, such as after the program has closed its descriptors, every seat of the client is
 * SK_STATE_LOST at once, with SK_REASON_OTHER and the name "client_ended" in sk_seat_json. Each call in progress, and each
 * later one, that needs the thread answers SK_CLOSED. The program opens a new client.
 *
 * The library prints nothing but the message of such a failure, ends no program, and installs no signal handler.
 *
 * Environment variables: for a server at https:// without a ca_file, the library reads SSL_CERT_FILE and SSL_CERT_DIR, the
 * system's certificate authorities. For SK_PER_PROCESS without a state_dir, the library reads XDG_STATE_HOME and HOME. Parts
 * of the library read variables for tuning: RUST_MIN_STACK, OPENSSL_ia32cap, TOKIO_UNSTABLE_SHARDED_BLOCKING_QUEUE.
 */
#ifndef SEATKEEPER_H
#define SEATKEEPER_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The interface of this header. Libraries with the same major and the same or a higher minor number serve it. */
#define SK_ABI_MAJOR 1
#define SK_ABI_MINOR 1

/* The major number in the upper 16 bits, the minor number in the lower 16. */
uint32_t sk_abi_version(void);

typedef struct sk_client sk_client;
typedef struct sk_seat sk_seat;
typedef struct sk_error sk_error;

/* The results of calls. */
enum {
    SK_OK = 0,
    SK_OFFLINE = 1, /* the server does not answer; the seat is still held */
    SK_GRACE = 2,   /* the deadline has passed in an outage, and the vendor lets the program go on */
    SK_TIMEOUT = 3, /* sk_seat_wait: nothing has changed */

    SK_LOST = -1,         /* the seat is lost: see sk_seat_state */
    SK_UNCONFIRMED = -2,  /* check: the seat is being acquired again; release, close: the server has not confirmed */
    SK_RELEASED = -3,     /* the program gave the seat up */
    SK_DENIED = -4,       /* the server refused: see sk_error_code */
    SK_UNREACHABLE = -5,  /* the server gave no usable answer in time */
    SK_CANCELLED = -6,    /* sk_acquire_cancel */
    SK_CLOSED = -7,       /* the client is closed, or its thread has failed */
    SK_MISUSE = -8,       /* an argument is wrong: see sk_error_message, where the call has one */
    SK_NOT_OWNER = -9,    /* the handle belongs to the parent process */
    SK_INTERNAL = -10,    /* the library failed: no thread, no memory for a handle, or a bug */
    SK_NO_MACHINE_ID = -11 /* a container, or a machine without an id: name the machine yourself */
};

/* The states of a seat. */
enum {
    SK_STATE_ACTIVE = 1,      /* the server confirmed the seat lately */
    SK_STATE_OFFLINE = 2,     /* the server does not answer; the seat is still held */
    SK_STATE_GRACE = 3,       /* past the deadline, and the vendor lets the program go on */
    SK_STATE_REACQUIRING = 4, /* the server ended the session, and the library acquires again by itself */
    SK_STATE_LOST = 5,        /* no seat; with `retry` the library goes on trying */
    SK_STATE_RELEASED = 6     /* the program gave the seat up */
};

/* The reasons of a loss. SK_REASON_OTHER has its name in sk_seat_json: a reason of a later server, or "client_ended". */
enum {
    SK_REASON_NONE = 0,
    SK_REASON_DEADLINE = 1,     /* the server was out of reach until the deadline */
    SK_REASON_UNAUTHORIZED = 2, /* the token may no longer use the license */
    SK_REASON_NOT_FOUND = 3,    /* the server knows no such session, and gives no new one */
    SK_REASON_EXPIRED = 4,      /* the server heard no heartbeat within the TTL */
    SK_REASON_EVICTED = 5,      /* another client took the place */
    SK_REASON_SUPERSEDED = 6,   /* a newer session of the same holder took the place */
    SK_REASON_UPGRADED = 7,     /* a higher tier took the place */
    SK_REASON_REVOKED = 8,      /* a user or an operator ended the session */
    SK_REASON_IDLE = 9,         /* no sk_seat_activity for too long */
    SK_REASON_ENTITLEMENT_ENDED = 10, /* the license was suspended, revoked or came to its date */
    SK_REASON_RELEASED = 11,    /* the session was released, though not by this program */
    SK_REASON_ENDED = 12,       /* the server told no reason */
    SK_REASON_OTHER = 13
};

/* Milliseconds without an end, for wait_ms and sk_seat_wait. */
#define SK_FOREVER UINT32_MAX

/* sk_options.flags: no event streams. The next heartbeat tells the end of a seat, and no connection stays open. */
#define SK_NO_EVENT_STREAMS 1u

/*
 * sk_request.flags: names this process by a slot of the state directory, for licenses that count processes: the same name
 * after a crash of the process, and never the name of another process. Two seats of one process have two names. Without a
 * usable directory the name is random, and `warning` of sk_seat_json tells the reason. An instance_id prevails. An acquire
 * that fails takes up to 2 s longer: its release frees the name for the next try.
 */
#define SK_PER_PROCESS 1u

/* The bytes of a machine id with the zero at its end. */
#define SK_MACHINE_ID_SIZE 33

typedef struct {
    uint32_t size;
    uint32_t connect_timeout_ms; /* 0: 5 s */
    const char *server;          /* http://HOST:PORT or https://HOST:PORT; several nodes are separated by spaces */
    const char *tenant;          /* the tenant of license_key; NULL: `default` */
    const char *license_key;     /* the source of tokens without an identity provider, and the default of requests */
    const char *token;           /* a fixed bearer token */
    const char *token_file;      /* the file of the bearer token, read again when the server rejects the token */
    const char *ca_file;         /* trusted certificate authorities, in PEM; NULL: those of the system */
    const char *app_name;        /* the name of the program, for the audit log */
    const char *app_version;
    uint32_t flags;
    uint32_t reserved;
    const char *state_dir;       /* the directory for SK_PER_PROCESS; NULL: that of the user; "": none, random names */
} sk_options;

typedef struct {
    uint32_t size;
    uint32_t wait_ms;          /* the wait for a seat of a full license; 0: none */
    const char *license_key;   /* NULL: that of the client */
    const char *machine_id;    /* required: see sk_machine_id */
    const char *instance_id;   /* the process, for licenses that count processes */
    const char *metadata_json; /* a JSON object for the audit log, at most 4 KiB */
    uint32_t patience_ms;      /* the time to try a server that does not answer; 0: 10 s */
    uint32_t flags;            /* SK_PER_PROCESS or 0 */
} sk_request;

typedef struct {
    uint32_t size;
    int32_t kind;          /* SK_STATE_... */
    int32_t reason;        /* SK_REASON_..., in SK_STATE_LOST */
    int32_t retry;         /* 1 in SK_STATE_LOST if the library goes on trying to acquire */
    uint64_t remaining_ms; /* the time until the program may no longer go on without a word of the server */
} sk_state;

/*
 * Opens a client, and starts its thread. Sends no request. `error` may be NULL. SK_UNREACHABLE: the server is at https://,
 * there is no ca_file, and this machine has no certificate authorities.
 * SK_OK, SK_UNREACHABLE, SK_MISUSE, SK_INTERNAL.
 */
int32_t sk_client_open(const sk_options *options, sk_client **client, sk_error **error);

/*
 * Gives back every seat of the client, also the seat of an acquire in flight, waits for the server for at most timeout_ms
 * (2000 is enough), stops the callbacks, and frees the client. Its seats answer SK_RELEASED from now on, until sk_seat_free.
 * No callback begins after the close. A callback in progress may outlast timeout_ms: only sk_seat_free and sk_seat_on_change
 * with NULL wait for its return, so the context of a callback lives until one of the two.
 * SK_OK, SK_UNCONFIRMED, SK_CLOSED, SK_MISUSE, SK_NOT_OWNER.
 */
int32_t sk_client_close(sk_client *client, uint32_t timeout_ms);

/*
 * Acquires a seat. Blocks until the server decides, or the wait or the patience is over. `error` may be NULL. The acquire first
 * waits, for 2 s at most, for the releases by the same client of seats of the same license on the same machine.
 * SK_OK, SK_DENIED, SK_UNREACHABLE, SK_CANCELLED, SK_CLOSED, SK_MISUSE, SK_NOT_OWNER.
 */
int32_t sk_acquire(sk_client *client, const sk_request *request, sk_seat **seat, sk_error **error);

/*
 * Ends every sk_acquire of the client that is in flight, from another thread. A seat that comes too late is given back.
 * SK_OK, SK_MISUSE, SK_NOT_OWNER.
 */
int32_t sk_acquire_cancel(sk_client *client);

/*
 * Tells if the program may go on: 0 and above. Reads a clock; makes no system call and waits for nothing.
 * SK_OK, SK_OFFLINE, SK_GRACE, SK_LOST, SK_UNCONFIRMED, SK_RELEASED, SK_MISUSE, SK_NOT_OWNER.
 */
int32_t sk_seat_check(const sk_seat *seat);

/* Writes the state of this instant. SK_OK, SK_MISUSE, SK_NOT_OWNER. */
int32_t sk_seat_state(const sk_seat *seat, sk_state *state);

/*
 * Waits for a change of the state since the acquire or the last wait, for at most timeout_ms, and writes the state. `state`
 * may be NULL. A deadline that moves is no change. One thread at a time may wait for a seat. SK_RELEASED: the last wait has
 * told SK_STATE_RELEASED, or the loss "client_ended", and no change follows.
 * SK_OK, SK_TIMEOUT, SK_RELEASED, SK_MISUSE, SK_NOT_OWNER.
 */
int32_t sk_seat_wait(sk_seat *seat, uint32_t timeout_ms, sk_state *state);

/* A function for changes of a state. `state` lives until the function returns. No exception and no longjmp may leave. */
typedef void (*sk_on_change)(const sk_state *state, void *context);

/*
 * Calls `on_change` for each change, on a thread of the library; at once, if the seat is not active. The function may be
 * slow, and may call each function of the library. It hears no SK_STATE_RELEASED. NULL removes the function. After a call
 * that removes or replaces, the old function has returned, unless it made the call itself.
 * SK_OK, SK_CLOSED, SK_MISUSE, SK_NOT_OWNER, SK_INTERNAL.
 */
int32_t sk_seat_on_change(sk_seat *seat, sk_on_change on_change, void *context);

/* Notes that the user did something, for licenses with an idle time. Sends nothing. SK_OK, SK_MISUSE, SK_NOT_OWNER. */
int32_t sk_seat_activity(sk_seat *seat);

/*
 * Gives the seat back, and waits for the server for at most timeout_ms (2000 is enough). Without an answer in time the
 * release goes on. A second release returns the result of the first. The handle lives until sk_seat_free. SK_RELEASED: the
 * close of the client has given the seat back, and the result of the close tells if the server has confirmed; or the
 * program has left the seat.
 * SK_OK, SK_UNCONFIRMED, SK_RELEASED, SK_CLOSED, SK_MISUSE, SK_NOT_OWNER.
 */
int32_t sk_seat_release(sk_seat *seat, uint32_t timeout_ms);

/*
 * Stops the heartbeats without a release, if a second program of the machine keeps the seat. Otherwise the seat is free
 * after the TTL. A later release does nothing and returns SK_RELEASED; after a release the call has no effect.
 * SK_OK, SK_MISUSE, SK_NOT_OWNER.
 */
int32_t sk_seat_leave(sk_seat *seat);

/*
 * Frees the seat; gives a held seat back in the background. The callback has returned, unless the callback made the call.
 * The last seat of a closed client also ends the thread of the client.
 */
void sk_seat_free(sk_seat *seat);

/*
 * Writes the seat as a JSON object: state, reason, by, retry, request_id, session_id, license_id, instance_id, seats_used,
 * seats_total, warning. The warning is the reason why SK_PER_PROCESS took no slot of the state directory, or null. Returns the
 * length of the whole text without its zero, also if less fits, or SK_MISUSE or SK_NOT_OWNER.
 */
int32_t sk_seat_json(const sk_seat *seat, char *out, size_t capacity);

/* The name of a reason, such as "revoked"; "" for SK_REASON_NONE. Lives as long as the library. */
const char *sk_reason_name(int32_t reason);

/*
 * The code of an error, such as "license-full" or "offline"; a message for people, with a remedy; and a JSON object: code,
 * message, request_id (the request in the server's log, if an answer led to the error), and the fields of the server's problem,
 * such as holders and retry_after_seconds. The texts live until sk_error_free. "" for NULL.
 */
const char *sk_error_code(const sk_error *error);
const char *sk_error_message(const sk_error *error);
const char *sk_error_json(const sk_error *error);
void sk_error_free(sk_error *error);

/*
 * Writes the id of this machine for the program `app_id` (such as "com.example.cad"): 32 hexadecimal digits. Needs
 * SK_MACHINE_ID_SIZE bytes. The same after every start, and different for each program.
 * SK_OK, SK_NO_MACHINE_ID, SK_MISUSE.
 */
int32_t sk_machine_id(const char *app_id, char *out, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
