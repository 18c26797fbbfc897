/*
 * How a prefill engine P with two ranks lends its KV cache to a decode engine D, and takes it back:
 * epoch, handshake, subscription, read, lease, revocation, sleep, wake and restart.
 *
 * README.md says what is left out and how to read a trace. The classes named here are
 * dev.dormouse.connector's, unless another package stands before them.
 *
 * Each fault that the protocol is made to prevent is a macro; with it, SPIN must find the trace in
 * which a request gets other KV than its own, or waits for ever:
 *
 * NO_EPOCH          a request names no epoch: what is loaded once is read for ever
 * WORKER_EPOCH      each rank counts its own registrations; a request names rank 0's count
 * NO_MIN            payloads of two epochs count as the newer one
 * NO_INCARNATION    a restarted P begins at the same epoch, and nothing tells it from the old one
 * NO_ACK            P demands its blocks back, and does not wait until D says that it obeys
 * EARLY_ACK         D obeys before its reads in flight have ended
 * LATE_LOAD         D obeys, and then loads what a handshake begun before has fetched
 * NO_ANONYMOUS      P forgets who fetched its payloads without a subscription
 * FORGET_READERS    P forgets its readers when it publishes anew, also if holds outlive that
 * NO_MARGIN         D trusts its clock to the end of the lease
 * NO_SECOND_LOOK    D looks at its clock before a read, not after
 * TRUST_UNNAMED     D reads without asking P what parameters mean that lost epoch and instance
 * SHAKE_ALWAYS      a request of an older epoch causes a handshake
 * RELOAD_ALWAYS     each handshake's payloads are loaded, also if they are loaded already
 * KEEP_UNREAD       P waits for ever for a hold to be read
 * ASK_AGAIN         D asks again for what P has answered to be gone
 *
 * LEGACY: D is one that cannot subscribe and knows no instances, like vLLM's.
 */

#ifndef N
#define N 2             /* requests */
#endif
#ifndef SLEEPS
#define SLEEPS 2        /* how often P is asked to sleep */
#endif
#ifndef RESTARTS
#define RESTARTS 1      /* how often P's process is replaced */
#endif
#ifndef UNDOS
#define UNDOS 1         /* how often a drain is cancelled, or one rank fails to sleep */
#endif

/*
 * The abstract clock. A lease counts down to OVER: then P may free the blocks. D's clock is wrong
 * by up to one tick; LATE_MAY and TIMELY_MAY can both be true, and either may be what D sees.
 */
#define LEASE 3
#define OVER 1
#ifdef NO_MARGIN
#define MARGIN 0
#define FLOOR 0
#else
#define MARGIN 1        /* ReadDeadline.marginNanos */
#define FLOOR OVER
#endif
#define TIMELY_MAY(t) ((t) + 1 > OVER + MARGIN)
#define LATE_MAY(t) ((t) <= OVER + MARGIN)

/*
 * Memory. One block per rank. Its content is the number of the request whose prompt it holds, or 0:
 * free, so that another prompt may stand there, or zeros. An agent's src tells what its remote keys
 * lead to: the pages that are mapped now, or pages that P has given away, with what was in them.
 */
#define LIVE 0
#define FROZEN(content) ((content) + 1)

typedef Agent {         /* FetchedEngine, LoadedEngine */
    bool there;
    byte inst;
    byte epoch[2];
    byte src[2]
};

#define LO(a) (a.epoch[0] < a.epoch[1] -> a.epoch[0] : a.epoch[1])
#define HI(a) (a.epoch[0] < a.epoch[1] -> a.epoch[1] : a.epoch[0])
#ifdef NO_MIN
#define NAMED(a) HI(a)
#else
#define NAMED(a) LO(a)  /* RegistrationIdentity.epoch: the smallest of the payloads */
#endif

#ifdef LEGACY
#define KIND false      /* D asks no questions but for payloads */
#else
#define KIND true
#endif

/* P's process */
#define AWAKE 0
#define DRAINING 1
#define RELEASING 2
#define ASLEEP 3        /* on all ranks, or on one: the others are brought back then */
byte phase = AWAKE;
byte inst = 1;          /* ConnectorConfig.instanceId */
byte epoch = 1;         /* PullScheduler.epoch */
bool served = true;     /* SideChannelDesk.payloads */
byte mem[2];
byte unmapped;          /* a bit per rank */
byte made;              /* requests that were prefilled */
byte hold;              /* the request whose blocks are held, or 0 */
byte left;              /* SendLedger: until when */
byte book;              /* HoldBook: what P says that it holds */
byte note;              /* a completion on its way: D has read this request */
bool revoking;          /* Revoker.isActive */
bool subscribed;        /* D is among SideChannelDesk.readers, and has not answered a revocation */
bool anonymous;         /* SideChannelDesk.anonymousReaders of connections that have ended */
bool connected;         /* the same of the connection that is open */
bool asked;             /* somebody waits for /sleep's answer */
byte sleeps = SLEEPS;
byte restarts = RESTARTS;
byte undos = UNDOS;
#ifdef WORKER_EPOCH
byte count[2];
#define EPOCH_OF(r) (1 + count[r])
#define EPOCH_HANDED_OVER EPOCH_OF(0)
#else
#define EPOCH_OF(r) epoch
#define EPOCH_HANDED_OVER epoch
#endif

/* a revocation on its way to D */
byte demandInst;
byte demandEpoch;

/* D's process, one rank that reads from both of P's */
#define NONE 0          /* not prefilled yet */
#define ROUTED 1        /* its parameters are on their way from P to D */
#define WAITING 2       /* WaitingRead */
#define READING 3       /* ActiveRead */
#define ENDED 4         /* answered: from what was read, with an error, or computed by D itself */
byte state[N];
byte heldInst[N];       /* HoldAnswer of P: by whom, */
byte heldEpoch[N];      /* in which epoch; */
byte answer[N];         /* and whether at all */
#define UNKNOWN 0
#define DENIED 1
#define CONFIRMED 2
byte namedInst[N];      /* RemoteSource */
byte namedEpoch[N];
bool named[N];          /* false: a router has dropped both, and the deadline */
byte deadline[N];       /* the true time until the deadline that D was told */
bool wasAsked[N];       /* WaitingRead.wasAsked */
bool doubt[N];          /* WaitingRead.doubt */
byte moved[N];          /* a bit per rank whose bytes have come */
bool wrong[N];          /* some of them were not this request's */
Agent loaded;           /* RemoteEngine.loaded */
Agent fetched;          /* RemoteEngine.fetched */
Agent fetching;         /* what a handshake thread has so far */
bool invalid;           /* what is loaded was revoked: no new read goes through it */
bool stopped;           /* D has come to a halt for ever */
byte obeyInst;          /* the revocation that D is obeying */
byte obeyEpoch;
byte lateInst;          /* the revocation that came during a handshake: */
byte lateEpoch;         /* what the handshake brings may be what was revoked */
byte covered;           /* the requests that the handshake is for, a bit each */
byte loads;             /* how often D has loaded what P publishes now */

/* how far D's handshake is */
#define IDLE 0
#define RANK0 1
#define RANK1 2
#define SUBSCRIBE 3
#define QUESTIONS 4
#define ANSWERED 5
#define BROKEN 6
byte handshake = IDLE;

#define USABLE (loaded.there && !invalid)
#if N == 1
#define SOME(p, x) (p(0, x))
#elif N == 2
#define SOME(p, x) (p(0, x) || p(1, x))
#else
#define SOME(p, x) (p(0, x) || p(1, x) || p(2, x))
#endif
#define I(i) (N > i -> i : 0)
#define IS(i, x) (state[i] == x)
#define IN_FLIGHT SOME(IS, READING)

inline clear(a) {
    a.there = false; a.inst = 0; a.epoch[0] = 0; a.epoch[1] = 0; a.src[0] = 0; a.src[1] = 0
}

inline copy(from, to) {
    to.there = true; to.inst = from.inst;
    to.epoch[0] = from.epoch[0]; to.epoch[1] = from.epoch[1];
    to.src[0] = from.src[0]; to.src[1] = from.src[1]
}

/* ---------------------------------------------------------------------------------------------- P */

/* Nobody holds the blocks any more: another prompt may stand there at once. */
inline release() {
    hold = 0; left = 0; book = 0; note = 0; mem[0] = 0; mem[1] = 0
}

/* A rank's pages leave its addresses. Whoever has a key to them keeps the old ones (RDMA). */
inline unmap(r) {
    if :: fetched.there && fetched.src[r] == LIVE -> fetched.src[r] = FROZEN(mem[r]) :: else fi;
    if :: loaded.there && loaded.src[r] == LIVE -> loaded.src[r] = FROZEN(mem[r]) :: else fi;
    if
    :: handshake > RANK0 + r && handshake < BROKEN && fetching.src[r] == LIVE ->
        fetching.src[r] = FROZEN(mem[r])
    :: else
    fi;
    mem[r] = 0
}

/*
 * PullScheduler.publish: one epoch for the payloads of all ranks. Readers of what was published
 * before are forgotten, unless something is still held that they may read: then the pages stayed.
 */
#ifdef FORGET_READERS
#define FORGET true
#else
#define FORGET (hold == 0)
#endif
inline publish() {
    epoch++; served = true; book = 0; loads = 0;
    if :: FORGET -> subscribed = false; anonymous = false; connected = false :: else fi
}

/* A read of request i has been posted to rank r, has moved nothing yet, and may still count. */
#define RELIED_ON(i, r) (state[i] == READING && !(moved[i] & (1 << r)) && \
    loaded.src[r] == LIVE && TIMELY_MAY(deadline[i]))

inline unmapForSleep(r) {
    assert(!SOME(RELIED_ON, r));
    unmap(r);
    unmapped = unmapped | (1 << r);
#ifdef WORKER_EPOCH
    count[r]++;
#endif
}

active proctype Holder()        /* engine.core.EngineCore, SleepCoordinator; PullScheduler */
{
endIdle:
    do
    /* PullScheduler.handOver: a prompt was prefilled, and is held for D. */
    :: d_step { phase == AWAKE && hold == 0 && made < N ->
        namedInst[made] = inst; namedEpoch[made] = EPOCH_HANDED_OVER; named[made] = true;
        state[made] = ROUTED; deadline[made] = LEASE;
        made++;
        mem[0] = made; mem[1] = made; hold = made; left = LEASE; book = made }
    /* SendLedger.take: D has read it. */
    :: d_step { note != 0 -> release() }
    /* SendLedger.expire */
#ifndef KEEP_UNREAD
    :: d_step { hold != 0 && left <= OVER -> release() }
#endif

    /* POST /sleep. From now on no renewal counts. */
    :: d_step { phase == AWAKE && sleeps > 0 -> sleeps--; phase = DRAINING; asked = true }
    /* Mode abort and keep: no handshake any more, and all readers shall end. */
    :: atomic { phase == DRAINING && hold != 0 && !revoking ->
        served = false; book = 0; revoking = true;
        if
        :: subscribed && !stopped -> demandInst = inst; demandEpoch = epoch
        :: true         /* D is not reached */
        fi }
    /* Revoker.isComplete: everyone who could read has obeyed. */
#ifdef NO_ACK
#define COMPLETE true
#elif defined(NO_ANONYMOUS)
#define COMPLETE (!subscribed)
#else
#define COMPLETE (!subscribed && !anonymous && !connected)
#endif
    :: d_step { phase == DRAINING && revoking && hold != 0 && COMPLETE -> release() }
    /* POST /resume: the drain is given up. */
    :: d_step { phase == DRAINING && undos > 0 ->
        undos--; asked = false; phase = AWAKE;
        if :: revoking -> revoking = false; publish() :: else fi }
    /* SleepCoordinator.letGo */
    :: d_step { phase == DRAINING && hold == 0 ->
        served = false; revoking = false; phase = RELEASING }

    /* SleepCoordinator.fallAsleep: rank by rank */
    :: d_step { phase == RELEASING && !(unmapped & 1) -> unmapForSleep(0) }
    :: d_step { phase == RELEASING && !(unmapped & 2) -> unmapForSleep(1) }
    :: d_step { phase == RELEASING && unmapped == 3 ->
        asked = false; phase = ASLEEP }
    /* one rank cannot: the other is brought back */
    :: d_step { phase == RELEASING && unmapped != 0 && unmapped != 3 && undos > 0 ->
        undos--; asked = false; phase = ASLEEP }
    /* SleepCoordinator.bringBack: somebody wakes it. */
    :: d_step { phase == ASLEEP -> unmapped = 0; publish(); phase = AWAKE }

    /* P's process ends, and another begins at the same address with the same engine id. */
    :: d_step { restarts > 0 ->
        restarts--;
        unmap(0); unmap(1);
        release();
        inst++;
#ifdef LEGACY
        epoch++;        /* PullConnector.epochBase: they rise over restarts */
#else
        epoch = 1;      /* the worst that a clock can do to them */
#endif
        served = true; unmapped = 0; phase = AWAKE; asked = false; revoking = false; loads = 0;
#ifdef WORKER_EPOCH
        count[0] = 0; count[1] = 0;
#endif
        subscribed = false; anonymous = false; connected = false }
    od
}

/* ---------------------------------------------------------------------------------------------- D */

/* ReadOutcomes: the request is answered. What it leaves behind tells nothing any more. */
inline end(i) {
    state[i] = ENDED;
    named[i] = false; namedInst[i] = 0; namedEpoch[i] = 0; deadline[i] = 0; wasAsked[i] = false;
    doubt[i] = false; answer[i] = 0; heldInst[i] = 0; heldEpoch[i] = 0; moved[i] = 0;
    wrong[i] = false
}

/* Handshakes.start: for all requests that wait. */
inline ask() {
    handshake = RANK0;
    covered = (IS(0, WAITING) -> 1 : 0);
#if N > 1
    covered = covered | (IS(1, WAITING) -> 2 : 0);
#endif
#if N > 2
    covered = covered | (IS(2, WAITING) -> 4 : 0);
#endif
}

/* A read whose bytes count. */
inline good(i) {
    assert(!wrong[i]);
    assert(loaded.epoch[0] == loaded.epoch[1]);
    end(i)
}

inline failCovered(i) {
    if :: N > i && (covered & (1 << i)) && state[I(i)] == WAITING -> end(I(i)) :: else fi
}

inline settle(i) {
    if :: N > i && (covered & (1 << i)) && state[I(i)] == WAITING -> wasAsked[I(i)] = true :: else fi
}

/* What a D has that has come to a halt tells nothing any more; its subscription stays. */
inline forget(i) {
    if :: N > i && state[I(i)] != NONE && state[I(i)] != ROUTED -> end(I(i)) :: else fi
}

inline endHandshake() {
    clear(fetching);
    handshake = IDLE; covered = 0; lateInst = 0; lateEpoch = 0
}

/* P's side of one question for a payload; who has one counts as anonymous until it subscribes. */
inline fetch(r) {
    fetching.inst = inst;
    fetching.epoch[r] = EPOCH_OF(r);
    fetching.src[r] = LIVE;
    connected = true
}

/* The conversation ends: who has not subscribed by now stays anonymous. */
inline disconnect() {
    anonymous = anonymous || connected;
    connected = false
}

inline hangUp() {
    disconnect();
    clear(fetching);
    handshake = BROKEN
}

/* WaitingRead.needsHoldAnswer */
#define QUESTIONED(i, x) (KIND && (covered & (1 << i)) && state[i] == WAITING && \
    answer[i] == UNKNOWN && (!named[i] || doubt[i]))

/* HoldBook.answer: P says whether it holds the request, in what it publishes now. */
inline question(i) {
    if
    :: N > i && QUESTIONED(I(i), 0) ->
        heldInst[I(i)] = inst;
        heldEpoch[I(i)] = EPOCH_HANDED_OVER;
        if
        :: book == i + 1 -> answer[I(i)] = CONFIRMED; deadline[I(i)] = left
        :: else -> answer[I(i)] = DENIED; heldInst[I(i)] = 0; heldEpoch[I(i)] = 0
        fi
    :: else
    fi
}

#define RUNS(i, x) (deadline[i] > x)
inline tick(i) {
    if :: N > i && deadline[I(i)] > FLOOR -> deadline[I(i)]-- :: else fi
}

proctype Request(byte i)        /* a request's way; its prompt's content is i + 1 */
{
    byte seen;
endIdle:
    do
    /* A router forwards the parameters, at any time from now on, whole or not. */
    :: atomic { state[i] == ROUTED && !stopped ->
        state[i] = WAITING;
        if
        :: named[i] = true
#ifndef LEGACY
        :: named[i] = false; namedInst[i] = 0; namedEpoch[i] = 0
#endif
        fi }

    /* RemoteEngines.judge and RegistrationIdentity.judge. */
#if defined(LEGACY) || defined(NO_INCARNATION)
#define SAME(i) true
#else
#define SAME(i) (namedInst[i] == loaded.inst)
#endif
#ifdef TRUST_UNNAMED
#define CONFIRMS(i) true
#define WAS_ASKED(i) true
#else
#define CONFIRMS(i) (answer[i] == CONFIRMED && heldInst[i] == loaded.inst && \
    heldEpoch[i] == NAMED(loaded) && heldEpoch[i] == HI(loaded))
#define WAS_ASKED(i) wasAsked[i]
#endif
#ifdef NO_EPOCH
#define OLDER(i) false
#define NEWER(i) false
#else
#define OLDER(i) (namedEpoch[i] < HI(loaded))
#define NEWER(i) (namedEpoch[i] > NAMED(loaded))
#endif
#define READ(i) (USABLE && (named[i] -> SAME(i) && !OLDER(i) && !NEWER(i) \
    : WAS_ASKED(i) && CONFIRMS(i)))
#ifdef ASK_AGAIN
#define STALE(i) false
#elif defined(SHAKE_ALWAYS)
#define STALE(i) (wasAsked[i] && !READ(i))
#else
#define STALE(i) (!USABLE -> wasAsked[i] : (named[i] \
    -> (!SAME(i) -> wasAsked[i] : OLDER(i) || (NEWER(i) && wasAsked[i])) \
    : wasAsked[i] && !CONFIRMS(i)))
#endif
#define TELLS_DEADLINE(i) (answer[i] == UNKNOWN -> named[i] : CONFIRMS(i))
#define JUDGED(i) (state[i] == WAITING && !fetched.there && !stopped)

    /* RemoteEngines.startInTime, in time */
    :: atomic { JUDGED(i) && READ(i) &&
            TELLS_DEADLINE(i) && TIMELY_MAY(deadline[i]) ->
        state[i] = READING }
    /* the same, too late or unknown: ask P whether it still holds the blocks */
    :: atomic { JUDGED(i) && READ(i) &&
            (!TELLS_DEADLINE(i) || LATE_MAY(deadline[i])) &&
            answer[i] == UNKNOWN && KIND && handshake == IDLE ->
        doubt[i] = true;
        ask() }
    /* the same, and P was asked */
    :: atomic { JUDGED(i) && READ(i) &&
            (!TELLS_DEADLINE(i) || LATE_MAY(deadline[i])) &&
            (answer[i] != UNKNOWN || !KIND) ->
        end(i) }
    /* RemoteEngines.refuse */
    :: atomic { JUDGED(i) && STALE(i) -> end(i) }
    /* RemoteEngines.ask */
    :: atomic { JUDGED(i) && !READ(i) && !STALE(i) && handshake == IDLE ->
        /* Once D has loaded what P publishes, no request of that process makes it ask again. */
        assert(!(USABLE && named[i] && loaded.inst == inst && namedInst[i] == inst &&
            loaded.epoch[0] == EPOCH_OF(0) && loaded.epoch[1] == EPOCH_OF(1)));
        ask() }

    /*
     * A transfer's bytes come. If the keys lead to pages that P has given away, they are the old
     * ones (RDMA), or those that stand at the addresses now (cma, tcp), unless P's process is gone.
     */
    :: atomic { state[i] == READING && moved[i] != 3 ->
        if
        :: !(moved[i] & 1) -> seen = 0
        :: !(moved[i] & 2) -> seen = 1
        fi;
        moved[i] = moved[i] | (1 << seen);
        if
        :: loaded.src[seen] == LIVE || loaded.inst == inst -> seen = mem[seen]
        :: loaded.src[seen] != LIVE -> seen = loaded.src[seen] - 1
        fi;
        wrong[i] = wrong[i] || seen != i + 1;
        seen = 0 }

    /* ActiveRead.progress: the last byte has come, and then the clock is looked at again. */
    :: atomic { state[i] == READING && moved[i] == 3 && !stopped ->
        /* Notification.Completion, which may be lost */
        if :: hold == i + 1 -> note = hold :: true fi;
        if
#ifdef NO_SECOND_LOOK
        :: good(i)
#else
        :: TIMELY_MAY(deadline[i]) -> good(i)
        :: LATE_MAY(deadline[i]) -> end(i)
#endif
        fi }
    od
}

/* WorkerReport.revoked: no read goes through it any more. The answer may not reach P. */
inline obeyed() {
    if
    :: revoking && inst == obeyInst && epoch == obeyEpoch -> subscribed = false
    :: true
    fi;
    obeyInst = 0; obeyEpoch = 0
}

#ifdef EARLY_ACK
#define OBEYED true
#else
#define OBEYED (!invalid)
#endif
#define NAMES(a) (a.there && a.inst == obeyInst && LO(a) <= obeyEpoch)

#ifdef RELOAD_ALWAYS
#define CONFIRM false
#else
#define CONFIRM true
#endif

/* RemoteEngines.progress and the handling of revocations. */
active proctype Reader()
{
endIdle:
    do
    /* D may come to a halt at any time, and never go on. */
    :: d_step { !stopped ->
        stopped = true;
        forget(0); forget(1); forget(2);
        clear(loaded); clear(fetched); endHandshake(); invalid = false;
        demandInst = 0; demandEpoch = 0; obeyInst = 0; obeyEpoch = 0 }

    /* RemoteEngines.settleHandshake: it brought nothing */
    :: atomic { handshake == BROKEN ->
        failCovered(0); failCovered(1); failCovered(2);
        endHandshake() }
    /* it brought payloads, which are not loaded if a revocation has come since it began */
    :: atomic { handshake == ANSWERED ->
        settle(0); settle(1); settle(2);
        if
        :: fetching.inst == lateInst && LO(fetching) <= lateEpoch
        :: else ->
            if
            :: CONFIRM && USABLE && loaded.inst == fetching.inst &&
                loaded.epoch[0] == fetching.epoch[0] && loaded.epoch[1] == fetching.epoch[1]
                /* LoadedEngine.confirm */
            :: else -> copy(fetching, fetched)
            fi
        fi;
        endHandshake() }

    /* RemoteEngines.replace, once no read goes through what is loaded */
    :: atomic { fetched.there && !IN_FLIGHT ->
        copy(fetched, loaded); clear(fetched); invalid = false;
        if
        :: loaded.inst == inst && served &&
            loaded.epoch[0] == EPOCH_OF(0) && loaded.epoch[1] == EPOCH_OF(1) ->
            loads++;
            assert(loads <= 1)
        :: else
        fi }
    /* PeerLoader.drop of what was revoked */
    :: atomic { loaded.there && invalid && !fetched.there && !IN_FLIGHT ->
        clear(loaded); invalid = false }

    /* A revocation comes: no new read through what it names. */
    :: atomic { demandInst != 0 && obeyInst == 0 ->
        obeyInst = demandInst; obeyEpoch = demandEpoch; demandInst = 0; demandEpoch = 0;
        if :: NAMES(loaded) -> invalid = true :: else fi;
        if :: NAMES(fetched) -> clear(fetched) :: else fi;
#ifndef LATE_LOAD
        if :: handshake != IDLE -> lateInst = obeyInst; lateEpoch = obeyEpoch :: else fi;
#endif
        if :: OBEYED -> obeyed() :: else fi }
    :: atomic { obeyInst != 0 && OBEYED -> obeyed() }
    od
}

/* HandshakePool: one conversation with P's side channel, question by question. */
active proctype Handshake()
{
endIdle:
    do
    :: atomic { handshake == RANK0 && !stopped ->
        if :: served -> fetch(0); handshake = RANK1 :: else -> hangUp() fi }
    :: atomic { handshake == RANK1 && !stopped ->
        if
        :: served && inst == fetching.inst -> fetch(1); handshake = SUBSCRIBE
        :: else -> hangUp()
        fi }
    /* SideChannelDesk.subscribe; payloads of two epochs are not subscribed to */
    :: atomic { handshake == SUBSCRIBE && !stopped ->
        if
        :: inst != fetching.inst -> hangUp()
        :: inst == fetching.inst && (!KIND || fetching.epoch[0] != fetching.epoch[1]) ->
            handshake = QUESTIONS
        :: inst == fetching.inst && KIND && fetching.epoch[0] == fetching.epoch[1] ->
            if
            :: served && EPOCH_OF(0) == fetching.epoch[0] ->
                subscribed = true; connected = false;
                handshake = (SOME(QUESTIONED, 0) -> QUESTIONS : ANSWERED)
            :: served && EPOCH_OF(0) == fetching.epoch[0] -> /* the answer is lost */
                subscribed = true; connected = false; hangUp()
            :: hangUp() /* the question is lost */
            :: !(served && EPOCH_OF(0) == fetching.epoch[0]) ->
                clear(fetching); handshake = RANK0
            fi
        fi }
    /* HoldBook.answer */
    :: atomic { handshake == QUESTIONS && !stopped ->
        if
        :: inst != fetching.inst -> hangUp()
        :: else ->
            question(0); question(1); question(2);
            disconnect();
            handshake = ANSWERED
        fi }
    od
}

#ifndef NO_HEARTBEAT
active proctype Heartbeat()     /* HeartbeatSchedule, SendLedger.renew */
{
endIdle:
    do
    :: atomic { hold != 0 && phase == AWAKE && left > OVER && left < LEASE && !stopped &&
            (IS(hold - 1, WAITING) || IS(hold - 1, READING)) ->
        left = LEASE }
    od
}
#endif

active proctype Clock()
{
endIdle:
    do
    :: d_step { left > OVER || SOME(RUNS, FLOOR) ->
        if :: left > OVER -> left-- :: else fi;
        tick(0); tick(1); tick(2) }
    od
}

init {
    atomic {
        run Request(0);
#if N > 1
        run Request(1);
#endif
#if N > 2
        run Request(2);
#endif
    }
}

#if N == 1
#define ALL_DONE IS(0, ENDED)
#elif N == 2
#define ALL_DONE (IS(0, ENDED) && IS(1, ENDED))
#else
#define ALL_DONE (IS(0, ENDED) && IS(1, ENDED) && IS(2, ENDED))
#endif
/* Every request is answered, and every sleep that is asked for ends: asleep, or with an error. */
ltl live { (<> (stopped || ALL_DONE)) && [] (asked -> <> !asked) }
