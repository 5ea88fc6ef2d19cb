/* Both sides of museum.idl in C over sockets: `serve PATH`, `call PATH`. */

#include "museum.h"
#include "check.h"
#include "sockets.h"

/* --- the server --- */

static quill_status hang(void *self, quill_memory *memory, Museum_Piece *one, Museum_Piece *other, int32_t *pieces,
                         int32_t *names)
{
    const Museum_Piece *all[256];
    int count = 0;

    (void)self, (void)memory;
    *pieces = *names = 0;
    for (int chain = 0; chain < 2; chain++)
        for (const Museum_Piece *at = chain == 0 ? one : other; at != NULL; at = at->neighbour) {
            bool is_new = true, is_named = true;
            for (int i = 0; i < count; i++) {
                is_new = is_new && all[i] != at;
                is_named = is_named && strcmp(all[i]->name, at->name) != 0;
            }
            CHECK(count < 256);
            all[count++] = at;
            *pieces += is_new;
            *names += is_named;
        }
    return QUILL_OK;
}

static quill_status lend(void *self, quill_memory *memory, Museum_Piece *what, char *lender, char **remark,
                         Museum_Loan **result, Museum_Rooms_lend_raised *raised)
{
    (void)self;
    *remark = NULL;
    *result = NULL;
    if (what == NULL) {
        raised->Missing.number = NULL;
        if (lender != NULL) {
            raised->Missing.number = quill_allocate(memory, sizeof(int32_t));
            *raised->Missing.number = (int32_t)strlen(lender);
        }
        return 1;
    }
    if (lender == NULL)
        return QUILL_OK;
    *result = quill_allocate(memory, sizeof **result);
    **result = (Museum_Loan){ what->name, what->caption, what->neighbour, lender };
    *remark = what->caption.title;
    return QUILL_OK;
}

static quill_status describe(void *self, quill_memory *memory, const CORBA_TypeCode *what, CORBA_TypeCode_Kind *kind,
                             uint32_t *depth, CORBA_TypeCode *result)
{
    const CORBA_TypeCode *inner = what;
    CORBA_TypeCode *content = quill_allocate(memory, sizeof *content);

    (void)self;
    *depth = 1;
    while ((inner->_d == CORBA_TypeCode_tk_sequence || inner->_d == CORBA_TypeCode_tk_array) && inner->_u.list.content != NULL) {
        inner = inner->_u.list.content;
        (*depth)++;
    }
    *kind = inner->_d;
    *content = *what;
    *result = (CORBA_TypeCode){ ._d = CORBA_TypeCode_tk_alias, ._u.alias = { (char *)"IDL:made:1.0", (char *)"made", content } };
    return QUILL_OK;
}

static const Museum_Rooms_server methods = { .hang = hang, .lend = lend, .describe = describe };

/* --- the client --- */

static void values(quill_client *client)
{
    int32_t before = -300, late = 1900, pieces = 0, names = 0;
    char vase[] = "Vase", door[] = "Door", title[] = "A vase", lender[] = "Anna", longer[62];
    Museum_Piece last = { door, { NULL, NULL }, NULL }, first = { vase, { title, &before }, &last };
    Museum_Piece other = { vase, { NULL, &late }, &last }, chain[65];
    Museum_Loan *loan = NULL;
    char *remark = NULL;
    Museum_Rooms_lend_raised raised;

    CHECK(Museum_Rooms_hang(client, &first, &other, &pieces, &names) == QUILL_OK && pieces == 3 && names == 2);
    CHECK(Museum_Rooms_hang(client, &first, &first, &pieces, &names) == QUILL_OK && pieces == 2 && names == 2);
    CHECK(Museum_Rooms_hang(client, NULL, NULL, &pieces, &names) == QUILL_OK && pieces == 0 && names == 0);
    CHECK(Museum_Rooms_lend(client, &first, lender, &remark, &loan, &raised) == QUILL_OK);
    CHECK(strcmp(loan->name, vase) == 0 && strcmp(loan->lender, lender) == 0 && strcmp(remark, title) == 0);
    CHECK(strcmp(loan->caption.title, title) == 0 && *loan->caption.year == before);
    CHECK(strcmp(loan->neighbour->name, door) == 0 && loan->neighbour->caption.year == NULL);
    CHECK(Museum_Rooms_lend(client, &first, NULL, &remark, &loan, &raised) == QUILL_OK && loan == NULL && remark == NULL);
    CHECK(Museum_Rooms_lend(client, NULL, lender, &remark, &loan, &raised) == 1 && *raised.Missing.number == 4);
    CHECK(Museum_Rooms_lend(client, NULL, NULL, &remark, &loan, &raised) == 1 && raised.Missing.number == NULL);
    /* A title has a bound, and a chain an end; one that leads back to itself has none. */
    memset(longer, 'x', 61);
    longer[61] = 0;
    first.caption.title = longer;
    CHECK(Museum_Rooms_hang(client, &first, NULL, &pieces, &names) == QUILL_TOO_LONG);
    for (int i = 0; i < 65; i++)
        chain[i] = (Museum_Piece){ vase, { NULL, NULL }, i < 64 ? &chain[i + 1] : NULL };
    CHECK(Museum_Rooms_hang(client, &chain[1], NULL, &pieces, &names) == QUILL_OK && pieces == 64 && names == 1);
    CHECK(Museum_Rooms_hang(client, &chain[0], NULL, &pieces, &names) == QUILL_TOO_LONG);
    chain[3].neighbour = &chain[2];
    CHECK(Museum_Rooms_hang(client, &chain[2], NULL, &pieces, &names) == QUILL_TOO_LONG);
}

static void descriptions(quill_client *client)
{
    CORBA_TypeCode text = { ._d = CORBA_TypeCode_tk_string, ._u.bound = 20 };
    CORBA_TypeCode inner = { ._d = CORBA_TypeCode_tk_sequence, ._u.list = { &text, 0 } };
    CORBA_TypeCode texts = { ._d = CORBA_TypeCode_tk_array, ._u.list = { &inner, 5 } };
    CORBA_TypeCode number = { ._d = CORBA_TypeCode_tk_long }, made, *found;
    CORBA_TypeCode_Kind kind = CORBA_TypeCode_tk_null;
    uint32_t depth = 0;

    CHECK(Museum_Rooms_describe(client, &texts, &kind, &depth, &made) == QUILL_OK);
    CHECK(kind == CORBA_TypeCode_tk_string && depth == 3 && made._d == CORBA_TypeCode_tk_alias);
    found = made._u.alias.content;
    CHECK(strcmp(made._u.alias.name, "made") == 0 && found->_d == texts._d && found->_u.list.length == 5);
    CHECK(found->_u.list.content->_u.list.content->_u.bound == 20);
    CHECK(Museum_Rooms_describe(client, &number, &kind, &depth, &made) == QUILL_OK);
    CHECK(kind == CORBA_TypeCode_tk_long && depth == 1);
    /* No type of that kind, and one that stands in itself by its address. */
    number._d = CORBA_TypeCode_tk_recursive + 1;
    CHECK(Museum_Rooms_describe(client, &number, &kind, &depth, &made) == QUILL_MALFORMED);
    inner._u.list.content = &inner;
    CHECK(Museum_Rooms_describe(client, &texts, &kind, &depth, &made) == QUILL_TOO_LONG);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    bool serves = strcmp(arguments[1], "serve") == 0;
    int end = connection(arguments[2], serves);
    if (serves) {
        CHECK(quill_serve(end, Museum_Rooms_dispatch, &methods, NULL) == QUILL_OK);
    } else {
        quill_client client = { end, { NULL } };
        values(&client);
        descriptions(&client);
        quill_release(&client.memory);
    }
    return 0;
}
