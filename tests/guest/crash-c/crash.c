/* A C program that misbehaves on request. `crash-c errors` tells what errors are called instead. */

#include <tern.h>

static volatile int zero;

static __attribute__((noinline)) void write_to(char *address)
{
    *(volatile char *)address = 1;
    zero = 0; /* so that this is a call, and not the end of the caller */
}

static __attribute__((noinline)) int divide(int by)
{
    int quotient = 1000 / by;
    zero = 0;
    return quotient;
}

static void misbehave(const char *kind)
{
    if (strcmp(kind, "divide") == 0)
        printf("the quotient is %d\n", divide(zero));
    else
        write_to((char *)0xdead0000);
    zero = 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "errors") == 0) {
        struct tern_message message = { .partner = 12345 };

        printf("%s\n", tern_error_text((uint32_t)tern_ipc_call(&message)));
        return 0;
    }
    misbehave(argc > 1 ? argv[1] : "fault");
    return 0;
}
