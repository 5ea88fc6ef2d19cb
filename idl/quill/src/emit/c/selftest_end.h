/* Requests as somebody else might send them: each gets an answer. The kernel's own labels and those of oneway methods get
 * none, which is not what is tried here. */
static void selftest_damage(void)
{
    struct selftest_random random = selftest_values_of(UINT32_MAX, selftest_client_values), *r = &random;
    char *mine = quill_utcb();
    uint32_t w0, w1;

    for (uint32_t round = 0; round < 200u * QUILL_ROUNDS && selftest_known > 0; round++) {
        quill_word words[64];
        memcpy(words, selftest_kept[selftest_below(r, selftest_known < 64 ? selftest_known : 64)], sizeof words);
        for (uint32_t changes = 1 + selftest_below(r, 3); changes > 0; changes--) {
            quill_word *word = words + 1 + selftest_below(r, 20);
            switch (selftest_below(r, 6)) {
            case 0: words[0] ^= (quill_word)1 << selftest_below(r, 12); break;
            case 1: words[0] ^= (quill_word)1 << (16 + selftest_below(r, 16)); break;
            case 2: *word ^= (quill_word)1 << selftest_below(r, 8 * sizeof(quill_word)); break;
            case 3: *word = (quill_word)selftest_next(r); break;
            case 4: *word = selftest_below(r, 64); break;
            case 5: *word = 0; break;
            }
        }
        if ((uint16_t)(words[0] >> 16) >= 0xff80 || selftest_is_oneway((uint16_t)(words[0] >> 16)))
            continue;
        for (int i = 1; i < 64; i++)
            *quill_register(mine, i) = words[i];
        quill_word tag = quill_call(mine, SERVER, words[0], 252, 252, &w0, &w1);
        selftest_damaged++;
        selftest_refused += (tag & QUILL_TAG_ERROR) || tag >> 16 == QUILL_MALFORMED || tag >> 16 == QUILL_NO_METHOD;
    }
}

static void selftest_say_number(uint32_t number)
{
    char digits[11], *at = digits + 10;

    *at = 0;
    do
        *--at = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    say(at);
}

static __attribute__((noinline)) void client(void)
{
    for (uint32_t round = 0; round < QUILL_ROUNDS; round++)
        selftest_all_methods();
    selftest_sane = false;
    selftest_damage();
    selftest_sane = true;
    /* The server lives. */
    selftest_all_methods();
    say(QUILL_TITLE ": ");
    selftest_say_number(selftest_calls);
    say(" calls, ");
    selftest_say_number(selftest_exceptions);
    say(" exceptions, ");
    selftest_say_number(selftest_damaged);
    say(" damaged messages, ");
    selftest_say_number(selftest_refused);
    say(selftest_wrong == 0 ? " refused: ok\n" : " refused: FAILED\n");
    if (selftest_wrong > 0)
        leave(1);
}
