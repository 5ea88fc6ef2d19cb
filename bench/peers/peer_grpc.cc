// gRPC with its blocking interfaces, over a Unix-domain socket at the path that is the argument.

#include "calls.grpc.pb.h"
#include "measure.h"

#include <csignal>
#include <grpcpp/grpcpp.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

using grpc::ServerContext;
using grpc::Status;

struct Server final : public peers::Calls::Service {
    Status Tiny(ServerContext *, const peers::TinyRequest *, peers::Nothing *) override { return Status::OK; }

    Status Small(ServerContext *, const peers::SmallRequest *in, peers::Number *out) override
    {
        out->set_value(in->a() + in->b() + in->c());
        return Status::OK;
    }

    Status Str(ServerContext *, const peers::StrRequest *in, peers::Number *out) override
    {
        out->set_value(static_cast<int32_t>(in->text().size()));
        return Status::OK;
    }

    Status Length(ServerContext *, const peers::Bytes *in, peers::Number *out) override
    {
        out->set_value(static_cast<int32_t>(in->bytes().size()));
        return Status::OK;
    }

    Status Fetch(ServerContext *, const peers::Number *in, peers::Bytes *out) override
    {
        out->set_bytes(std::string(static_cast<size_t>(in->value()), '\0'));
        return Status::OK;
    }
};

static void serve(const std::string &address)
{
    Server server;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&server);
    auto running = builder.BuildAndStart();
    if (running)
        running->Wait();
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    std::string address = std::string("unix:") + argv[1];
    // Before the library begins: it has threads.
    pid_t child = fork();
    if (child == 0) {
        serve(address);
        _exit(1);
    }
    {
        auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
        EXPECT(channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(20)));
        auto calls = peers::Calls::NewStub(channel);
        peers::TinyRequest tiny;
        peers::SmallRequest small;
        peers::StrRequest str;
        peers::Bytes bytes, got;
        peers::Nothing nothing;
        peers::Number number, count;

        tiny.set_a(1);
        small.set_a(1), small.set_b(2), small.set_c(3);
        str.set_text(TEXT);
        bytes.set_bytes(std::string(BYTES_LEN, '\0'));
        count.set_value(BYTES_LEN);
        MEASURE("tiny", CALLS, ({ grpc::ClientContext c; EXPECT(calls->Tiny(&c, tiny, &nothing).ok()); }));
        MEASURE("small", CALLS, ({
            grpc::ClientContext c;
            EXPECT(calls->Small(&c, small, &number).ok() && number.value() == 6);
        }));
        MEASURE("str.100", CALLS, ({
            grpc::ClientContext c;
            EXPECT(calls->Str(&c, str, &number).ok() && number.value() == TEXT_LEN);
        }));
        MEASURE("length.4096", CALLS, ({
            grpc::ClientContext c;
            EXPECT(calls->Length(&c, bytes, &number).ok() && number.value() == BYTES_LEN);
        }));
        MEASURE("fetch.4096", CALLS, ({
            grpc::ClientContext c;
            EXPECT(calls->Fetch(&c, count, &got).ok() && got.bytes().size() == BYTES_LEN);
        }));
    }
    kill(child, SIGTERM);
    waitpid(child, nullptr, 0);
    return 0;
}
