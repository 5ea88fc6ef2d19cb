/* What both sides of caption.idl share. Each is a file of its own, so that one can have counted texts and the other
 * terminated ones: SIDE_COUNTED says which this one has, COUNTED_SERVER and COUNTED_CLIENT which they have. */

#if defined(ON_TERN)
#define INSIDE 1 /* short texts lie in their values */
#define CONTEXT tern_uid from
#elif defined(ON_L4)
#define INSIDE 0
#define CONTEXT quill_thread from
#else
#define INSIDE 0
#define CONTEXT quill_memory *from
#endif

#ifdef ON_L4
#define FUNCTION(name) Caption_Board_##name
#else
#define FUNCTION(name) Caption_Rich_##name
#endif

/* An argument, and a short text and a long one that come back. */
#if SIDE_COUNTED
#define IN quill_text
#define BYTES(text) (text)._buffer
#define LENGTH(text) (text)._length
#define LONG quill_text
#else
#define IN const char *
#define BYTES(text) (text)
#define LENGTH(text) length_of(text)
#define LONG char *
#endif

#if SIDE_COUNTED && INSIDE
#define OUT_TAG(name) quill_text_12 *name
#elif SIDE_COUNTED
#define OUT_TAG(name) quill_text *name
#elif INSIDE
#define OUT_TAG(name) char *name
#else
#define OUT_TAG(name) char **name
#endif

static inline uint32_t length_of(const char *text)
{
    uint32_t length = 0;

    while (text[length] != 0)
        length++;
    return length;
}

/* What a text is known by. */
static inline int32_t sum_of(const char *bytes, uint32_t length)
{
    uint32_t sum = 1000 * length;

    for (uint32_t i = 0; i < length; i++)
        sum += (uint8_t)bytes[i] * (i % 3 + 1);
    return (int32_t)sum;
}
