/* A program that stands between a client and a server of each interface, for the self-test of C's stubs: requests come at descriptor 0 and are
 * made once more at descriptor 1, so that each value goes through a server and a client of this file. */

/* Answers requests until there are none any more. No table of context handles is kept: those of the test are numbers made by chance. */
static int quill_relay(quill_dispatch dispatch, const void *methods)
{
    quill_client server = { 1, { NULL } };
    quill_status status = QUILL_OK;

    while (status == QUILL_OK) {
        quill_memory memory = { NULL };
        quill_out out = { 0 };
        quill_in in;
        uint32_t label;
        bool silent = false;

        status = quill_receive(0, &memory, &label, &in);
        if (status == QUILL_OK) {
            label = dispatch(methods, &server, label, &in, &out, &silent);
            if (silent)
                quill_discard(&out);
            else
                status = quill_send(0, label, &out);
        }
        quill_release(&memory);
    }
    quill_release(&server.memory);
    return status == 1 ? 0 : 1;
}
