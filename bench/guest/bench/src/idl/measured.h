/* The measured methods in C, for whoever measures stubs made by quill for C: what a client sends, how it calls each method, and what the
 * methods do. Before this file come the stubs (bench.h), SELF (what is first in a method) and BEGIN (the first statement of each). */
#ifndef MEASURED_H
#define MEASURED_H

#define MARK(kind, region) \
    __asm__ volatile(".byte 0x0f, 0x1f, 0x80, %c0, %c1, 0x4e, 0x7e" : : "i"(kind), "i"(region) : "memory")

/* Data sent beside numbers: sixteen bytes of text, and lists of a thousand. */
static char some[2][1000] = { { 1 }, { 2 } };
static _Alignas(8) char text[] = "sixteen letters.";
#ifdef COUNTED
typedef quill_text any_text;
#define THE_TEXT { sizeof text - 1, text }
#else
typedef const char *any_text;
#define THE_TEXT text
#endif
static const struct lists {
    any_text text;
    sequence_65536_char bytes[2];
} lists = { THE_TEXT, { { 1000, some[0] }, { 1000, some[1] } } };

#define TINY Bench_Calls_tiny(server, n[0])
#define SMALL Bench_Calls_small(server, n[0], (int16_t)n[1], (int16_t)n[2], &b[0])
#define LARGE                                                                                                       \
    Bench_Calls_large(server, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], &b[0], &b[1], &b[2], &b[3],      \
                      &b[4], &b[5], &b[6], &b[7], &b[8])
#define LARGER                                                                                                      \
    Bench_Calls_larger(server, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12],      \
                       n[13], n[14], n[15], &b[0], &b[1], &b[2], &b[3], &b[4], &b[5], &b[6], &b[7], &b[8], &b[9],    \
                       &b[10], &b[11], &b[12], &b[13], &b[14], &b[15])
#define RECORD Bench_Calls_record(server, &record)
#define STR Bench_Calls_str(server, l->text, &b[0], &b[1])
#define LENGTH Bench_Calls_length(server, &l->bytes[0], &l->bytes[1])

/* --- a server whose methods want each argument and have each result in a register, and cost nothing else --- */

#define USE(argument) __asm__ volatile("" : : "r"(argument))
#define MAKE(result) __asm__ volatile("" : "=r"(*(result)))
/* An argument that is passed by reference has its address in a register and lies in memory. */
#define USE_AT(address) __asm__ volatile("" : : "r"(address) : "memory")
#ifdef COUNTED
#define USE_TEXT(text)        \
    do {                      \
        USE((text)._length);  \
        USE_AT((text)._buffer); \
    } while (0)
#else
#define USE_TEXT(text) USE_AT(text)
#endif

static quill_status tiny(SELF, int32_t a)
{
    BEGIN;
    USE(a);
    return QUILL_OK;
}

static quill_status small(SELF, int32_t a, int16_t b, int16_t c, int32_t *result)
{
    BEGIN;
    USE(a); USE(b); USE(c);
    MAKE(result);
    return QUILL_OK;
}

static quill_status large(SELF, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5, int32_t a6, int32_t a7,
                          int32_t a8, int32_t a9, int32_t *b1, int32_t *b2, int32_t *b3, int32_t *b4, int32_t *b5,
                          int32_t *b6, int32_t *b7, int32_t *b8, int32_t *b9)
{
    BEGIN;
    USE(a1); USE(a2); USE(a3); USE(a4); USE(a5); USE(a6); USE(a7); USE(a8); USE(a9);
    MAKE(b1); MAKE(b2); MAKE(b3); MAKE(b4); MAKE(b5); MAKE(b6); MAKE(b7); MAKE(b8); MAKE(b9);
    return QUILL_OK;
}

static quill_status larger(SELF, int32_t a1, int32_t a2, int32_t a3, int32_t a4, int32_t a5, int32_t a6, int32_t a7,
                           int32_t a8, int32_t a9, int32_t a10, int32_t a11, int32_t a12, int32_t a13, int32_t a14,
                           int32_t a15, int32_t a16, int32_t *b1, int32_t *b2, int32_t *b3, int32_t *b4, int32_t *b5,
                           int32_t *b6, int32_t *b7, int32_t *b8, int32_t *b9, int32_t *b10, int32_t *b11, int32_t
                           *b12, int32_t *b13, int32_t *b14, int32_t *b15, int32_t *b16)
{
    BEGIN;
    USE(a1); USE(a2); USE(a3); USE(a4); USE(a5); USE(a6); USE(a7); USE(a8); USE(a9); USE(a10); USE(a11); USE(a12);
    USE(a13); USE(a14); USE(a15); USE(a16);
    MAKE(b1); MAKE(b2); MAKE(b3); MAKE(b4); MAKE(b5); MAKE(b6); MAKE(b7); MAKE(b8); MAKE(b9); MAKE(b10); MAKE(b11);
    MAKE(b12); MAKE(b13); MAKE(b14); MAKE(b15); MAKE(b16);
    return QUILL_OK;
}

static quill_status record(SELF, const Bench_Record *r)
{
    BEGIN;
    USE_AT(r);
    return QUILL_OK;
}

static quill_status str(SELF, any_text s, int32_t *a, int32_t *b)
{
    BEGIN;
    USE_TEXT(s);
    MAKE(a); MAKE(b);
    return QUILL_OK;
}

static quill_status length(SELF, const sequence_65536_char *x, const sequence_65536_char *y)
{
    BEGIN;
    USE(x->_length); USE_AT(x->_buffer);
    USE(y->_length); USE_AT(y->_buffer);
    return QUILL_OK;
}

static const Bench_Calls_server methods = { tiny, small, large, larger, record, str, length };

#endif
