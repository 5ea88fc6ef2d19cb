/* The smallest C program. */

#include <tern.h>

int main(void)
{
    puts("Hello from C");
    return 0;
}
