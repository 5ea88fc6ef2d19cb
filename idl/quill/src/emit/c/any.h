#ifndef QUILL_ANY_H
#define QUILL_ANY_H

/* A value that brings its type along. Programs make one by `quill_any_long(5)` and the like, and ask for its value by
 * `quill_any_get_long`, which says whether it is a long. What arrives has been checked: all of a basic value, and of one of a
 * type of a file, `quill_tk_described`, how long its parts are. `T_from_any` checks the rest. */

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
    quill_tk_string,
    quill_tk_described
};

#ifndef QUILL_TYPE_sequence_uint8_t
#define QUILL_TYPE_sequence_uint8_t
struct sequence_uint8_t {
    uint32_t _length;
    uint8_t *_buffer;
};
#endif

typedef struct quill_any {
    quill_any_kind kind;
    uint64_t bits;                   /* the value, and zeros above it; of a described one, the bytes of its type code */
    struct sequence_uint8_t content; /* a string with its zero; a type code and a value behind it; otherwise nothing */
} quill_any;

/* Bits of the value of each kind. */
static inline unsigned quill_any_bits(quill_any_kind kind)
{
    static const unsigned char bits[] = { 0, 1, 8, 8, 16, 16, 32, 32, 64, 64, 32, 64, 21, 0, 32 };
    return kind < sizeof bits ? bits[kind] : 0;
}

/* Bytes of the type code of a described value, which begins its content; 0 if it is none. */
static inline size_t quill_any_code_bytes(const quill_any *any)
{
    uint32_t length = any->content._length;
    bool whole = any->bits % 8 == 0 && length % 8 == 0 && any->bits <= length && any->content._buffer != NULL;

    return any->kind == quill_tk_described && whole ? (size_t)any->bits : 0;
}

/* Whether a content is a text, not too long, and the zero behind it. */
static inline bool quill_any_is_text(const struct sequence_uint8_t *content)
{
    uint32_t length = content->_length;

    if (length == 0 || length > QUILL_ANY_TEXT_BYTES || content->_buffer == NULL || content->_buffer[length - 1] != 0)
        return false;
    return quill_characters((const char *)content->_buffer, length - 1) <= QUILL_ANY_CHARACTERS_MAX;
}

/* Whether the parts go together: a value that its kind has, and a content only where there is one. */
static inline bool quill_any_is_sound(const quill_any *any)
{
    unsigned bits = quill_any_bits(any->kind);

    if (any->kind > quill_tk_described || (bits < 64 && any->bits >> bits != 0))
        return false;
    if (any->kind == quill_tk_string)
        return quill_any_is_text(&any->content);
    if (any->kind == quill_tk_described)
        return quill_any_code_bytes(any) > 0;
    return any->content._length == 0 && (any->kind != quill_tk_wchar || quill_is_scalar((uint32_t)any->bits));
}

/* Of a string, if there is a text. */
static inline quill_any quill_any_of(quill_any_kind kind, uint64_t bits, const char *text)
{
    /* Somewhere, though it be empty: kernels look at where a list lies. */
    quill_any any = { kind, bits, { 0, (uint8_t *)(uintptr_t)(text == NULL ? "" : text) } };

    if (text != NULL)
        any.content._length = (uint32_t)(__builtin_strlen(text) + 1);
    return any;
}

static inline quill_any quill_any_null(void)
{
    return quill_any_of(quill_tk_null, 0, NULL);
}

/* The text is lent, and stays where it is. */
static inline quill_any quill_any_string(const char *text)
{
    return quill_any_of(quill_tk_string, 0, text);
}

/* It lies where it has arrived. */
static inline bool quill_any_get_string(const quill_any *any, const char **text)
{
    bool is_string = any->kind == quill_tk_string && quill_any_is_text(&any->content);

    *text = is_string ? (const char *)any->content._buffer : "";
    return is_string;
}

#define QUILL_ANY(name, type, unsigned_type)                                  \
    static inline quill_any quill_any_##name(type value)                      \
    {                                                                         \
        return quill_any_of(quill_tk_##name, (unsigned_type)value, NULL);     \
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
        return quill_any_of(quill_tk_##name, bits, NULL);                     \
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
