#ifndef QUILL_PLACES_SHARED_H
#define QUILL_PLACES_SHARED_H

/* Values of a message that others of it may share, in memory that a stub brings; their places are their numbers. */

#define QUILL_SHARED_MAX 64

typedef struct {
    const void *at;
    uint64_t kind;
    uint32_t outer; /* the one in which it is, counted from 1, while it is open */
    bool open;
} quill_shared_value;

typedef struct quill_shared {
    uint32_t count, open; /* `open` is the last that has not ended, counted from 1 */
    bool fresh;
    quill_shared_value all[QUILL_SHARED_MAX];
} quill_shared;

#define QUILL_SHARED(message) ((message)->shared)

static inline quill_shared *quill_begin_shared(quill_shared *shared)
{
    shared->count = shared->open = 0;
    shared->fresh = false;
    return shared;
}

/* The value of a type that lies there, if it has a number. */
static inline quill_shared_value *quill_find_shared(quill_out *out, const void *at, uint64_t kind)
{
    quill_shared *shared = out->shared;

    for (uint32_t i = 0; i < shared->count; i++)
        if (shared->all[i].at == at && shared->all[i].kind == kind)
            return &shared->all[i];
    return NULL;
}

static inline quill_shared_value *quill_new_shared_out(quill_out *out, const void *at, uint64_t kind)
{
    (void)at, (void)kind;
    return out->shared->count < QUILL_SHARED_MAX ? &out->shared->all[out->shared->count++] : NULL;
}

static inline quill_shared_value *quill_new_shared_in(quill_in *in)
{
    return in->shared->count < QUILL_SHARED_MAX ? &in->shared->all[in->shared->count++] : NULL;
}

/* Takes notice of so many bytes that are looked at once more: here they are few. */
static inline void quill_look_again(quill_in *in, uint64_t bytes)
{
    (void)in, (void)bytes;
}

#endif
