/* Corners of System V's ipc, a part of `corners.c`: shared memory, semaphores and messages, and of queues that have names. Identifiers are other ones on each machine, so none is printed. */

enum {
	MPROTECT = 10, SHMGET = 29, SHMAT = 30, SHMCTL = 31, SEMGET = 64, SEMOP = 65, SEMCTL = 66, SHMDT = 67, MSGGET = 68, MSGSND = 69, MSGRCV = 70,
	MSGCTL = 71, SETUID = 105, SEMTIMEDOP = 220, MQ_OPEN = 240, MQ_UNLINK = 241, MQ_TIMEDSEND = 242, MQ_TIMEDRECEIVE = 243, MQ_NOTIFY = 244, MQ_GETSETATTR = 245,
	CREATE = 01000, EXCLUSIVE = 02000, NOWAIT = 04000, REMOVE = 0, TELLS = 2, READ_ONLY = 010000, ROUNDS = 020000, REPLACES = 040000, UNDO = 010000,
	GET_VALUE = 12, GET_WAITERS = 14, GET_ZERO_WAITERS = 15, SET_VALUE = 16, ANY_TEXT = 010000, EXCEPT = 020000, COPY = 040000,
	CREATES = 0100, ALONE = 0200, BOTH = 2, NONBLOCK = 04000,
};

struct operation {
	unsigned short semaphore;
	short change, flags;
};

#define OPERATE(id, ...) CALL(SEMOP, id, ((struct operation[]){ __VA_ARGS__ }), COUNT(((struct operation[]){ __VA_ARGS__ })), 0)
#define VALUE(id, at) CALL(SEMCTL, id, at, GET_VALUE, 0)

/* How a child has ended: its status. */
static number status_of(number child)
{
	int status = 0;
	CALL(WAIT4, child, &status, 0, 0);
	return status >> 8 & 0xff;
}

/* Mode and attachments of a segment. */
static void tell_segment(const char *name, number id)
{
	word told[14] = { 0 };
	number done = CALL(SHMCTL, id, TELLS, told, 0);
	TELL(name, done, (number)(told[2] >> 32), (number)told[6], (number)told[11]);
}

static void segments(void)
{
	number id = CALL(SHMGET, 0, 5000, CREATE | 0600, 0), at = CALL(SHMAT, id, 0, 0, 0), other = CALL(SHMAT, id, 0, READ_ONLY, 0);
	volatile char *bytes = (volatile char *)at, *shown = (volatile char *)other;
	bytes[4096] = 'x';
	TELL("a segment", id >= 0, at > 0, shown[4096], shown[8191]);
	tell_segment("is attached", id);
	TELL("no segments", CALL(SHMGET, 0, 0, 0600, 0), CALL(SHMGET, 0, -1, 0600, 0), CALL(SHMGET, 0x7e57ed, 1, 0, 0), CALL(SHMAT, -1, 0, 0, 0), CALL(SHMAT, id, at, 0, 0),
	     CALL(SHMAT, id, at + 1, 0, 0), CALL(SHMAT, id, 0, REPLACES, 0), CALL(SHMDT, at + 4096, 0, 0, 0), CALL(SHMDT, at + 1, 0, 0, 0), CALL(SHMCTL, id, 99, 0, 0),
	     CALL(SHMCTL, id, TELLS, 8, 0), CALL(MPROTECT, other, 4096, 3, 0));
	TELL("in its place", CALL(SHMAT, id, other + 8, REPLACES | ROUNDS | READ_ONLY, 0) == other, CALL(MUNMAP, other, 4096, 0, 0));
	tell_segment("a half", id);
	TELL("the other half", CALL(SHMDT, other, 0, 0, 0), CALL(SHMDT, other, 0, 0, 0));
	number child = CALL(FORK, 0, 0, 0, 0);
	if (child == 0) {
		bytes[0] = 'c';
		CALL(SHMCTL, id, REMOVE, 0, 0);
		number again = CALL(SHMAT, id, 0, 0, 0);
		end(again > 0 && ((volatile char *)again)[4096] == 'x');
	}
	TELL("a child", status_of(child), bytes[0]);
	tell_segment("removed", id);
	TELL("left", CALL(SHMDT, at, 0, 0, 0), CALL(SHMAT, id, 0, 0, 0), CALL(SHMCTL, id, REMOVE, 0, 0));
	id = CALL(SHMGET, 0, 1, CREATE | 0644, 0);
	child = CALL(FORK, 0, 0, 0, 0);
	if (child == 0) {
		number set = CALL(SETUID, 65534, 0, 0, 0);
		TELL("another owner", set, CALL(SHMAT, id, 0, 0, 0), CALL(SHMAT, id, 0, READ_ONLY, 0) > 0, CALL(SHMCTL, id, REMOVE, 0, 0));
		end(0);
	}
	status_of(child);
	CALL(SHMCTL, id, REMOVE, 0, 0);
}

/* A child waits for a semaphore until somebody does something, and says how its wait has ended. */
static number waits_for(number id, struct operation operation)
{
	number child = CALL(FORK, 0, 0, 0, 0);
	if (child == 0) {
		handle(SIGUSR1, SA_RESTART, 0);
		end(-CALL(SEMOP, id, &operation, 1, 0));
	}
	wait_for_state(child, child, 'S');
	return child;
}

static void semaphores(void)
{
	number id = CALL(SEMGET, 0, 2, CREATE | 0600, 0);
	TELL("a set", id >= 0, OPERATE(id, { 0, 2, 0 }, { 1, 1, 0 }, { 0, 0, NOWAIT }), VALUE(id, 0), OPERATE(id, { 0, 2, 0 }, { 1, 1, 0 }, { 0, -1, 0 }), VALUE(id, 0), VALUE(id, 1));
	TELL("no operations", OPERATE(id, { 2, 1, 0 }), OPERATE(id, { 1, 32767, 0 }), OPERATE(id, { 0, 0, NOWAIT }), CALL(SEMOP, id, 0, 1, 0), CALL(SEMOP, id, 0, 501, 0),
	     CALL(SEMOP, id, 0, 0, 0), CALL(SEMOP, -1, 0, 1, 0), CALL(SEMCTL, id, 0, SET_VALUE, 32768), CALL(SEMCTL, id, 2, SET_VALUE, 1), CALL(SEMCTL, id, 0, 99, 0),
	     CALL(SEMGET, 0, 0, 0600, 0), CALL(SEMGET, 0, -1, 0600, 0));
	number first = waits_for(id, (struct operation){ 0, -3, 0 }), second = waits_for(id, (struct operation){ 0, -2, 0 });
	number third = waits_for(id, (struct operation){ 1, 0, 0 });
	TELL("they wait", CALL(SEMCTL, id, 0, GET_WAITERS, 0), CALL(SEMCTL, id, 0, GET_ZERO_WAITERS, 0), CALL(SEMCTL, id, 1, GET_ZERO_WAITERS, 0));
	OPERATE(id, { 0, 1, 0 });
	TELL("less is there", status_of(second), VALUE(id, 0));
	CALL(KILL, third, SIGUSR1, 0, 0);
	TELL("a handler", status_of(third));
	third = waits_for(id, (struct operation){ 1, -2, UNDO });
	CALL(SEMCTL, id, 1, SET_VALUE, 2);
	TELL("undone", status_of(third), VALUE(id, 1));
	word time[2] = { 0, 1000 };
	struct operation operation = { 0, -1, 0 };
	TELL("a time", call6(SEMTIMEDOP, (word)id, (word)&operation, 1, (word)time, 0, 0));
	CALL(SEMCTL, id, 0, REMOVE, 0);
	TELL("removed", status_of(first), VALUE(id, 0));
}

static number send_text(number id, number kind, const char *text, word flags)
{
	struct { number kind; char text[8]; } message = { kind, { 0 } };
	word len = length(text);
	for (word i = 0; i < len; i++)
		message.text[i] = text[i];
	return CALL(MSGSND, id, &message, len, flags);
}

/* Result, kind and first byte of a message that is received. */
static void receive_text(const char *name, number id, word len, number kind, word flags)
{
	struct { number kind; char text[8]; } message = { 0, { 0 } };
	number done = call6(MSGRCV, (word)id, (word)&message, len, (word)kind, flags | NOWAIT, 0);
	TELL(name, done, message.kind, message.text[0]);
}

static void messages(void)
{
	number id = CALL(MSGGET, 0, CREATE | 0600, 0, 0);
	TELL("sent", id >= 0, send_text(id, 5, "five", 0), send_text(id, 3, "three", 0), send_text(id, 9, "", 0), send_text(id, 0, "none", 0), send_text(id, -1, "none", 0),
	     send_text(-1, 1, "none", 0), CALL(MSGSND, id, 0, 1, 0), CALL(MSGSND, id, (number[]){ 1 }, 8193, 0));
	receive_text("it is longer", id, 2, 3, 0);
	receive_text("it is cut off", id, 2, 3, ANY_TEXT);
	receive_text("another kind", id, 8, 5, EXCEPT);
	receive_text("none up to that", id, 8, -4, 0);
	receive_text("up to that", id, 8, -5, 0);
	receive_text("there are none", id, 8, 0, 0);
	for (int last = 0; last < 2; last++) {
		number child = CALL(FORK, 0, 0, 0, 0);
		if (child == 0) {
			number message[2];
			handle(SIGUSR1, SA_RESTART, 0);
			end(-call6(MSGRCV, (word)id, (word)message, 8, 0, 0, 0));
		}
		wait_for_state(child, child, 'S');
		if (last)
			CALL(MSGCTL, id, REMOVE, 0, 0);
		else
			CALL(KILL, child, SIGUSR1, 0, 0);
		TELL("a wait ends", status_of(child));
	}
}

static number open_queue(const char *name, number flags, number most, number bytes)
{
	number attributes[8] = { 0, most, bytes };
	return CALL(MQ_OPEN, name, flags, 0600, most ? attributes : 0);
}

static number send_to_queue(number queue, const char *text, word priority)
{
	return call6(MQ_TIMEDSEND, (word)queue, (word)text, length(text), priority, 0, 0);
}

/* Result, priority and first byte of a message that is received by a time. */
static void receive_from_queue(const char *name, number queue, word len, const word *time)
{
	unsigned priority = 0;
	char text[16] = { 0 };
	number done = call6(MQ_TIMEDRECEIVE, (word)queue, (word)text, len, (word)&priority, (word)time, 0);
	TELL(name, done, priority, text[0]);
}

static void named_queues(void)
{
	CALL(MQ_UNLINK, "corners", 0, 0, 0);
	number queue = open_queue("corners", CREATES | BOTH, 3, 16), attributes[8] = { 0 };
	TELL("a queue", queue > 0, open_queue("corners", CREATES | ALONE | BOTH, 3, 16), open_queue("none", 0, 0, 0), open_queue("/corners", CREATES, 0, 0),
	     open_queue("", CREATES, 0, 0), open_queue("..", CREATES, 0, 0), open_queue("other", CREATES, -1, 1), open_queue("other", CREATES, 1, 0), CALL(FCNTL, queue, 1, 0, 0));
	TELL("sent", send_to_queue(queue, "low", 1), send_to_queue(queue, "high", 9), send_to_queue(queue, "also low", 1), send_to_queue(queue, "01234567890123456", 0),
	     send_to_queue(queue, "none", 32768), send_to_queue(0, "none", 0), send_to_queue(99, "none", 0));
	struct { int fd; short wanted, found; } poll = { (int)queue, 5, 0 };
	CALL(POLL, &poll, 1, 0, 0);
	TELL("it is full", poll.found, CALL(MQ_GETSETATTR, queue, 0, attributes, 0), attributes[0], attributes[1], attributes[2], attributes[3]);
	static const word past[2] = { 1, 0 }, wrong[2] = { 1, 1000000000 };
	receive_from_queue("too short", queue, 15, 0);
	receive_from_queue("the highest", queue, 16, past);
	receive_from_queue("the first", queue, 16, 0);
	receive_from_queue("the second", queue, 16, 0);
	receive_from_queue("too late", queue, 16, past);
	receive_from_queue("no time", queue, 16, wrong);
	word event[8] = { 7, SIGUSR1 }, none[8] = { 0, 1ul << 32 };
	handle(SIGUSR1, 0, 0);
	count = 0;
	TELL("somebody hears of it", CALL(MQ_NOTIFY, queue, event, 0, 0), CALL(MQ_NOTIFY, queue, none, 0, 0), send_to_queue(queue, "told", 0), count,
	     CALL(MQ_NOTIFY, queue, event, 0, 0), send_to_queue(queue, "not told", 0), count, CALL(MQ_NOTIFY, queue, 0, 0, 0), CALL(MQ_NOTIFY, queue, none, 0, 0));
	count = 0;
	number set[8] = { NONBLOCK };
	TELL("nobody waits", CALL(MQ_GETSETATTR, queue, set, 0, 0), CALL(MQ_UNLINK, "corners", 0, 0, 0), CALL(MQ_UNLINK, "corners", 0, 0, 0));
	receive_from_queue("a message", queue, 16, 0);
	receive_from_queue("another", queue, 16, 0);
	receive_from_queue("none", queue, 16, 0);
	CALL(CLOSE, queue, 0, 0, 0);
}

static void objects(void)
{
	segments();
	semaphores();
	messages();
	named_queues();
}
