#ifndef QUILL_LINUX_SHARED_H
#define QUILL_LINUX_SHARED_H

/* Tables of the values that others may share. */

static inline uint32_t *quill_shared_place(quill_shared *shared, const void *at, uint64_t kind)
{
    uint64_t hash = ((uint64_t)(uintptr_t)at ^ kind) * 0x9e3779b97f4a7c15u;
    uint32_t last = 2 * shared->room - 1, place = (uint32_t)(hash >> 32) & last;

    for (;;) {
        uint32_t number = shared->places[place];
        if (number == 0 || (shared->all[number - 1].at == at && shared->all[number - 1].kind == kind))
            return &shared->places[place];
        place = (place + 1) & last;
    }
}

/* The value of a type that lies there, if it has a number. */
static inline quill_shared_value *quill_find_shared(quill_out *out, const void *at, uint64_t kind)
{
    uint32_t number = out->shared.count == 0 ? 0 : *quill_shared_place(&out->shared, at, kind);

    return number == 0 ? NULL : &out->shared.all[number - 1];
}

/* Room for as many again: a power of two. */
static inline bool quill_more_shared(quill_shared *shared)
{
    uint32_t room = shared->room == 0 ? 16 : 2 * shared->room;
    quill_shared_value *all = realloc(shared->all, room * sizeof *all);
    uint32_t *places = calloc(2 * (size_t)room, sizeof *places);

    if (all != NULL)
        shared->all = all;
    if (all == NULL || places == NULL) {
        free(places);
        return false;
    }
    free(shared->places);
    shared->places = places;
    shared->room = room;
    for (uint32_t i = 0; i < shared->count; i++)
        *quill_shared_place(shared, all[i].at, all[i].kind) = i + 1;
    return true;
}

static inline quill_shared_value *quill_new_shared_out(quill_out *out, const void *at, uint64_t kind)
{
    quill_shared *shared = &out->shared;

    if (shared->count == shared->room && !quill_more_shared(shared)) {
        out->status = QUILL_MEMORY;
        return NULL;
    }
    *quill_shared_place(shared, at, kind) = shared->count + 1;
    return &shared->all[shared->count++];
}

static inline quill_shared_value *quill_new_shared_in(quill_in *in)
{
    quill_shared *shared = &in->shared;

    if (shared->count == shared->room) {
        uint32_t room = shared->room == 0 ? 16 : 2 * shared->room;
        quill_shared_value *all = quill_allocate(in->memory, room * sizeof *all);

        if (all == NULL) {
            in->starved = true;
            return NULL;
        }
        if (shared->count > 0)
            memcpy(all, shared->all, shared->count * sizeof *all);
        shared->all = all;
        shared->room = room;
    }
    return &shared->all[shared->count++];
}

/* Takes notice of so many bytes that are looked at once more, when something beside them has to agree with them. */
static inline void quill_look_again(quill_in *in, uint64_t bytes)
{
    if (bytes > QUILL_HEAP_BYTES_MAX - in->heap_bytes)
        in->failed = true;
    else
        in->heap_bytes += bytes;
}

#endif
