// omniORB, client and server in processes of their own, over a Unix-domain socket.

#include "calls.hh"
#include "measure.h"

#include <csignal>
#include <cstring>
#include <string>
#include <sys/wait.h>

static CORBA::Octet page[BYTES_LEN];

struct Server final : public POA_Calls {
    void tiny(CORBA::Long) override {}
    CORBA::Long small(CORBA::Long a, CORBA::Short b, CORBA::Short c) override { return a + b + c; }
    CORBA::Long str(const char *of) override { return static_cast<CORBA::Long>(strlen(of)); }
    CORBA::Long length(const Bytes &bytes) override { return static_cast<CORBA::Long>(bytes.length()); }

    Bytes *fetch(CORBA::Long count) override
    {
        // The sequence does not own the page.
        auto length = static_cast<CORBA::ULong>(count);
        return new Bytes(length, page, false);
    }
};

static CORBA::ORB_ptr broker(const std::string &address)
{
    const char *server_options[][2] = { { "endPoint", address.c_str() }, { nullptr, nullptr } };
    int count = 0;

    return CORBA::ORB_init(count, nullptr, "omniORB4", address.empty() ? nullptr : server_options);
}

// Tells where the server is, and serves until somebody ends the process.
static void serve(const std::string &path, int tells)
{
    CORBA::ORB_var orb = broker("giop:unix:" + path);
    CORBA::Object_var root = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var adapter = PortableServer::POA::_narrow(root);
    auto *server = new Server;
    PortableServer::ObjectId_var id = adapter->activate_object(server);
    Calls_var calls = server->_this();
    CORBA::String_var reference = orb->object_to_string(calls);

    adapter->the_POAManager()->activate();
    std::string line = std::string(reference) + "\n";
    EXPECT(write(tells, line.data(), line.size()) == static_cast<ssize_t>(line.size()));
    orb->run();
}

static std::string told(int from)
{
    std::string text;
    char c;

    while (read(from, &c, 1) == 1 && c != '\n')
        text += c;
    return text;
}

int main(int argc, char **argv)
{
    int ends[2];

    if (argc != 2 || pipe(ends) != 0)
        return 2;
    // Before the library begins: it has threads.
    pid_t child = fork();
    if (child == 0) {
        serve(argv[1], ends[1]);
        _exit(1);
    }
    close(ends[1]);
    {
        CORBA::ORB_var orb = broker("");
        CORBA::Object_var object = orb->string_to_object(told(ends[0]).c_str());
        Calls_var calls = Calls::_narrow(object);
        const Bytes bytes(BYTES_LEN, page, false);

        EXPECT(!CORBA::is_nil(calls));
        MEASURE("tiny", CALLS, calls->tiny(1));
        MEASURE("small", CALLS, EXPECT(calls->small(1, 2, 3) == 6));
        MEASURE("str.100", CALLS, EXPECT(calls->str(TEXT) == TEXT_LEN));
        MEASURE("length.4096", CALLS, EXPECT(calls->length(bytes) == BYTES_LEN));
        MEASURE("fetch.4096", CALLS, ({ Bytes_var got = calls->fetch(BYTES_LEN); EXPECT(got->length() == BYTES_LEN); }));
    }
    kill(child, SIGTERM);
    waitpid(child, nullptr, 0);
    return 0;
}
