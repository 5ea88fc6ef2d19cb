#ifndef QUILL_STREAM_SHARED_H
#define QUILL_STREAM_SHARED_H

/* Values that several others may share: 0 if one is absent, 1 before one that is new, 2 before the number of one that was there before.
 * One that contains itself is refused, since nobody who follows its pointers would come to an end. */

static inline void quill_open_shared(quill_shared *shared, quill_shared_value *value, const void *at, uint64_t kind)
{
    *value = (quill_shared_value){ at, kind, shared->open, true };
    shared->open = (uint32_t)(value - shared->all) + 1;
}

static inline void quill_close_shared(quill_shared *shared, const void *at)
{
    quill_shared_value *value = &shared->all[shared->open - 1];

    value->at = at;
    value->open = false;
    shared->open = value->outer;
}

/* Writes what stands before a value. Whether the value follows, and `quill_put_shared_end`. */
static inline bool quill_put_shared(quill_out *out, const void *at, uint64_t kind)
{
    quill_shared_value *value;

    if (out->status != QUILL_OK || at == NULL) {
        quill_put_u8(out, 0);
        return false;
    }
    value = quill_find_shared(out, at, kind);
    if (value != NULL) {
        if (value->open)
            quill_fail(out, QUILL_TOO_LONG);
        quill_put_u8(out, 2);
        quill_put_u32(out, (uint32_t)(value - QUILL_SHARED(out)->all));
        return false;
    }
    quill_put_u8(out, 1);
    value = quill_new_shared_out(out, at, kind);
    if (value == NULL)
        quill_fail(out, QUILL_TOO_LONG);
    if (value == NULL || !quill_put_enter(out))
        return false;
    quill_open_shared(QUILL_SHARED(out), value, at, kind);
    return true;
}

static inline void quill_put_shared_end(quill_out *out)
{
    quill_close_shared(QUILL_SHARED(out), QUILL_SHARED(out)->all[QUILL_SHARED(out)->open - 1].at);
    quill_put_leave(out);
}

/* Reads what stands before a value. The value, if it was there before; otherwise NULL, and `quill_is_fresh` says whether it follows. */
static inline void *quill_get_shared(quill_in *in, uint64_t kind)
{
    uint8_t how = quill_get_u8(in);
    uint32_t number;
    quill_shared_value *value;

    QUILL_SHARED(in)->fresh = false;
    if (in->failed || how == 0)
        return NULL;
    if (how == 1 && quill_enter(in)) {
        value = quill_new_shared_in(in);
        if (value != NULL) {
            quill_open_shared(QUILL_SHARED(in), value, NULL, kind);
            QUILL_SHARED(in)->fresh = true;
            return NULL;
        }
    }
    if (how == 2) {
        number = quill_get_u32(in);
        if (!in->failed && number < QUILL_SHARED(in)->count) {
            value = &QUILL_SHARED(in)->all[number];
            if (!value->open && value->kind == kind)
                return (void *)(uintptr_t)value->at;
        }
    }
    in->failed = true;
    return NULL;
}

static inline bool quill_is_fresh(const quill_in *in)
{
    return QUILL_SHARED(in)->fresh;
}

static inline void quill_get_shared_end(quill_in *in, const void *at)
{
    quill_close_shared(QUILL_SHARED(in), at);
    quill_leave(in);
}

#endif
