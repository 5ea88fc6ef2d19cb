#ifndef QUILL_ANY_H
#define QUILL_ANY_H

/* A value that brings its type along. Programs make one by `quill_any_long(5)` and the like, and ask for its value by
 * `quill_any_get_long`, which says whether it is a long. What arrives has been checked. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters of a string in it, and bytes of the room for one, with the zero. */
#define QUILL_ANY_CHARACTERS_MAX 255
#define QUILL_ANY_TEXT_BYTES (4 * QUILL_ANY_CHARACTERS_MAX + 1)

typedef uint32_t quill_any_kind;
enum {
    quill_tk_null,
    quill_tk_boolean,
    quill_tk_char,
    quill_tk_octet,
    quill_tk_short,
    quill_tk_ushort,
    quill_tk_long,
    quill_tk_ulong,
    quill_tk_longlong,
    quill_tk_ulonglong,
    quill_tk_float,
    quill_tk_double,
    quill_tk_wchar,
    quill_tk_string
};

typedef struct quill_any {
    quill_any_kind kind;
    uint64_t bits; /* the value, and zeros above it */
    char *text;    /* of a string; otherwise nothing */
} quill_any;

/* Bits of the value of each kind. */
static inline unsigned quill_any_bits(quill_any_kind kind)
{
    static const unsigned char bits[] = { 0, 1, 8, 8, 16, 16, 32, 32, 64, 64, 32, 64, 21, 0 };
    return kind < sizeof bits ? bits[kind] : 0;
}

/* Whether the parts go together: a value that its kind has, and a text only where there is one. */
static inline bool quill_any_is_sound(const quill_any *any)
{
    unsigned bits = quill_any_bits(any->kind);

    if (any->kind > quill_tk_string || (bits < 64 && any->bits >> bits != 0))
        return false;
    if (any->kind == quill_tk_wchar && !quill_is_scalar((uint32_t)any->bits))
        return false;
    return any->kind == quill_tk_string || any->text == NULL || any->text[0] == 0;
}

static inline quill_any quill_any_of(quill_any_kind kind, uint64_t bits, const char *text)
{
    quill_any any = { kind, bits, (char *)(uintptr_t)text };
    return any;
}

static inline quill_any quill_any_null(void)
{
    return quill_any_of(quill_tk_null, 0, "");
}

/* The text is lent, and stays where it is. */
static inline quill_any quill_any_string(const char *text)
{
    return quill_any_of(quill_tk_string, 0, text);
}

/* It lies where it has arrived. */
static inline bool quill_any_get_string(const quill_any *any, const char **text)
{
    *text = any->kind == quill_tk_string && any->text != NULL ? any->text : "";
    return any->kind == quill_tk_string;
}

#define QUILL_ANY(name, type, unsigned_type)                                  \
    static inline quill_any quill_any_##name(type value)                      \
    {                                                                         \
        return quill_any_of(quill_tk_##name, (unsigned_type)value, "");       \
    }                                                                         \
    static inline bool quill_any_get_##name(const quill_any *any, type *value) \
    {                                                                         \
        *value = (type)any->bits;                                             \
        return any->kind == quill_tk_##name;                                  \
    }

QUILL_ANY(boolean, bool, bool)
QUILL_ANY(char, char, uint8_t)
QUILL_ANY(octet, uint8_t, uint8_t)
QUILL_ANY(short, int16_t, uint16_t)
QUILL_ANY(ushort, uint16_t, uint16_t)
QUILL_ANY(long, int32_t, uint32_t)
QUILL_ANY(ulong, uint32_t, uint32_t)
QUILL_ANY(longlong, int64_t, uint64_t)
QUILL_ANY(ulonglong, uint64_t, uint64_t)
QUILL_ANY(wchar, uint32_t, uint32_t)

/* Floating-point numbers by their bits. */
#define QUILL_ANY_FLOAT(name, type, unsigned_type)                            \
    static inline quill_any quill_any_##name(type value)                      \
    {                                                                         \
        unsigned_type bits;                                                   \
        __builtin_memcpy(&bits, &value, sizeof bits);                         \
        return quill_any_of(quill_tk_##name, bits, "");                       \
    }                                                                         \
    static inline bool quill_any_get_##name(const quill_any *any, type *value) \
    {                                                                         \
        unsigned_type bits = (unsigned_type)any->bits;                        \
        __builtin_memcpy(value, &bits, sizeof bits);                          \
        return any->kind == quill_tk_##name;                                  \
    }

QUILL_ANY_FLOAT(float, float, uint32_t)
QUILL_ANY_FLOAT(double, double, uint64_t)

#endif
