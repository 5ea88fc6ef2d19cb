/* <string.h>, <strings.h> and <ctype.h>. */

/* That texts are cut is what is tested. */
#pragma GCC diagnostic ignored "-Wstringop-truncation"

#include "check.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int sign(int number)
{
    return (number > 0) - (number < 0);
}

static void copying(void)
{
    char text[32], other[32];

    memset(text, 'x', sizeof text);
    CHECK(memcpy(text, "abc", 4) == text && strcmp(text, "abc") == 0 && text[4] == 'x');
    CHECK(memmove(text + 1, text, 4) == text + 1 && memcmp(text, "aabc", 5) == 0);
    CHECK(memmove(text, text + 1, 4) == text && strcmp(text, "abc") == 0);
    CHECK(strcpy(text, "tern") == text && strlen(text) == 4);
    CHECK(strncpy(text, "gull", 8) == text && memcmp(text, "gull\0\0\0\0", 8) == 0);
    CHECK(strncpy(text, "albatross", 4) == text && memcmp(text, "alba\0", 5) == 0);
    CHECK(stpcpy(text, "sea") == text + 3);
    CHECK(strcat(text, "gull") == text && strcmp(text, "seagull") == 0);
    CHECK(strncat(text, "s and more", 1) == text && strcmp(text, "seagulls") == 0);
    CHECK(strlcpy(other, "cormorant", 5) == 9 && strcmp(other, "corm") == 0);
    CHECK(strlcat(other, "orant", 8) == 9 && strcmp(other, "cormora") == 0);
    CHECK(memccpy(other, "one;two", ';', 7) == other + 4);
    CHECK(mempcpy(other, "12345", 5) == other + 5);
    for (size_t len = 0; len < 600; len++) {
        static unsigned char from[700], to[700];
        for (size_t i = 0; i < sizeof from; i++)
            from[i] = (unsigned char)(i * 7 + len), to[i] = 0xee;
        memcpy(to + len % 16, from + len % 9, len);
        CHECK(memcmp(to + len % 16, from + len % 9, len) == 0 && to[len % 16 + len] == 0xee);
        memset(to + len % 8, (int)len, len);
        CHECK((len == 0 || (to[len % 8] == (len & 0xff) && to[len % 8 + len - 1] == (len & 0xff))));
    }
}

static void comparing(void)
{
    CHECK(sign(memcmp("ab\xff", "ab\x01", 3)) == 1 && memcmp("abc", "abd", 2) == 0);
    CHECK(sign(strcmp("abc", "abd")) == -1 && sign(strcmp("b", "abc")) == 1 && strcmp("", "") == 0);
    CHECK(sign(strcmp("\xe9", "z")) == 1);
    CHECK(strncmp("abcd", "abcx", 3) == 0 && sign(strncmp("abcd", "abcx", 4)) == -1);
    CHECK(strcasecmp("TerN", "tErn") == 0 && strncasecmp("TERx", "tery", 3) == 0);
    CHECK(sign(strcoll("a", "b")) == -1);
    char transformed[8];
    CHECK(strxfrm(transformed, "abc", sizeof transformed) == 3 && strcmp(transformed, "abc") == 0);
}

static void searching(void)
{
    const char *text = "a tern is a bird";

    CHECK(memchr(text, 'i', 16) == text + 7 && memchr(text, 'i', 7) == NULL);
    CHECK(memrchr(text, 'a', 16) == text + 10);
    CHECK(strchr(text, 'i') == text + 7 && strchr(text, 0) == text + 16 && strchr(text, 'z') == NULL);
    CHECK(strrchr(text, 'i') == text + 13 && strrchr(text, 'z') == NULL);
    CHECK(strstr(text, "tern") == text + 2 && strstr(text, "") == text && strstr(text, "terns") == NULL);
    CHECK(strcasestr(text, "BIRD") == text + 12);
    CHECK(memmem(text, 16, "is a", 4) == text + 7);
    CHECK(strspn(text, "a tern") == 7 && strcspn(text, "ix") == 7);
    CHECK(strpbrk(text, "xbi") == text + 7 && strpbrk(text, "xyz") == NULL);
    CHECK(strnlen(text, 100) == 16 && strnlen(text, 3) == 3);
    CHECK(ffs(0) == 0 && ffs(8) == 4);
    CHECK(index(text, 't') == text + 2 && rindex(text, 't') == text + 2);
}

static void cutting(void)
{
    char text[] = "/usr//share/tern", fields[] = "a,,b", *rest, *at = fields;

    CHECK(strcmp(strtok(text, "/"), "usr") == 0 && strcmp(strtok(NULL, "/"), "share") == 0);
    CHECK(strcmp(strtok(NULL, "/"), "tern") == 0 && strtok(NULL, "/") == NULL);
    char again[] = "x y";
    CHECK(strcmp(strtok_r(again, " ", &rest), "x") == 0 && strcmp(strtok_r(NULL, " ", &rest), "y") == 0);
    CHECK(strtok_r(NULL, " ", &rest) == NULL);
    CHECK(strcmp(strsep(&at, ","), "a") == 0 && strcmp(strsep(&at, ","), "") == 0);
    CHECK(strcmp(strsep(&at, ","), "b") == 0 && at == NULL);
    char *copy = strdup("copy"), *part = strndup("copy", 2);
    CHECK(strcmp(copy, "copy") == 0 && strcmp(part, "co") == 0);
    free(copy);
    free(part);
    CHECK(strcmp(strerror(ENOMEM), "Not enough space") == 0 && strcmp(strerror(0), "Success") == 0);
}

static void characters(void)
{
    CHECK(isalpha('a') && !isalpha('1') && isdigit('9') && !isdigit('a') && isalnum('z') && isspace('\t'));
    CHECK(isupper('A') && islower('a') && ispunct('!') && isprint(' ') && !isgraph(' ') && iscntrl(7));
    CHECK(isxdigit('F') && !isxdigit('g') && isblank(' ') && toupper('q') == 'Q' && tolower('Q') == 'q' && tolower('1') == '1');
}

void strings(void)
{
    copying();
    comparing();
    searching();
    cutting();
    characters();
}
