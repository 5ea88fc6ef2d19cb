/* Reading what somebody types: a number and a word, a line, characters, and the end. */

#include "check.h"

#include <stdio.h>
#include <string.h>

void input(void)
{
    char word[16], line[64];
    int number, character;

    puts("C-TEST reads");
    CHECK(scanf("%d %15s", &number, word) == 2 && number == 42 && strcmp(word, "terns") == 0);
    CHECK(getchar() == '\n');
    CHECK(fgets(line, sizeof line, stdin) == line && strcmp(line, "a whole line\n") == 0);
    CHECK((character = getchar()) == 'x' && ungetc(character, stdin) == 'x' && getchar() == 'x' && getchar() == '\n');
    CHECK(getchar() == EOF && feof(stdin));
}
