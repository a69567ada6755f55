/* Drives the C library by JSON lines; crates/sdk-conformance/src/driver.rs explains the commands. */
#define _POSIX_C_SOURCE 200809L

#include <seatkeeper.h>

#include "line.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { SEATS_MAX = 1024 };

/* A seat under its name in the commands. */
struct entry {
    char *name;
    sk_seat *seat;
};

static sk_client *client;
static struct entry entries[SEATS_MAX];
static int entry_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *kind_name(int32_t kind) {
    switch (kind) {
    case SK_STATE_ACTIVE: return "active";
    case SK_STATE_OFFLINE: return "offline";
    case SK_STATE_GRACE: return "grace";
    case SK_STATE_REACQUIRING: return "reacquiring";
    case SK_STATE_LOST: return "lost";
    case SK_STATE_RELEASED: return "released";
    default: fprintf(stderr, "the state %d\n", (int)kind); exit(2);
    }
}

/* Prints a change of a seat's state. */
static void tell(const sk_state *state, void *name) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double at = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
    char loss[128] = "";
    if (state->kind == SK_STATE_LOST) {
        snprintf(loss, sizeof loss, ",\"reason\":\"%s\",\"retry\":%s", sk_reason_name(state->reason),
                 state->retry ? "true" : "false");
    }
    printf("{\"seat\":\"%s\",\"at\":%.3f,\"state\":{\"kind\":\"%s\"%s}}\n", (char *)name, at, kind_name(state->kind), loss);
}

/* Prints the error of a command, and frees the error. */
static void fail(const char *id, sk_error *error) {
    printf("{\"id\":%s,\"error\":{\"code\":\"%s\"}}\n", id, sk_error_code(error));
    sk_error_free(error);
}

/* Returns the latest seat of a name, or NULL. */
static sk_seat *seat_of(const char *line) {
    char name[TEXT_MAX];
    sk_seat *seat = NULL;
    pthread_mutex_lock(&lock);
    for (int place = entry_count; member(line, "seat", name) && seat == NULL && place > 0; place--) {
        seat = strcmp(entries[place - 1].name, name) == 0 ? entries[place - 1].seat : NULL;
    }
    pthread_mutex_unlock(&lock);
    return seat;
}

/* Opens a client with the options of a command. */
static int32_t open_client(const char *line, sk_client **opened, sk_error **error) {
    char streams[TEXT_MAX] = "";
    member(line, "event_streams", streams);
    char *texts[] = { member_copy(line, "url"), member_copy(line, "token"), member_copy(line, "token_file"),
                      member_copy(line, "license_key"), member_copy(line, "ca_file") };
    sk_options options = { .size = sizeof options, .server = texts[0], .token = texts[1], .token_file = texts[2],
                           .license_key = texts[3], .ca_file = texts[4] };
    options.flags = strcmp(streams, "true") == 0 ? 0 : SK_NO_EVENT_STREAMS;
    int32_t result = sk_client_open(&options, opened, error);
    for (size_t place = 0; place < sizeof texts / sizeof *texts; place++) {
        free(texts[place]);
    }
    return result;
}

static void do_open(const char *line, const char *id) {
    sk_error *error = NULL;
    if (open_client(line, &client, &error) == SK_OK) {
        printf("{\"id\":%s,\"ok\":true}\n", id);
    } else {
        fail(id, error);
    }
}

/* Opens a client, acquires, releases and closes, again and again. */
static void do_cycles(const char *line, const char *id) {
    char *key = member_copy(line, "license_key"), *machine = member_copy(line, "machine");
    sk_request request = { .size = sizeof request, .license_key = key, .machine_id = machine };
    sk_error *error = NULL;
    for (unsigned left = member_ms(line, "count") / 1000; left > 0 && error == NULL; left--) {
        sk_client *opened = NULL;
        sk_seat *seat = NULL;
        if (open_client(line, &opened, &error) == SK_OK && sk_acquire(opened, &request, &seat, &error) == SK_OK) {
            sk_seat_release(seat, 2000);
        }
        sk_seat_free(seat);
        sk_client_close(opened, 2000);
    }
    if (error == NULL) {
        printf("{\"id\":%s,\"ok\":true}\n", id);
    } else {
        fail(id, error);
    }
    free(key);
    free(machine);
}

/* Measures sk_seat_check, the best of ten rounds. */
static void do_check(const char *line, const char *id) {
    sk_seat *seat = seat_of(line);
    unsigned calls = member_ms(line, "calls") / 1000;
    double best = 1e9;
    for (int round = 0; round < 10; round++) {
        struct timespec begin, end;
        int32_t bad = 0;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (unsigned call = 0; call < calls; call++) {
            bad |= sk_seat_check(seat);
        }
        clock_gettime(CLOCK_MONOTONIC, &end);
        double each = ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / calls;
        best = bad == SK_OK && each < best ? each : best;
    }
    printf("{\"id\":%s,\"nanoseconds\":%.1f}\n", id, best);
}

/* Enters a seat, and tells its states from now on. An acquired seat begins as active. */
static void hold(sk_seat *seat, char *name) {
    pthread_mutex_lock(&lock);
    if (entry_count == SEATS_MAX) {
        fprintf(stderr, "too many seats\n");
        exit(2);
    }
    entries[entry_count++] = (struct entry){ name, seat };
    pthread_mutex_unlock(&lock);
    sk_state state = { .size = sizeof state, .kind = SK_STATE_ACTIVE };
    tell(&state, name);
    sk_seat_on_change(seat, tell, name);
}

static void do_acquire(const char *line, const char *id) {
    char *key = member_copy(line, "license_key"), *machine = member_copy(line, "machine");
    sk_request request = { .size = sizeof request, .license_key = key, .machine_id = machine };
    request.wait_ms = member_ms(line, "wait");
    request.patience_ms = member_ms(line, "patience");
    sk_seat *seat = NULL;
    sk_error *error = NULL;
    if (sk_acquire(client, &request, &seat, &error) == SK_OK) {
        char json[TEXT_MAX], session[TEXT_MAX];
        sk_seat_json(seat, json, sizeof json);
        member(json, "session_id", session);
        hold(seat, member_copy(line, "seat"));
        printf("{\"id\":%s,\"session\":\"%s\"}\n", id, session);
    } else {
        fail(id, error);
    }
    free(key);
    free(machine);
}

static void do_state(const char *id) {
    pthread_mutex_lock(&lock);
    flockfile(stdout);
    printf("{\"id\":%s,\"states\":{", id);
    for (int place = 0; place < entry_count; place++) {
        sk_state state = { .size = sizeof state };
        sk_seat_state(entries[place].seat, &state);
        const char *valid = sk_seat_check(entries[place].seat) >= 0 ? "true" : "false";
        printf("%s\"%s\":{\"kind\":\"%s\",\"valid\":%s}", place == 0 ? "" : ",", entries[place].name, kind_name(state.kind), valid);
    }
    printf("}}\n");
    funlockfile(stdout);
    pthread_mutex_unlock(&lock);
}

/* Obeys a command, prints the answer, and frees the line. */
static void *obey(void *argument) {
    char *line = argument, name[TEXT_MAX] = "", id[TEXT_MAX] = "";
    member(line, "do", name);
    member(line, "id", id);
    if (strcmp(name, "open") == 0) {
        do_open(line, id);
    } else if (strcmp(name, "acquire") == 0) {
        do_acquire(line, id);
    } else if (strcmp(name, "state") == 0) {
        do_state(id);
    } else if (strcmp(name, "activity") == 0) {
        sk_seat_activity(seat_of(line));
        printf("{\"id\":%s,\"ok\":true}\n", id);
    } else if (strcmp(name, "release") == 0) {
        int confirmed = sk_seat_release(seat_of(line), 2000) == SK_OK;
        printf("{\"id\":%s,\"confirmed\":%s}\n", id, confirmed ? "true" : "false");
    } else if (strcmp(name, "close") == 0) {
        sk_client_close(client, 2000);
        printf("{\"id\":%s,\"ok\":true}\n", id);
    } else if (strcmp(name, "check") == 0) {
        do_check(line, id);
    } else if (strcmp(name, "cycles") == 0) {
        do_cycles(line, id);
    } else if (strcmp(name, "crash") == 0) {
        kill(getpid(), SIGKILL);
    } else {
        fprintf(stderr, "no command is named %s\n", name);
        exit(2);
    }
    free(line);
    return NULL;
}

/* Returns true for a command that waits for the server, and so gets a thread of its own. */
static int waits(const char *line) {
    char name[TEXT_MAX];
    const char *waiting[] = { "acquire", "release", "close", "cycles" };
    int found = 0;
    for (size_t place = 0; member(line, "do", name) && place < sizeof waiting / sizeof *waiting; place++) {
        found |= strcmp(name, waiting[place]) == 0;
    }
    return found;
}

int main(void) {
    char *line = NULL;
    size_t capacity = 0;
    setvbuf(stdout, NULL, _IOLBF, 1 << 16);
    while (getline(&line, &capacity, stdin) > 0) {
        char *command = strdup(line);
        pthread_t thread;
        if (!waits(command)) {
            obey(command);
        } else if (pthread_create(&thread, NULL, obey, command) == 0) {
            pthread_detach(thread);
        } else {
            fprintf(stderr, "no thread for a command\n");
            return 2;
        }
    }
    return 0;
}
