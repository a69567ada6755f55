/* Reads the JSON lines of the conformance run: flat objects, whose strings have no escapes. */
#ifndef LINE_H
#define LINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 2048 };

/* Moves behind the value of a member, and returns the length of the value without its quotes. */
static inline size_t value_length(const char **at) {
    const char *begin = *at;
    size_t length;
    if (*begin == '"') {
        length = strcspn(begin + 1, "\"\\");
        if (begin[1 + length] != '"') {
            fprintf(stderr, "a text has an escape or no end: %s\n", begin);
            exit(2);
        }
        *at = begin + length + 2;
    } else {
        length = strcspn(begin, ",}");
        *at = begin + length;
    }
    return length;
}

/* Copies the value of the member `name`, and returns false without such a member, or with null. */
static inline int member(const char *line, const char *name, char value[TEXT_MAX]) {
    const char *at = line + strcspn(line, "\"");
    while (*at == '"') {
        const char *key = at + 1;
        size_t key_length = value_length(&at);
        at += strspn(at, ": ");
        const char *begin = *at == '"' ? at + 1 : at;
        size_t length = value_length(&at);
        if (key_length == strlen(name) && strncmp(key, name, key_length) == 0) {
            if (length >= TEXT_MAX) {
                fprintf(stderr, "the value of %s is too long\n", name);
                exit(2);
            }
            memcpy(value, begin, length);
            value[length] = '\0';
            return strcmp(value, "null") != 0;
        }
        at += strspn(at, ", ");
    }
    return 0;
}

/* Returns a member as a number of milliseconds: seconds in the line. 0 without the member. */
static inline unsigned member_ms(const char *line, const char *name) {
    char value[TEXT_MAX];
    return member(line, name, value) ? (unsigned)(strtod(value, NULL) * 1000) : 0;
}

/* Returns the value of a member, or NULL without the member. The caller frees the text. */
static inline char *member_copy(const char *line, const char *name) {
    char value[TEXT_MAX];
    return member(line, name, value) ? strdup(value) : NULL;
}

#endif
