/* Both sides of warehouse.idl in C: `serve PATH`, `call PATH`, or neither, for the server alone against damaged requests, and for
 * clients whose values do not agree. */

#include "warehouse.h"
#include "check.h"
#include "sockets.h"

/* --- the server answers with what it was given --- */

static quill_status open_session(void *self, quill_memory *memory, const char *name_, char *title, uint64_t *result)
{
    (void)self, (void)memory;
    *result = strlen(name_) * 100 + (title == NULL ? 99 : strlen(title));
    return QUILL_OK;
}

static quill_status close_session(void *self, quill_memory *memory, uint64_t *s)
{
    (void)self, (void)memory;
    *s = 0;
    return QUILL_OK;
}

static quill_status sum(void *self, quill_memory *memory, int32_t n, const sequence_int32_t *values, int64_t *total)
{
    (void)self, (void)memory;
    CHECK(values->_length == (uint32_t)n);
    *total = 0;
    for (int32_t i = 0; i < n; i++)
        *total += values->_buffer[i];
    return QUILL_OK;
}

static quill_status fill(void *self, quill_memory *memory, uint32_t room, uint32_t *used, sequence_uint8_t *data)
{
    uint32_t all = room < 1000 ? room : 1000;

    (void)self;
    data->_buffer = quill_allocate(memory, all + 1);
    for (uint32_t i = 0; i < all; i++)
        data->_buffer[i] = (uint8_t)i;
    /* A server that says more than there is room for is found out. */
    data->_length = *used == 77 ? room + 1 : all;
    *used = data->_length;
    return QUILL_OK;
}

static quill_status both(void *self, quill_memory *memory, int32_t n, sequence_int16_t *values, const sequence_char *text)
{
    (void)self, (void)memory;
    CHECK((int64_t)values->_length == (int64_t)n + 1 && text->_length == values->_length);
    for (uint32_t i = 0; i < values->_length; i++)
        values->_buffer[i] = (int16_t)(values->_buffer[i] + text->_buffer[i]);
    return QUILL_OK;
}

static quill_status grid(void *self, quill_memory *memory, int16_t rows, const sequence_optional_sequence_int32_t *cells)
{
    (void)self, (void)memory;
    CHECK(cells->_length == (uint32_t)rows);
    for (uint32_t row = 0; row < cells->_length; row++)
        CHECK(cells->_buffer[row] == NULL || cells->_buffer[row]->_length == 3);
    return QUILL_OK;
}

static quill_status part(void *self, quill_memory *memory, int32_t first, int32_t last, const sequence_16_int32_t *window)
{
    (void)self, (void)memory;
    CHECK(window->_length <= 16 && (int64_t)window->_length == (int64_t)last + 1 - first);
    return QUILL_OK;
}

/* Gives the list back in the other order. */
static quill_status list(void *self, quill_memory *memory, const node *head, node **tail, int32_t *maybe)
{
    (void)self;
    *tail = NULL;
    for (const node *at = head; at != NULL; at = at->next) {
        node *copy = quill_allocate(memory, sizeof *copy);
        copy->value = at->value + (maybe == NULL ? 0 : *maybe);
        copy->next = *tail;
        *tail = copy;
    }
    return QUILL_OK;
}

static quill_status tables(void *self, quill_memory *memory, table *t, const counted_ *c, varying *v)
{
    (void)self, (void)memory;
    CHECK(t->nodes == NULL || t->nodes->_length == t->rows);
    CHECK(c->values == NULL || c->values->_length == c->count);
    CHECK(v->slots._length == v->used && v->used <= 8);
    return QUILL_OK;
}

static quill_status choose(void *self, quill_memory *memory, int32_t kind, const any_u *what, const tagged *t, sized *s)
{
    (void)self;
    CHECK(what->_d == kind && t->what._d == t->kind);
    s->_d = LARGE;
    s->_u.large = quill_allocate(memory, sizeof *s->_u.large);
    *s->_u.large = kind;
    return QUILL_OK;
}

static quill_status names(void *self, quill_memory *memory, int32_t n, const sequence_optional_string *names_,
                          int32_t *count, sequence_optional_string **back)
{
    (void)self;
    CHECK(names_->_length == (uint32_t)n);
    *count = n;
    *back = quill_allocate(memory, sizeof **back);
    **back = *names_;
    return QUILL_OK;
}

static quill_status title(void *self, quill_memory *memory, int32_t room, char **text)
{
    (void)self, (void)memory;
    *text = (char *)(room == 4 ? "four" : "abc");
    return QUILL_OK;
}

static const Warehouse_server methods = {
    .begin = open_session, .close = close_session, .sum = sum, .fill = fill, .both = both, .grid = grid,
    .part = part, .list = list, .tables = tables, .choose = choose, .names = names, .title = title,
};

/* --- the client --- */

static void call(quill_client *client)
{
    uint64_t session = 0;
    int32_t numbers[] = { 1, 2, 3, 4 }, count = 0, less = -1;
    int16_t shorts[] = { 10, 20, 30 };
    char letters[] = { 1, 2, 3 };
    int64_t total = 0;
    uint32_t used = 0;
    node last = { 7, NULL }, middle = { 6, &last }, head = { 5, &middle }, *tail = NULL;
    sequence_int32_t values = { 4, numbers }, three = { 3, numbers };
    sequence_int16_t inout = { 3, shorts };
    sequence_char text = { 3, letters };
    sequence_uint8_t data = { 0 };
    sequence_int32_t *rows[] = { &three, NULL };
    sequence_optional_sequence_int32_t cells = { 2, rows };
    char *words[] = { (char *)"one", NULL, (char *)"three" };
    sequence_optional_string all = { 3, words }, *back = NULL;
    any_u what = { 0 };
    tagged with = { 0 };
    sized out = { 0 };
    char *found = NULL;

    CHECK(Warehouse_begin(client, "abc", NULL, &session) == QUILL_OK && session == 399);
    CHECK(Warehouse_begin(client, "abc", (char *)"de", &session) == QUILL_OK && session == 302);
    CHECK(Warehouse_close(client, &session) == QUILL_OK && session == 0);
    CHECK(Warehouse_sum(client, 4, &values, &total) == QUILL_OK && total == 10);
    CHECK(Warehouse_sum(client, 3, &values, &total) == QUILL_TOO_LONG);
    CHECK(Warehouse_sum(client, -1, &values, &total) == QUILL_TOO_LONG);
    CHECK(Warehouse_fill(client, 5, &used, &data) == QUILL_OK && used == 5 && data._length == 5 && data._buffer[4] == 4);
    used = 77;
    CHECK(Warehouse_fill(client, 5, &used, &data) == QUILL_MALFORMED);
    CHECK(Warehouse_both(client, 2, &inout, &text) == QUILL_OK && inout._length == 3 && inout._buffer[2] == 33);
    CHECK(Warehouse_grid(client, 2, &cells) == QUILL_OK);
    three._length = 2;
    CHECK(Warehouse_grid(client, 2, &cells) == QUILL_TOO_LONG);
    CHECK(Warehouse_list(client, &head, &tail, NULL) == QUILL_OK && tail->value == 7 && tail->next->next->value == 5);
    CHECK(Warehouse_list(client, &head, &tail, &less) == QUILL_OK && tail->value == 6 && tail->next->next->next == NULL);
    /* A list without an end. */
    last.next = &head;
    CHECK(Warehouse_list(client, &head, &tail, NULL) == QUILL_TOO_LONG);
    what._d = 1;
    CHECK(Warehouse_choose(client, 1, &what, &with, &out) == QUILL_OK && out._d == LARGE && *out._u.large == 1);
    CHECK(Warehouse_choose(client, 2, &what, &with, &out) == QUILL_TOO_LONG);
    with.kind = 3;
    CHECK(Warehouse_choose(client, 1, &what, &with, &out) == QUILL_TOO_LONG);
    CHECK(Warehouse_names(client, 3, &all, &count, &back) == QUILL_OK && count == 3 && back->_buffer[1] == NULL);
    CHECK(strcmp(back->_buffer[2], "three") == 0);
    CHECK(Warehouse_title(client, 5, &found) == QUILL_OK && strcmp(found, "abc") == 0);
    CHECK(Warehouse_title(client, 4, &found) == QUILL_MALFORMED);
    quill_release(&client->memory);
}

/* --- damaged requests --- */

static size_t pick(size_t n)
{
    return n == 0 ? 0 : chance() % n;
}

static void damage(void)
{
    int taken = 0, refused = 0;

    for (int run = 0; run < 400000; run++) {
        /* No byte more than it has, so that a sanitizer sees who reads beyond it. */
        size_t length = pick(161);
        uint8_t *body = malloc(length + (length == 0));
        quill_memory memory = { NULL };
        quill_in in = quill_begin_in(body, length, &memory);
        quill_out out = { 0 };
        bool silent = false;
        for (size_t i = 0; i < length; i++)
            body[i] = (uint8_t)(pick(20) == 0 ? pick(256) : pick(4) == 0 ? pick(4) : 0);
        uint32_t status = Warehouse_dispatch(&methods, NULL, (uint32_t)pick(14), &in, &out, &silent);
        refused += status >= QUILL_MALFORMED;
        taken += status == QUILL_OK;
        quill_discard(&out);
        quill_release(&memory);
        free(body);
    }
    printf("%d refused, %d taken\n", refused, taken);
    CHECK(refused > 10000 && taken > 100);
}

int main(int count, char **arguments)
{
    if (count != 3) {
        damage();
        return 0;
    }
    bool serves = strcmp(arguments[1], "serve") == 0;
    int end = connection(arguments[2], serves);
    if (serves) {
        CHECK(quill_serve(end, Warehouse_dispatch, &methods, NULL) == QUILL_OK);
    } else {
        quill_client client = { end, { NULL } };
        call(&client);
    }
    return 0;
}
