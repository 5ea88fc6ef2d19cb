/* Messages of which each word is known: whatever has no value is strange, and a reply shows nothing of it but to whom it came from. */

#define STRANGE UINT64_C(0xabcdef0000)
enum { ERROR = 0x1234, PRESERVED = 5 };

static void fill(uint64_t *words, const uint64_t *first, unsigned count)
{
    for (unsigned i = 0; i < 11; i++)
        words[i] = i < count ? first[i] : STRANGE + i;
}

/* Whether a reply has those words, and all the others are zero or, in the last six, what was sent. */
static void check_words(const uint64_t *words, const uint64_t *expected, unsigned count)
{
    for (unsigned i = 0; i < 11; i++)
        CHECK(i < count ? words[i] == expected[i] : words[i] == 0 || (i >= PRESERVED && words[i] == STRANGE + i));
}

/* Puts a text where requests arrive, as a client sends it: whole words in memory, and the end in a word of the message. */
static void put_text(uint64_t first[4], void *room, uint64_t *place, size_t size, const char *letters, uint64_t bytes, uint64_t dope)
{
    memset(place, 'x', size);
    memcpy(place, letters, bytes / 8 * 8);
    first[0] = dope, first[1] = (uintptr_t)room, first[2] = 0, first[3] = bytes;
    memcpy(&first[2], bytes >= 8 ? letters + bytes - 8 : letters, bytes >= 8 ? 8 : bytes);
}
