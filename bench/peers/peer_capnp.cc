// Cap'n Proto's rpc, client and server on the two ends of a Unix-domain socket.

#include "calls.capnp.h"
#include "measure.h"

#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <sys/wait.h>

static kj::byte page[BYTES_LEN];

struct Server final : public Calls::Server {
    kj::Promise<void> tiny(TinyContext) override { return kj::READY_NOW; }

    kj::Promise<void> small(SmallContext context) override
    {
        auto in = context.getParams();
        context.getResults().setResult(in.getA() + in.getB() + in.getC());
        return kj::READY_NOW;
    }

    kj::Promise<void> str(StrContext context) override
    {
        context.getResults().setResult(static_cast<int32_t>(context.getParams().getText().size()));
        return kj::READY_NOW;
    }

    kj::Promise<void> length(LengthContext context) override
    {
        context.getResults().setResult(static_cast<int32_t>(context.getParams().getBytes().size()));
        return kj::READY_NOW;
    }

    kj::Promise<void> fetch(FetchContext context) override
    {
        auto count = static_cast<size_t>(context.getParams().getCount());
        context.getResults().setBytes(kj::arrayPtr(page, count));
        return kj::READY_NOW;
    }
};

static void serve(int socket)
{
    auto io = kj::setupAsyncIo();
    auto stream = io.lowLevelProvider->wrapSocketFd(socket);
    capnp::TwoPartyVatNetwork network(*stream, capnp::rpc::twoparty::Side::SERVER);
    auto rpc = capnp::makeRpcServer(network, kj::heap<Server>());
    network.onDisconnect().wait(io.waitScope);
}

int main()
{
    int end;
    pid_t child = fork_connected(&end);

    if (child == 0) {
        serve(end);
        _exit(0);
    }
    {
        auto io = kj::setupAsyncIo();
        auto stream = io.lowLevelProvider->wrapSocketFd(end, kj::LowLevelAsyncIoProvider::TAKE_OWNERSHIP);
        capnp::TwoPartyClient network(*stream);
        auto calls = network.bootstrap().castAs<Calls>();

        MEASURE("tiny", CALLS, ({
            auto request = calls.tinyRequest();
            request.setA(1);
            request.send().wait(io.waitScope);
        }));
        MEASURE("small", CALLS, ({
            auto request = calls.smallRequest();
            request.setA(1);
            request.setB(2);
            request.setC(3);
            EXPECT(request.send().wait(io.waitScope).getResult() == 6);
        }));
        MEASURE("str.100", CALLS, ({
            auto request = calls.strRequest();
            request.setText(TEXT);
            EXPECT(request.send().wait(io.waitScope).getResult() == TEXT_LEN);
        }));
        MEASURE("length.4096", CALLS, ({
            auto request = calls.lengthRequest();
            request.setBytes(kj::arrayPtr(page, BYTES_LEN));
            EXPECT(request.send().wait(io.waitScope).getResult() == BYTES_LEN);
        }));
        MEASURE("fetch.4096", CALLS, ({
            auto request = calls.fetchRequest();
            request.setCount(BYTES_LEN);
            EXPECT(request.send().wait(io.waitScope).getBytes().size() == BYTES_LEN);
        }));
    }
    waitpid(child, nullptr, 0);
    return 0;
}
