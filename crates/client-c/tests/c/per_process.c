/* Processes under a license that counts processes.
 *
 * SEATS_URL is the server, SEATS_TOKEN a bearer token, SEATS_KEY the license, SEATS_MACHINE the machine, and SEATS_STATE a
 * folder for state directories. With the argument "hold" the program takes a seat, prints its id, and waits for a signal. */
#define _DEFAULT_SOURCE

#include <seatkeeper.h>

#include "check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEXT_MAX 512

static sk_client *client(const char *state_dir) {
    sk_options options = { .size = sizeof options,
                           .server = variable("SEATS_URL"),
                           .token = variable("SEATS_TOKEN"),
                           .state_dir = state_dir };
    sk_client *client;
    CHECK_RESULT(sk_client_open(&options, &client, NULL), SK_OK);
    return client;
}

static sk_request request(void) {
    sk_request request = { .size = sizeof request,
                           .license_key = variable("SEATS_KEY"),
                           .machine_id = variable("SEATS_MACHINE"),
                           .flags = SK_PER_PROCESS };
    return request;
}

static sk_seat *acquire(sk_client *client) {
    sk_request wanted = request();
    sk_seat *seat;
    sk_error *error;
    if (sk_acquire(client, &wanted, &seat, &error) != SK_OK) {
        fprintf(stderr, "%s\n", sk_error_json(error));
        exit(1);
    }
    return seat;
}

/* Copies a text of the seat; an empty text for null. */
static const char *text_of(const sk_seat *seat, const char *name, char out[TEXT_MAX]) {
    char json[2048], member[64];
    CHECK(sk_seat_json(seat, json, sizeof json) > 0);
    snprintf(member, sizeof member, "\"%s\":", name);
    const char *value = strstr(json, member);
    CHECK(value != NULL);
    value += strlen(member);
    size_t length = *value == '"' ? strcspn(value + 1, "\"") : 0;
    CHECK(length < TEXT_MAX);
    memcpy(out, value + 1, length);
    out[length] = 0;
    return out;
}

/* Copies the path of a folder below SEATS_STATE. */
static const char *folder(const char *name, char out[TEXT_MAX]) {
    CHECK(snprintf(out, TEXT_MAX, "%s/%s", variable("SEATS_STATE"), name) < TEXT_MAX);
    return out;
}

static void two_seats_have_two_ids_and_a_released_id_comes_again(void) {
    char path[TEXT_MAX], one[TEXT_MAX], two[TEXT_MAX], text[TEXT_MAX];
    sk_client *c = client(folder("two", path));
    sk_seat *first = acquire(c), *second = acquire(c);
    text_of(first, "instance_id", one);
    text_of(second, "instance_id", two);
    CHECK(strlen(one) == 36 && strlen(two) == 36 && strcmp(one, two) != 0);
    CHECK(strcmp(text_of(first, "warning", text), "") == 0);
    CHECK_RESULT(sk_seat_release(first, 2000), SK_OK);
    sk_seat *again = acquire(c);
    CHECK(strcmp(text_of(again, "instance_id", text), one) == 0);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
    sk_seat_free(first);
    sk_seat_free(second);
    sk_seat_free(again);
    c = client(path);
    again = acquire(c);
    CHECK(strcmp(text_of(again, "instance_id", text), one) == 0); /* a close unlocks the slots */
    sk_seat_free(again);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

static void an_instance_id_prevails_and_flags_are_checked(void) {
    char path[TEXT_MAX], text[TEXT_MAX];
    sk_client *c = client(folder("named", path));
    sk_request wanted = request();
    wanted.instance_id = "p1";
    sk_seat *seat;
    CHECK_RESULT(sk_acquire(c, &wanted, &seat, NULL), SK_OK);
    CHECK(strcmp(text_of(seat, "instance_id", text), "p1") == 0 && access(path, F_OK) != 0);
    sk_seat_free(seat);
    wanted.flags = 2;
    CHECK_RESULT(sk_acquire(c, &wanted, &seat, NULL), SK_MISUSE);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

static void a_seat_is_held_without_a_directory(void) {
    char path[TEXT_MAX], one[TEXT_MAX], two[TEXT_MAX], text[TEXT_MAX];
    sk_client *c = client("");
    sk_seat *first = acquire(c), *second = acquire(c);
    CHECK(strcmp(text_of(first, "instance_id", one), text_of(second, "instance_id", two)) != 0);
    CHECK(strlen(one) == 36 && strcmp(text_of(first, "warning", text), "") == 0);
    sk_seat_free(first);
    sk_seat_free(second);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);

    int file = open(folder("file", path), O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0 && close(file) == 0);
    c = client(path);
    first = acquire(c);
    CHECK(strncmp(text_of(first, "warning", text), "not-a-directory: ", 17) == 0);
    CHECK(sk_seat_check(first) == SK_OK && strlen(text_of(first, "instance_id", one)) == 36);
    sk_seat_free(first);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);

    CHECK(mkdir(folder("open", path), 0700) == 0 && chmod(path, 0777) == 0);
    c = client(path);
    first = acquire(c);
    CHECK(strncmp(text_of(first, "warning", text), "writable-by-others: ", 20) == 0);
    sk_seat_free(first);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

static void a_forked_child_takes_a_slot_of_its_own_and_leaves_that_of_its_parent(void) {
    char path[TEXT_MAX], parent[TEXT_MAX], text[TEXT_MAX];
    sk_client *c = client(folder("fork", path));
    sk_seat *seat = acquire(c);
    text_of(seat, "instance_id", parent);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        sk_seat_free(seat);
        sk_client_close(c, 2000);
        sk_client *own = client(path);
        sk_seat *other = acquire(own);
        CHECK(strcmp(text_of(other, "instance_id", text), parent) != 0);
        sk_seat_free(other);
        CHECK_RESULT(sk_client_close(own, 2000), SK_OK);
        _exit(0); /* the leak check of a sanitizer misses the threads of the parent */
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_RESULT(WEXITSTATUS(status), 0);
    sk_client *next = client(path);
    sk_seat *other = acquire(next);
    CHECK(strcmp(text_of(other, "instance_id", text), parent) != 0); /* the parent still has its slot */
    sk_seat_free(other);
    CHECK_RESULT(sk_client_close(next, 2000), SK_OK);

    /* A child that lives on holds no slot that its parent has released. */
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        close(pipes[1]);
        _exit(read(pipes[0], text, 1) == 0 ? 0 : 1);
    }
    CHECK_RESULT(sk_seat_release(seat, 2000), SK_OK);
    sk_seat_free(seat);
    seat = acquire(c);
    CHECK(strcmp(text_of(seat, "instance_id", text), parent) == 0);
    CHECK(close(pipes[0]) == 0 && close(pipes[1]) == 0 && waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    sk_seat_free(seat);
    CHECK_RESULT(sk_client_close(c, 2000), SK_OK);
}

static int hold(void) {
    char path[TEXT_MAX], text[TEXT_MAX];
    sk_client *c = client(folder("hold", path));
    sk_request wanted = request();
    sk_seat *seat;
    sk_error *error;
    if (sk_acquire(c, &wanted, &seat, &error) != SK_OK) {
        printf("%s\n", sk_error_code(error));
        sk_error_free(error);
        sk_client_close(c, 2000);
        return 1;
    }
    printf("%s%s\n", text_of(seat, "instance_id", text), sk_seat_check(seat) == SK_OK ? "" : " is not held");
    fflush(stdout);
    for (;;) {
        pause();
    }
}

#define RUN(test)           \
    do {                    \
        test();             \
        printf("ok " #test "\n"); \
    } while (0)

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "hold") == 0) {
        return hold();
    }
    RUN(two_seats_have_two_ids_and_a_released_id_comes_again);
    RUN(an_instance_id_prevails_and_flags_are_checked);
    RUN(a_seat_is_held_without_a_directory);
    if (CHILD_MAY_ALLOCATE) {
        RUN(a_forked_child_takes_a_slot_of_its_own_and_leaves_that_of_its_parent);
    }
    return 0;
}
