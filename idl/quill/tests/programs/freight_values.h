/* A value of each type of freight.idl in an any, in C, and whoever looks what type it is. */

#define KINDS 19
#define ROOM_BYTES 4096
/* Of their bytes, over each kernel part and in Rust as well. */
#define BYTES_OF_ALL 2353097497u

static uint8_t lists[1 << 14], again[ROOM_BYTES];

static Freight_Point point(void)
{
    return (Freight_Point){ .x = -7, .y = 0.5, .on = true };
}

static Freight_Chest chest(void)
{
    static uint8_t bytes[] = { 1, 2, 255 };
    return (Freight_Chest){ .name = (char *)(uintptr_t)"caf\303\251", .colour = Freight_BLUE, .marks = Freight_COLD,
                            .grid = { { 1, 2, 3 }, { -4, 5, 6 } }, .price = -12345, .content = { 3, bytes } };
}

/* Makes the any of that number; its content lies there. */
__attribute__((noinline)) static bool some_any(uint32_t which, void *to, quill_any *any)
{
    static char *texts[] = { (char *)(uintptr_t)"one", (char *)(uintptr_t)"", (char *)(uintptr_t)"three" };
    static int32_t numbers[] = { 7, -8 };
    int32_t grid[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
    Freight_Texts names = { 3, texts };
    Freight_Bough leaves[2] = { { .name = texts[1] }, { .name = texts[2] } };
    Freight_Bough bough = { .name = texts[0], .boughs = { 2, leaves } };
    Freight_Point at = point();
    Freight_Chest full = chest();
    Freight_Load load = { ._d = Freight_GREEN, ._u.chest = full };
    Freight_Word word = { ._bits = { 0x04030201 } };
    Freight_Nothing nothing = { 0 };
    Freight_Wrapped wrapped = { .at = &at };
    Freight_Lost lost = { .at = 9, .why = texts[2] };
    CORBA_TypeCode code = { ._d = CORBA_TypeCode_tk_string, ._u.bound = 5 };
    Freight_Bytes bytes = full.content;
    Freight_Numbers some = { 2, numbers };
    char label[81] = "label";

    switch (which) {
    case 0: return Freight_Colour_to_any(Freight_GREEN, to, ROOM_BYTES, any);
    case 1: return Freight_Marks_to_any(Freight_FRAGILE | Freight_COLD, to, ROOM_BYTES, any);
    case 2: return Freight_Label_to_any(label, to, ROOM_BYTES, any);
    case 3: return Freight_Text_to_any(texts[2], to, ROOM_BYTES, any);
    case 4: return Freight_Wide_to_any("\360\237\230\200", to, ROOM_BYTES, any);
    case 5: return Freight_Bytes_to_any(&bytes, to, ROOM_BYTES, any);
    case 6: return Freight_Texts_to_any(&names, to, ROOM_BYTES, any);
    case 7: return Freight_Numbers_to_any(&some, to, ROOM_BYTES, any);
    case 8: return Freight_Grid_to_any(grid, to, ROOM_BYTES, any);
    case 9: return Freight_Price_to_any(99999, to, ROOM_BYTES, any);
    case 10: return Freight_Point_to_any(&at, to, ROOM_BYTES, any);
    case 11: return Freight_Chest_to_any(&full, to, ROOM_BYTES, any);
    case 12: return Freight_Bough_to_any(&bough, to, ROOM_BYTES, any);
    case 13: return Freight_Load_to_any(&load, to, ROOM_BYTES, any);
    case 14: return Freight_Word_to_any(&word, to, ROOM_BYTES, any);
    case 15: return Freight_Nothing_to_any(&nothing, to, ROOM_BYTES, any);
    case 16:
        if (!Freight_Point_to_any(&at, again, ROOM_BYTES, &wrapped.inner))
            return false;
        return Freight_Wrapped_to_any(&wrapped, to, ROOM_BYTES, any);
    case 17: return Freight_Lost_to_any(&lost, to, ROOM_BYTES, any);
    default: return CORBA_TypeCode_to_any(&code, to, ROOM_BYTES, any);
    }
}

#define LOOK(number, type, declared, place, given)                           \
    {                                                                        \
        declared;                                                            \
        if (type##_from_any(any, lists, sizeof lists, place)) {            \
            found = found == KINDS ? number : KINDS + 1;                     \
            CHECK(type##_to_any(given, again, sizeof again, made));          \
        }                                                                    \
    }
#define LOOK_AT(number, type) LOOK(number, type, type value, &value, &value)

/* The number of its type, KINDS if it is none of the file; and the any made again of what was in it. */
__attribute__((noinline)) static uint32_t type_of(const quill_any *any, quill_any *made)
{
    uint32_t found = KINDS;

    LOOK(0, Freight_Colour, Freight_Colour value, &value, value)
    LOOK(1, Freight_Marks, Freight_Marks value, &value, value)
#if INSIDE
    LOOK(2, Freight_Label, char value[81], value, value)
#else
    LOOK(2, Freight_Label, char *value, &value, value)
#endif
    LOOK(3, Freight_Text, char *value, &value, value)
    LOOK(4, Freight_Wide, char *value, &value, value)
    LOOK_AT(5, Freight_Bytes)
    LOOK_AT(6, Freight_Texts)
    LOOK_AT(7, Freight_Numbers)
    LOOK(8, Freight_Grid, Freight_Grid value, value, value)
    LOOK(9, Freight_Price, Freight_Price value, &value, value)
    LOOK_AT(10, Freight_Point)
    LOOK_AT(11, Freight_Chest)
    LOOK_AT(12, Freight_Bough)
    LOOK_AT(13, Freight_Load)
    LOOK_AT(14, Freight_Word)
    LOOK_AT(15, Freight_Nothing)
    LOOK_AT(16, Freight_Wrapped)
    LOOK_AT(17, Freight_Lost)
    LOOK_AT(18, CORBA_TypeCode)
    return found;
}

static bool same(const quill_any *a, const quill_any *b)
{
    bool same = a->kind == b->kind && a->bits == b->bits && a->content._length == b->content._length;

    for (uint32_t i = 0; same && i < a->content._length; i++)
        same = a->content._buffer[i] == b->content._buffer[i];
    return same;
}

/* Looks at an any whose parts go together; what is in it may be anything. */
__attribute__((noinline)) static void look(const quill_any *any, uint32_t not)
{
    static uint8_t small[64];
    CORBA_TypeCode code;
    Freight_Chest chest;
    quill_any made;

    CHECK(type_of(any, &made) != not);
    if (quill_any_type_code(any, lists, sizeof lists, &code))
        CHECK(code._d <= CORBA_TypeCode_tk_recursive);
    /* Where there is little room, or none, there is no value. */
    quill_any_type_code(any, small + 1, sizeof small - 1, &code);
    Freight_Chest_from_any(any, small + 3, 5, &chest);
    Freight_Chest_from_any(any, NULL, 0, &chest);
}

/* The bytes of all values, which are the same over each kernel part and in each language. */
static void bytes_of_all(void)
{
    static uint8_t room_for[ROOM_BYTES];
    uint32_t hash = 2166136261u;

    for (uint32_t which = 0; which < KINDS; which++) {
        CORBA_TypeCode code;
        quill_any any, made;
        CHECK(some_any(which, room_for, &any) && quill_any_is_sound(&any));
        for (uint32_t i = 0; i < any.content._length; i++)
            hash = (hash ^ any.content._buffer[i]) * 16777619u;
        CHECK(type_of(&any, &made) == which && same(&any, &made));
        CHECK(quill_any_type_code(&any, lists, sizeof lists, &code));
    }
    Freight_Chest full = chest();
    quill_any any;
    CHECK(some_any(11, room_for, &any));
    for (size_t bytes = 0; bytes < any.content._length; bytes++)
        CHECK(!Freight_Chest_to_any(&full, again, bytes, &any));

    CHECK(hash == BYTES_OF_ALL);
}

/* Contents that are nearly right. Each lies in a piece of memory of its own, so that a step beyond is seen. */
static void nearly_right(void)
{
    static uint8_t room_for[ROOM_BYTES];

    for (uint32_t which = 0; which < KINDS; which++) {
        quill_any any, damaged;
        CHECK(some_any(which, room_for, &any));
        for (uint32_t at = 0; at < any.content._length; at++)
            for (unsigned bit = 0; bit < 8; bit += at < any.bits ? 3 : 1) {
                room_for[at] ^= (uint8_t)(1u << bit);
                look(&any, KINDS + 1);
                room_for[at] ^= (uint8_t)(1u << bit);
            }
        /* Too short, too long, and a type code of another length. */
        for (uint32_t length = 0; length < any.content._length; length++) {
            damaged = any;
            damaged.content._length = length;
            CHECK(length % 8 == 0 || !quill_any_is_sound(&damaged));
            look(&damaged, which);
        }
        damaged = any;
        damaged.content._length += 8;
        look(&damaged, which);
        for (uint64_t bits = 0; bits <= any.content._length + 16; bits++) {
            damaged = any;
            damaged.bits = bits;
            look(&damaged, bits == any.bits ? KINDS + 1 : which);
        }
        damaged.bits = UINT64_MAX - 7;
        look(&damaged, which);
    }
}

/* Values with a text that is not there: nobody can make an any of them, and whoever tries hears of it. */
static void no_texts(void)
{
    static uint8_t room_for[ROOM_BYTES];
    static char *some[] = { (char *)(uintptr_t)"one", NULL };
    Freight_Texts names = { 2, some };
    Freight_Bough leaf = { .name = NULL }, bough = { .name = some[0], .boughs = { 1, &leaf } };
    Freight_Chest full = chest();
    Freight_Load texts = { ._d = Freight_BLUE, ._u.names = names }, load = { ._d = Freight_GREEN };
    Freight_Lost lost = { .at = 9, .why = NULL };
    CORBA_TypeCode code = { ._d = CORBA_TypeCode_tk_struct };
    quill_any any = quill_any_long(5);

    full.name = NULL;
    load._u.chest = full;
    CHECK(!Freight_Text_to_any(NULL, room_for, sizeof room_for, &any));
    CHECK(!Freight_Wide_to_any(NULL, room_for, sizeof room_for, &any));
    CHECK(!Freight_Texts_to_any(&names, room_for, sizeof room_for, &any));
    CHECK(!Freight_Chest_to_any(&full, room_for, sizeof room_for, &any));
    CHECK(!Freight_Bough_to_any(&bough, room_for, sizeof room_for, &any));
    CHECK(!Freight_Load_to_any(&load, room_for, sizeof room_for, &any));
    CHECK(!Freight_Load_to_any(&texts, room_for, sizeof room_for, &any));
    CHECK(!Freight_Lost_to_any(&lost, room_for, sizeof room_for, &any));
    CHECK(!CORBA_TypeCode_to_any(&code, room_for, sizeof room_for, &any));
    /* It is left as it was. */
    CHECK(any.kind == quill_tk_long && any.bits == 5);
    any = quill_any_string(NULL);
    CHECK(!quill_any_is_sound(&any));
    any = (quill_any){ quill_tk_string, 0, { 1, NULL } };
    CHECK(!quill_any_is_sound(&any));
    any = (quill_any){ quill_tk_described, 8, { 16, NULL } };
    CHECK(!quill_any_is_sound(&any) && type_of(&any, &any) == KINDS);
}

/* Values that no type has, each with the right type code. */
static void no_values(void)
{
    static uint8_t room_for[ROOM_BYTES];
    static const struct {
        uint32_t which, at;
        uint8_t byte;
    } all[] = {
        { 0, 0, 3 },    /* an enum out of range */
        { 1, 0, 4 },    /* a bit that means nothing */
        { 2, 0, 21 },   /* more characters than the bound */
        { 3, 0, 255 },  /* a length beyond the content */
        { 3, 6, 0 },    /* a zero within a text */
        { 3, 9, 'x' },  /* none behind it */
        { 4, 4, 0xff }, /* no UTF-8 */
        { 5, 3, 0x7f }, /* a list of 2 GB */
        { 7, 1, 1 },    /* more elements than the bound */
        { 9, 3, 1 },    /* more digits than there are */
        { 10, 16, 2 },  /* a truth value of 2 */
        { 13, 0, 7 },   /* no discriminator */
        { 16, 0, 99 },  /* an any within it of no kind */
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        quill_any any, made;
        CHECK(some_any(all[i].which, room_for, &any));
        room_for[any.bits + all[i].at] = all[i].byte;
        CHECK(type_of(&any, &made) == KINDS);
    }
}

/* A type within a type within a type …: readers do not go deeper than they have said. */
static void too_deep(void)
{
    static uint8_t room_for[ROOM_BYTES];

    for (uint32_t depth = 1; depth < 200; depth++) {
        uint32_t length = (20 * depth + 4 + 7) / 8 * 8;
        quill_any any = { quill_tk_described, length, { length, room_for } };
        CORBA_TypeCode code;
        for (uint32_t i = 0; i < length; i++) {
            /* A value box without an id and a name, and that there is something in it, whose kind follows. */
            static const uint8_t box[20] = { [0] = 30, [17] = 1 };
            room_for[i] = i < 20 * depth ? box[i % 20] : 0;
        }
        bool found = quill_any_type_code(&any, lists, sizeof lists, &code);
        CHECK(found == (depth <= 64) || depth > 20);
        CHECK(!found || depth <= 64);
    }
}
