/* Seats of a real server, through the C interface.
 *
 * SEATS_URL is the server, SEATS_TOKEN a bearer token, and SEATS_REVOKE the command that ends the session whose id follows.
 * The server has the licenses ONE (one seat, open to its key) and MANY. SEATS_CYCLES is the number of cycles. */
#define _DEFAULT_SOURCE

#include <seatkeeper.h>

#include "check.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void sleep_ms(long milliseconds) {
    struct timespec pause = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
    nanosleep(&pause, NULL);
}

static sk_client *client(void) {
    sk_options options = { .size = sizeof options,
                           .server = variable("SEATS_URL"),
                           .token = variable("SEATS_TOKEN"),
                           .app_name = "cad",
                           .app_version = "9.1" };
    sk_client *client;
    sk_error *error;
    CHECK_RESULT(sk_client_open(&options, &client, &error), SK_OK);
    CHECK(client != NULL && error == NULL);
    return client;
}

static sk_request request(const char *license, const char *machine) {
    sk_request request = { .size = sizeof request, .license_key = license, .machine_id = machine };
    return request;
}

static sk_seat *acquire(sk_client *client, const char *license, const char *machine) {
    sk_request wanted = request(license, machine);
    sk_seat *seat;
    sk_error *error;
    int32_t result = sk_acquire(client, &wanted, &seat, &error);
    if (result != SK_OK) {
        fprintf(stderr, "%s for %s: %d %s\n", machine, license, result, sk_error_json(error));
        exit(1);
    }
    CHECK(seat != NULL && error == NULL);
    return seat;
}

static sk_state state_of(const sk_seat *seat) {
    sk_state state = { .size = sizeof state };
    CHECK_RESULT(sk_seat_state(seat, &state), SK_OK);
    return state;
}

static void session_of(const sk_seat *seat, char *out) {
    char json[1024];
    CHECK(sk_seat_json(seat, json, sizeof json) > 0);
    const char *id = strstr(json, "\"session_id\":\"");
    CHECK(id != NULL);
    CHECK(sscanf(id + strlen("\"session_id\":\""), "%36[0-9a-f-]", out) == 1);
}

static void end_session(const sk_seat *seat) {
    char session[37], command[1024];
    session_of(seat, session);
    snprintf(command, sizeof command, "%s %s >/dev/null", variable("SEATS_REVOKE"), session);
    CHECK_RESULT(system(command), 0);
}

static void a_seat_is_taken_looked_at_and_given_back(void) {
    sk_client *c = client();
    sk_seat *seat = acquire(c, "MANY", "m");
    CHECK_RESULT(sk_seat_check(seat), SK_OK);
    sk_state state = state_of(seat);
    CHECK(state.kind == SK_STATE_ACTIVE && state.reason == SK_REASON_NONE && state.retry == 0);
    CHECK(state.remaining_ms > 590000 && state.remaining_ms <= 600000 && state.size == sizeof state);
    CHECK_RESULT(sk_seat_activity(seat), SK_OK);
    char json[1024], cut[8];
    int32_t length = sk_seat_json(seat, json, sizeof json);
    CHECK(length == (int32_t)strlen(json) && strstr(json, "\"state\":\"active\"") != NULL);
    CHECK_RESULT(sk_seat_json(seat, cut, sizeof cut), length);
    CHECK(strlen(cut) == 7 && strncmp(cut, json, 7) == 0);
    CHECK_RESULT(sk_seat_json(seat, NULL, 0), length);
    double began = now();
    CHECK_RESULT(sk_seat_wait(seat, 100, &state), SK_TIMEOUT);
    CHECK(now() - began >= 0.09 && now() - began < 5 && state.kind == SK_STATE_ACTIVE);
    CHECK_RESULT(sk_seat_release(seat, 2000), SK_OK);
    CHECK_RESULT(sk_seat_release(seat, 2000), SK_OK);
    CHECK_RESULT(sk_seat_check(seat), SK_RELEASED);
    CHECK_RESULT(sk_seat_wait(seat, 1000, &state), SK_OK);
    CHECK(state.kind == SK_STATE_RELEASED && state.remaining_ms == 0);
    CHECK_RESULT(sk_seat_wait(seat, 1000, &state), SK_RELEASED);
    CHECK_RESULT(sk_seat_wait(seat, SK_FOREVER, &state), SK_RELEASED);
    CHECK(state.kind == SK_STATE_RELEASED);
    CHECK_RESULT(sk_seat_on_change(seat, NULL, NULL), SK_OK);
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

static void a_seat_that_is_left_stays_with_the_second_program(void) {
    sk_client *c = client(), *other = client();
    sk_seat *left = acquire(c, "MANY", "shared"), *kept = acquire(other, "MANY", "shared");
    char session[37], same[37];
    session_of(left, session);
    session_of(kept, same);
    CHECK(strcmp(session, same) == 0);
    CHECK_RESULT(sk_seat_leave(left), SK_OK);
    CHECK_RESULT(sk_seat_leave(left), SK_OK);
    sk_state state = { .size = sizeof state };
    CHECK_RESULT(sk_seat_wait(left, 30000, &state), SK_OK);
    CHECK(state.kind == SK_STATE_RELEASED);
    CHECK_RESULT(sk_seat_check(left), SK_RELEASED);
    CHECK_RESULT(sk_seat_release(left, 2000), SK_RELEASED);
    sk_seat_free(left);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
    /* A release on the way would end the session before this acquire is answered. */
    sk_seat *third = acquire(other, "MANY", "shared");
    session_of(third, same);
    CHECK(strcmp(session, same) == 0);
    CHECK_RESULT(sk_seat_check(kept), SK_OK);
    CHECK_RESULT(sk_seat_release(kept, 2000), SK_OK);
    CHECK_RESULT(sk_seat_leave(kept), SK_OK);
    CHECK_RESULT(sk_seat_release(kept, 2000), SK_OK);
    sk_seat_free(kept);
    sk_seat_free(third);
    CHECK_RESULT(sk_client_close(other, 2000), SK_OK);
}

static void a_full_license_names_its_holders(void) {
    sk_client *c = client();
    sk_seat *held = acquire(c, "ONE", "workstation-7");
    sk_request wanted = request("ONE", "laptop");
    sk_seat *seat = held;
    sk_error *error = NULL;
    CHECK_RESULT(sk_acquire(c, &wanted, &seat, &error), SK_DENIED);
    CHECK(seat == NULL && strcmp(sk_error_code(error), "license-full") == 0);
    CHECK(strncmp(sk_error_message(error), "license-full: ", 14) == 0);
    CHECK(strstr(sk_error_message(error), ". Remedy: wait for a seat, or ask one of the holders") != NULL);
    CHECK(strstr(sk_error_json(error), "\"request_id\":\"") != NULL);
    CHECK(strstr(sk_error_json(error), "\"holders\":[{\"instance_id\":null,\"machine_id\":\"workstation-7\"}]"));
    CHECK(strstr(sk_error_json(error), "\"seats_total\":1"));
    sk_error_free(error);
    CHECK(strcmp(sk_error_code(error), "misuse") == 0);
    sk_error_free(error);
    CHECK_RESULT(sk_acquire(c, &wanted, &seat, NULL), SK_DENIED);
    sk_seat_free(held);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

/* What a callback heard. */
typedef struct {
    pthread_mutex_t lock;
    sk_state last;
    int entries, calls, check;
    pthread_t thread;
    sk_seat *seat;
    long pause_ms;
    int free_seat;
} heard_t;

static void hear(const sk_state *state, void *context) {
    heard_t *heard = context;
    pthread_mutex_lock(&heard->lock);
    heard->entries++;
    pthread_mutex_unlock(&heard->lock);
    if (heard->pause_ms > 0) {
        sleep_ms(heard->pause_ms);
    }
    int check = sk_seat_check(heard->seat);
    pthread_mutex_lock(&heard->lock);
    heard->last = *state;
    heard->calls++;
    heard->check = check;
    heard->thread = pthread_self();
    pthread_mutex_unlock(&heard->lock);
    if (heard->free_seat) {
        sk_seat_free(heard->seat);
    }
}

static int calls(heard_t *heard) {
    pthread_mutex_lock(&heard->lock);
    int calls = heard->calls;
    pthread_mutex_unlock(&heard->lock);
    return calls;
}

static int entries(heard_t *heard) {
    pthread_mutex_lock(&heard->lock);
    int entries = heard->entries;
    pthread_mutex_unlock(&heard->lock);
    return entries;
}

/* Waits until `count` of `heard` is `wanted`. */
static void await(int (*count)(heard_t *), heard_t *heard, int wanted) {
    for (double began = now(); count(heard) < wanted; sleep_ms(5)) {
        CHECK(now() - began < 10);
    }
}

static void a_revoked_seat_is_told_at_once_by_callback_check_and_wait(void) {
    sk_client *c = client();
    sk_seat *seat = acquire(c, "ONE", "m");
    heard_t heard = { .lock = PTHREAD_MUTEX_INITIALIZER, .seat = seat };
    CHECK_RESULT(sk_seat_on_change(seat, hear, &heard), SK_OK);
    sleep_ms(500); /* the event stream opens */
    CHECK(calls(&heard) == 0);
    end_session(seat);
    double revoked = now();
    await(calls, &heard, 1);
    CHECK(now() - revoked < 1.5);
    CHECK(heard.last.kind == SK_STATE_LOST && heard.last.reason == SK_REASON_REVOKED && heard.last.retry == 0);
    CHECK(heard.last.size == sizeof heard.last && heard.last.remaining_ms == 0);
    CHECK(strcmp(sk_reason_name(heard.last.reason), "revoked") == 0);
    CHECK(heard.check == SK_LOST && !pthread_equal(heard.thread, pthread_self()));
    CHECK_RESULT(sk_seat_check(seat), SK_LOST);
    sk_state state = { .size = sizeof state };
    CHECK_RESULT(sk_seat_wait(seat, 0, &state), SK_OK);
    CHECK(state.kind == SK_STATE_LOST && state.reason == SK_REASON_REVOKED);
    CHECK_RESULT(sk_seat_wait(seat, 0, &state), SK_TIMEOUT);

    heard_t late = { .lock = PTHREAD_MUTEX_INITIALIZER, .seat = seat };
    CHECK_RESULT(sk_seat_on_change(seat, hear, &late), SK_OK);
    await(calls, &late, 1);
    CHECK(late.last.kind == SK_STATE_LOST && heard.calls == 1);

    sk_seat *next = acquire(c, "ONE", "n");
    CHECK_RESULT(sk_seat_check(next), SK_OK);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
    CHECK_RESULT(sk_seat_on_change(next, hear, &heard), SK_CLOSED);
    sk_seat_free(next);
    sk_seat_free(seat);
}

static void a_callback_has_returned_after_the_free_and_may_free_its_seat(void) {
    sk_client *c = client();
    sk_seat *seat = acquire(c, "MANY", "m");
    heard_t heard = { .lock = PTHREAD_MUTEX_INITIALIZER, .seat = seat, .pause_ms = 400 };
    CHECK_RESULT(sk_seat_on_change(seat, hear, &heard), SK_OK);
    end_session(seat);
    await(entries, &heard, 1); /* the callback runs, and sleeps */
    sk_seat_free(seat);
    CHECK(heard.calls == 1);
    CHECK(heard.check == SK_MISUSE);

    sk_seat *own = acquire(c, "MANY", "n");
    heard_t last = { .lock = PTHREAD_MUTEX_INITIALIZER, .seat = own, .free_seat = 1 };
    CHECK_RESULT(sk_seat_on_change(own, hear, &last), SK_OK);
    end_session(own);
    await(calls, &last, 1);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
    CHECK_RESULT(sk_seat_check(own), SK_MISUSE);
}

static void handles_are_freed_in_any_order(void) {
    sk_client *c = client();
    sk_seat *one = acquire(c, "ONE", "m"), *many = acquire(c, "MANY", "m");
    sk_seat_free(one);
    sk_seat_free(one);
    CHECK_RESULT(sk_seat_check(one), SK_MISUSE);
    CHECK_RESULT(sk_seat_release(one, 2000), SK_MISUSE);
    sk_request wanted = request("ONE", "n");
    wanted.wait_ms = 10000;
    sk_seat *two;
    CHECK_RESULT(sk_acquire(c, &wanted, &two, NULL), SK_OK); /* the free gives the seat back */
    CHECK(two != one);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
    CHECK_RESULT(sk_client_close(c, 2000), SK_MISUSE);
    CHECK_RESULT(sk_seat_check(many), SK_RELEASED);
    CHECK_RESULT(sk_seat_release(two, 2000), SK_RELEASED);
    CHECK_RESULT(sk_seat_release(two, 2000), SK_RELEASED);
    sk_seat_free(two);
    sk_seat_free(many);
    CHECK_RESULT(sk_acquire(c, &wanted, &two, NULL), SK_MISUSE);
    c = client();
    sk_seat_free(acquire(c, "ONE", "o")); /* the close gave every seat back */
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

static void a_forked_child_touches_nothing_of_its_parent(void) {
    sk_client *c = client();
    sk_seat *seat = acquire(c, "ONE", "m");
    sk_request wanted = request("MANY", "m");
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        sk_state state = { .size = sizeof state };
        sk_seat *other;
        sk_error *error;
        CHECK_RESULT(sk_seat_check(seat), SK_NOT_OWNER);
        CHECK_RESULT(sk_seat_activity(seat), SK_NOT_OWNER);
        CHECK_RESULT(sk_seat_state(seat, &state), SK_NOT_OWNER);
        CHECK_RESULT(sk_seat_wait(seat, SK_FOREVER, &state), SK_NOT_OWNER);
        CHECK_RESULT(sk_seat_json(seat, NULL, 0), SK_NOT_OWNER);
        CHECK_RESULT(sk_seat_on_change(seat, hear, NULL), SK_NOT_OWNER);
        CHECK_RESULT(sk_seat_release(seat, 2000), SK_NOT_OWNER);
        CHECK_RESULT(sk_acquire_cancel(c), SK_NOT_OWNER);
        CHECK_RESULT(sk_acquire(c, &wanted, &other, &error), SK_NOT_OWNER);
        CHECK(strcmp(sk_error_code(error), "not-owner") == 0);
        sk_seat_free(seat);
        CHECK_RESULT(sk_seat_check(seat), SK_NOT_OWNER);
        CHECK_RESULT(sk_client_close(c, 2000), SK_NOT_OWNER);
        sk_client *own = client();
        other = acquire(own, "MANY", "child");
        CHECK_RESULT(sk_seat_check(other), SK_OK);
        CHECK_RESULT(sk_seat_release(other, 2000), SK_OK);
        sk_seat_free(other);
        CHECK_RESULT(sk_client_close(own, 2000), SK_OK);
        _exit(0); /* the leak check of a sanitizer misses the threads of the parent */
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_RESULT(WEXITSTATUS(status), 0);
    CHECK_RESULT(sk_seat_check(seat), SK_OK);
    sk_seat *refused;
    wanted = request("ONE", "n");
    CHECK_RESULT(sk_acquire(c, &wanted, &refused, NULL), SK_DENIED); /* the server still has the parent's seat */
    CHECK_RESULT(sk_seat_release(seat, 2000), SK_OK);
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

/* Cancels acquires until `is_over`: a cancel does nothing to an acquire that begins later. */
typedef struct {
    sk_client *client;
    pthread_mutex_t lock;
    int is_over;
} canceller_t;

static int is_over(canceller_t *canceller) {
    pthread_mutex_lock(&canceller->lock);
    int is_over = canceller->is_over;
    pthread_mutex_unlock(&canceller->lock);
    return is_over;
}

static void *keep_cancelling(void *context) {
    canceller_t *canceller = context;
    while (!is_over(canceller)) {
        sleep_ms(300);
        CHECK_RESULT(sk_acquire_cancel(canceller->client), SK_OK);
    }
    return NULL;
}

static void a_wait_is_cancelled_or_ends_with_a_seat(void) {
    sk_client *c = client();
    sk_seat *held = acquire(c, "ONE", "m"), *seat;
    sk_request wanted = request("ONE", "n");
    wanted.wait_ms = SK_FOREVER;
    sk_error *error;
    pthread_t thread;
    canceller_t canceller = { .client = c, .lock = PTHREAD_MUTEX_INITIALIZER };
    double began = now();
    CHECK(pthread_create(&thread, NULL, keep_cancelling, &canceller) == 0);
    CHECK_RESULT(sk_acquire(c, &wanted, &seat, &error), SK_CANCELLED);
    pthread_mutex_lock(&canceller.lock);
    canceller.is_over = 1;
    pthread_mutex_unlock(&canceller.lock);
    CHECK(now() - began < 5 && strcmp(sk_error_code(error), "cancelled") == 0);
    sk_error_free(error);
    pthread_join(thread, NULL);
    wanted.wait_ms = 20000;
    sk_seat_free(held);
    CHECK_RESULT(sk_acquire(c, &wanted, &seat, NULL), SK_OK); /* no acquire that begins later is cancelled */
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

static void wrong_arguments_are_refused_with_a_reason(void) {
    struct {
        sk_options options;
        const char *message;
    } cases[] = {
        { { .size = 0 }, "sizeof(sk_options)" },
        { { .size = sizeof(sk_options) }, "server is missing" },
        { { .size = sizeof(sk_options), .server = "http://127.0.0.1:1" }, "want one of license_key" },
        { { .size = sizeof(sk_options), .server = "seats", .token = "t" }, "want http://HOST:PORT" },
        { { .size = sizeof(sk_options), .server = "\xff", .token = "t" }, "server is not UTF-8" },
        { { .size = sizeof(sk_options), .server = "http://a", .token = "t", .flags = 64 }, "unknown flag" },
        { { .size = sizeof(sk_options), .server = "http://a", .token = "t", .token_file = "f" }, "exclude" },
        { { .size = sizeof(sk_options), .server = "http://a", .token = "t", .ca_file = "/none" }, "/none" },
    };
    sk_client *c = NULL;
    sk_error *error = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_RESULT(sk_client_open(&cases[i].options, &c, &error), SK_MISUSE);
        CHECK(c == NULL && strcmp(sk_error_code(error), "misuse") == 0);
        if (strstr(sk_error_message(error), cases[i].message) == NULL) {
            fprintf(stderr, "case %d: %s\n", (int)i, sk_error_message(error));
            exit(1);
        }
        sk_error_free(error);
    }
    CHECK_RESULT(sk_client_open(NULL, &c, &error), SK_MISUSE);
    sk_error_free(error);
    CHECK_RESULT(sk_client_open(&cases[1].options, NULL, NULL), SK_MISUSE);

    c = client();
    sk_seat *seat;
    sk_request bad[] = { request("MANY", NULL), request(NULL, "m"), request("MANY", "m"), request("MANY", "m") };
    bad[2].metadata_json = "[1]";
    bad[3].size = 7;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_RESULT(sk_acquire(c, &bad[i], &seat, NULL), SK_MISUSE);
    }
    CHECK_RESULT(sk_acquire(c, NULL, &seat, NULL), SK_MISUSE);
    bad[2].metadata_json = "{\"project\":\"bridge\"}";
    CHECK_RESULT(sk_acquire(c, &bad[2], NULL, NULL), SK_MISUSE);
    CHECK_RESULT(sk_acquire(c, &bad[2], &seat, NULL), SK_OK);
    sk_state small = { .size = 4 };
    CHECK_RESULT(sk_seat_state(seat, NULL), SK_MISUSE);
    CHECK_RESULT(sk_seat_state(seat, &small), SK_MISUSE);
    CHECK_RESULT(sk_seat_wait(seat, 0, &small), SK_MISUSE);

    /* A handle of another kind, and numbers that are none. */
    int local = 0;
    void *garbage[] = { NULL, c, &local, (void *)1, (void *)~(uintptr_t)0, (char *)seat + 1, (char *)seat + 4096 };
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        sk_seat *none = (sk_seat *)garbage[i];
        sk_state state = { .size = sizeof state };
        CHECK_RESULT(sk_seat_check(none), SK_MISUSE);
        CHECK_RESULT(sk_seat_state(none, &state), SK_MISUSE);
        CHECK_RESULT(sk_seat_wait(none, 0, &state), SK_MISUSE);
        CHECK_RESULT(sk_seat_on_change(none, hear, NULL), SK_MISUSE);
        CHECK_RESULT(sk_seat_activity(none), SK_MISUSE);
        CHECK_RESULT(sk_seat_release(none, 0), SK_MISUSE);
        CHECK_RESULT(sk_seat_json(none, NULL, 0), SK_MISUSE);
        sk_seat_free(none);
        sk_error_free((sk_error *)garbage[i]);
        CHECK(strcmp(sk_error_code((sk_error *)garbage[i]), garbage[i] == NULL ? "" : "misuse") == 0);
        if (garbage[i] != c) {
            CHECK_RESULT(sk_acquire_cancel((sk_client *)garbage[i]), SK_MISUSE);
            CHECK_RESULT(sk_client_close((sk_client *)garbage[i], 0), SK_MISUSE);
        }
    }
    CHECK_RESULT(sk_seat_check(seat), SK_OK);
    CHECK_RESULT(sk_client_close((sk_client *)(void *)seat, 0), SK_MISUSE);
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);

    char id[SK_MACHINE_ID_SIZE];
    CHECK_RESULT(sk_machine_id("app", NULL, 0), SK_MISUSE);
    CHECK_RESULT(sk_machine_id("app", id, sizeof id - 1), SK_MISUSE);
    CHECK_RESULT(sk_machine_id("", id, sizeof id), SK_MISUSE);
    CHECK_RESULT(sk_machine_id(NULL, id, sizeof id), SK_MISUSE);
    int32_t result = sk_machine_id("app", id, sizeof id);
    CHECK(result == SK_OK ? strlen(id) == 32 : (result == SK_NO_MACHINE_ID && id[0] == 0));
    CHECK(strcmp(sk_reason_name(-1), "other") == 0 && strcmp(sk_reason_name(99), "other") == 0);
    CHECK(strcmp(sk_reason_name(SK_REASON_NONE), "") == 0);
    CHECK(sk_abi_version() == ((uint32_t)SK_ABI_MAJOR << 16 | SK_ABI_MINOR));
}

static void a_server_that_is_away_is_unreachable_in_time(void) {
    sk_options options = { .size = sizeof options, .server = "http://127.0.0.1:1 http://127.0.0.1:2", .token = "t" };
    sk_client *c;
    CHECK_RESULT(sk_client_open(&options, &c, NULL), SK_OK);
    sk_request wanted = request("MANY", "m");
    wanted.patience_ms = 200;
    sk_seat *seat;
    sk_error *error;
    double began = now();
    CHECK_RESULT(sk_acquire(c, &wanted, &seat, &error), SK_UNREACHABLE);
    CHECK(now() - began < 5 && strcmp(sk_error_code(error), "offline") == 0);
    sk_error_free(error);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

static void a_key_alone_is_enough(void) {
    sk_options options = { .size = sizeof options, .server = variable("SEATS_URL"), .license_key = "ONE" };
    sk_client *c;
    CHECK_RESULT(sk_client_open(&options, &c, NULL), SK_OK);
    sk_seat *seat = acquire(c, NULL, "m");
    CHECK_RESULT(sk_seat_release(seat, 2000), SK_OK);
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
    options.license_key = "NONE";
    sk_error *error;
    CHECK_RESULT(sk_client_open(&options, &c, NULL), SK_OK);
    sk_request wanted = request(NULL, "m");
    CHECK_RESULT(sk_acquire(c, &wanted, &seat, &error), SK_DENIED);
    CHECK(strcmp(sk_error_code(error), "license-not-found") == 0);
    sk_error_free(error);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

static int count(const char *folder) {
    DIR *entries = opendir(folder);
    CHECK(entries != NULL);
    int count = 0;
    while (readdir(entries) != NULL) {
        count++;
    }
    closedir(entries);
    return count;
}

static long resident_kib(void) {
    FILE *file = fopen("/proc/self/statm", "r");
    long size, resident;
    CHECK(file != NULL && fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Returns the number of threads of the library that block signals; `wrong` counts threads with the other one's signals. */
static int blocking_threads(int *wrong) {
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    int found = 0;
    *wrong = 0;
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        char path[300], line[256], name[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        unsigned long long blocked = 0;
        while (status != NULL && fgets(line, sizeof line, status) != NULL) {
            sscanf(line, "Name: %63s", name);
            sscanf(line, "SigBlk: %llx", &blocked);
        }
        if (status != NULL) {
            fclose(status);
        }
        int is_pipe_blocked = (blocked >> (SIGPIPE - 1) & 1) != 0, is_term_blocked = (blocked >> (SIGTERM - 1) & 1) != 0;
        int is_ours = strncmp(name, "seatkeeper", 10) == 0;
        found += is_ours && is_pipe_blocked && is_term_blocked;
        *wrong += is_pipe_blocked != is_ours || is_term_blocked != is_ours;
    }
    closedir(tasks);
    return found;
}

static void threads_of_the_library_block_every_signal(void) {
    sk_client *c = client();
    sk_seat *seat = acquire(c, "MANY", "m");
    CHECK_RESULT(sk_seat_on_change(seat, hear, NULL), SK_OK);
    /* A new thread sets its name itself, and until then has that of its creator. */
    int wrong, found;
    for (double began = now(); found = blocking_threads(&wrong), (found != 2 || wrong != 0) && now() - began < 10;) {
        sleep_ms(5);
    }
    CHECK_RESULT(wrong, 0);
    CHECK_RESULT(found, 2);
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

static sigjmp_buf out_of_the_fault;
static char *forbidden;

static void leave_the_fault(int number) {
    (void)number;
    siglongjmp(out_of_the_fault, 1);
}

/* Reads a page that the process may not read. */
static void fault(const sk_state *state, void *context) {
    (void)state;
    int *caught = context;
    if (sigsetjmp(out_of_the_fault, 1) == 0) {
        *caught = 1 + *(volatile char *)forbidden;
    } else {
        __atomic_store_n(caught, -1, __ATOMIC_RELEASE);
    }
}

static void a_fault_in_a_callback_reaches_the_handler_of_the_program(void) {
    forbidden = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(forbidden != MAP_FAILED);
    struct sigaction leave = { .sa_handler = leave_the_fault }, before;
    CHECK(sigaction(SIGSEGV, &leave, &before) == 0);
    sk_client *c = client();
    sk_seat *seat = acquire(c, "MANY", "m");
    int caught = 0;
    end_session(seat);
    CHECK_RESULT(sk_seat_on_change(seat, fault, &caught), SK_OK);
    for (double began = now(); __atomic_load_n(&caught, __ATOMIC_ACQUIRE) == 0 && now() - began < 10;) {
        sleep_ms(5);
    }
    sk_seat_free(seat);
    CHECK_RESULT(caught, -1);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
    munmap(forbidden, 1);
}

/* Waits until the process has no more threads than `most`: a joined thread leaves /proc a moment later. */
static void await_threads(int most) {
    for (double began = now(); count("/proc/self/task") > most && now() - began < 10;) {
        sleep_ms(5);
    }
}

static void cycles_grow_neither_files_nor_threads(void) {
    const char *wanted = getenv("SEATS_CYCLES");
    int cycles = wanted != NULL ? atoi(wanted) : 1000;
    int files = 0, threads = 0;
    long memory = 0;
    for (int cycle = 0; cycle <= cycles; cycle++) {
        sk_client *c = client();
        sk_seat *seat = acquire(c, "MANY", "m");
        CHECK_RESULT(sk_seat_on_change(seat, hear, NULL), SK_OK);
        if (cycle % 2 == 0) {
            CHECK_RESULT(sk_seat_release(seat, 2000), SK_OK);
            sk_seat_free(seat);
            CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
        } else {
            CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
            sk_seat_free(seat);
        }
        if (cycle == cycles / 10) {
            files = count("/proc/self/fd");
            await_threads(1);
            threads = count("/proc/self/task");
            memory = resident_kib();
        }
    }
    CHECK_RESULT(count("/proc/self/fd"), files);
    await_threads(threads);
    CHECK_RESULT(count("/proc/self/task"), threads);
    printf("%d cycles: %ld KiB resident after a tenth, %ld KiB at the end\n", cycles, memory, resident_kib());
    CHECK(getenv("SEATS_MEMORY_UNBOUNDED") != NULL || resident_kib() - memory < 4096);
}

typedef struct {
    const char *name;
    void (*run)(void);
} test_t;

#define TEST(name) { #name, name }

static const test_t TESTS[] = {
    TEST(a_seat_is_taken_looked_at_and_given_back),
    TEST(a_seat_that_is_left_stays_with_the_second_program),
    TEST(a_full_license_names_its_holders),
    TEST(a_revoked_seat_is_told_at_once_by_callback_check_and_wait),
    TEST(a_callback_has_returned_after_the_free_and_may_free_its_seat),
    TEST(handles_are_freed_in_any_order),
    TEST(a_forked_child_touches_nothing_of_its_parent),
    TEST(a_wait_is_cancelled_or_ends_with_a_seat),
    TEST(wrong_arguments_are_refused_with_a_reason),
    TEST(a_server_that_is_away_is_unreachable_in_time),
    TEST(a_key_alone_is_enough),
    TEST(threads_of_the_library_block_every_signal),
    TEST(a_fault_in_a_callback_reaches_the_handler_of_the_program),
    TEST(cycles_grow_neither_files_nor_threads),
};

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof TESTS / sizeof TESTS[0]; i++) {
        if (!CHILD_MAY_ALLOCATE && TESTS[i].run == a_forked_child_touches_nothing_of_its_parent) {
            continue;
        }
        if (argc < 2 || strstr(TESTS[i].name, argv[1]) != NULL) {
            double began = now();
            TESTS[i].run();
            printf("ok %s (%.2f s)\n", TESTS[i].name, now() - began);
        }
    }
    return 0;
}
