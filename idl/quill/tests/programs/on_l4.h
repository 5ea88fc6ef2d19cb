/* Shared by the programs over L4's API, which stand alone: a comparison of texts, and numbers as if by chance, the same in each run. */

static bool same(const char *a, const char *b)
{
    while (*a != 0 && *a == *b)
        a++, b++;
    return *a == *b;
}

/* Half of the state: the other half is short of a library for division. */
static uint32_t pick(void)
{
    static uint64_t state = 0x2545f4914f6cdd1du;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}
