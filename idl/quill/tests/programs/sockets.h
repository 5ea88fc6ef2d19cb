/* Shared by the programs in C that are a client and a server at the two ends of a socket. */

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A connection at a path: the server waits for the client there, the client until the server does. */
static int connection(const char *path, bool serves)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int end = socket(AF_UNIX, SOCK_STREAM, 0), tries = 0;

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (serves) {
        CHECK(bind(end, (struct sockaddr *)&address, sizeof address) == 0 && listen(end, 1) == 0);
        return accept(end, NULL, NULL);
    }
    while (connect(end, (struct sockaddr *)&address, sizeof address) != 0 && tries++ < 1000)
        usleep(10000);
    return end;
}
