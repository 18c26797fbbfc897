/*
 * How a prefill engine P writes a prompt into the blocks of a decode engine D with two ranks, while
 * either may sleep, wake, give up or be restarted: registration, epoch, cancellation.
 *
 * What the names mean is in dev.dormouse.connector: PushReceiver, PushReceipts (D); PushSender,
 * PushMatches, ActiveWrites (P). README.md says what is left out.
 *
 * Each fault that the protocol is made to prevent is a macro; with it, SPIN must find the trace in
 * which a write lands in what is not its request's any more:
 *
 * NO_PUSH_EPOCH     a registration names no epoch: P writes through whatever it has loaded of D
 * NO_CANCEL         D gives blocks away without P's word that nothing will be written
 * EARLY_CLEAR       P gives that word while a write runs
 * NO_CLOSED         P forgets what was taken back: a registration that comes late begins anew
 * FIRST_COPY        P writes to all ranks of D when the first has registered
 * ANY_ANSWER        D takes every answer of P for that word, also that it is not so yet
 */

#ifndef N
#define N 2             /* requests, one after the other in the same block */
#endif
#ifndef SLEEPS
#define SLEEPS 2        /* how often D sleeps */
#endif
#ifndef RESTARTS
#define RESTARTS 1      /* how often P's process is replaced */
#endif
#define RANKS 2
#define AT(i, r) ((i) * RANKS + (r))

/* D */
byte epoch = 1;         /* of its registration */
bool serving = true;    /* false from the withdrawal of its payloads to the next publish */
bool mapped = true;
byte pages = 1;         /* which ones are mapped */
byte sleeps = SLEEPS;
byte owner;             /* the request that has the block, from 1; 0: it may be another prompt's */
byte started;           /* requests so far */

#define NEW 0           /* not registered: ordered, or waiting for P to be loaded */
#define WAITING 1       /* PushReceipt without failure */
#define FAILED 2        /* PushReceipt with failure: being taken back */
#define OUT 3           /* neither waits nor can be written */
byte state[N * RANKS];

/* the network: a registration and a cancellation for each rank, and P's word of a write's end */
#define FLYING 1
#define TAKEN 2
byte registration[N * RANKS];
byte sentTo[N * RANKS]; /* the process of P that it reaches */
byte cancel[N * RANKS];
bool told[N * RANKS];
byte named[N];          /* the epoch that the registrations name */

/* P */
byte process = 1;
byte restarts = RESTARTS;
byte known[N];          /* PushMatches: a bit for each rank that has registered */
bool closed[N];
bool underWay[N * RANKS];
byte through[N];        /* the pages that a write goes to */
byte loaded;            /* the epoch of what is loaded of D; 0: nothing */
byte loadedPages;
byte fetched;           /* a handshake's answer, not loaded yet */
byte fetchedPages;
byte i, r;

#define ALL_OUT(i) (state[AT(i, 0)] == OUT && state[AT(i, 1)] == OUT)
#define LEGS(i) (underWay[AT(i, 0)] || underWay[AT(i, 1)])
#if N == 1
#define IN_FLIGHT LEGS(0)
#else
#define IN_FLIGHT (LEGS(0) || LEGS(1))
#endif
#define SERVED (owner - 1)
#ifdef FIRST_COPY
#define WANTED(i) (known[i] != 0)
#else
#define WANTED(i) (known[i] == 3)
#endif
#ifdef NO_PUSH_EPOCH
#define MAY_WRITE(i) true
#else
#define MAY_WRITE(i) (loaded == named[i])   /* OrderVerdict.ofPush */
#endif

/* A message to a process that is gone. */
#define LOSE(x) registration[x] = (registration[x] == FLYING -> TAKEN : registration[x])

inline close(i) {
#ifdef NO_CLOSED
    known[i] = 0
#else
    closed[i] = true
#endif
}

/* D's scheduler: a block for the next request when nobody has it; sleep, wake. */
proctype Decoder() {
    do
    :: atomic { mapped && serving && owner == 0 && started < N ->
        started++; owner = started; named[SERVED] = epoch }
    :: atomic { owner > 0 && ALL_OUT(SERVED) ->
        cancel[AT(SERVED, 0)] = 0; cancel[AT(SERVED, 1)] = 0;   /* what comes late means nothing */
        told[AT(SERVED, 0)] = false; told[AT(SERVED, 1)] = false; owner = 0 }
    :: atomic { sleeps > 0 && serving -> sleeps--; serving = false }
    :: atomic { mapped && !serving && owner == 0 -> mapped = false }
    :: atomic { mapped && !serving -> serving = true; epoch++ }  /* the sleep is given up */
    :: atomic { !mapped -> mapped = true; pages++; serving = true; epoch++ }
    od
}

/* One rank of D and what it has to do with one request. */
proctype Rank(byte me) {
    byte x;
    do
    :: owner > 0 -> atomic {
        if :: owner > 0 -> x = AT(SERVED, me) :: else -> goto again fi;
        if
        :: state[x] == NEW && serving ->        /* PushReceiver.register */
            state[x] = WAITING; registration[x] = FLYING; sentTo[x] = process
        :: state[x] == NEW -> state[x] = OUT    /* refused, or P cannot be loaded */
        :: state[x] == WAITING -> state[x] = FAILED     /* time, an abort, a sleep */
        :: state[x] == WAITING && told[x] -> state[x] = OUT
        :: state[x] == FAILED && told[x] -> state[x] = OUT
#ifdef NO_CANCEL
        :: state[x] == FAILED -> state[x] = OUT
#else
        :: state[x] == FAILED && cancel[x] == 0 -> cancel[x] = FLYING
        :: state[x] == FAILED && cancel[x] == TAKEN -> state[x] = OUT
#endif
        :: else
        fi;
again:  x = 0 }
    od
}

/* P's rank: takes messages, shakes hands, writes. */
proctype Holder() {
    do
    :: atomic { select (i : 0 .. N - 1); select (r : 0 .. 1);
        if
        :: registration[AT(i, r)] == FLYING ->
            registration[AT(i, r)] = TAKEN;
            if :: !closed[i] -> known[i] = known[i] | (1 << r) :: else fi
        :: cancel[AT(i, r)] == FLYING ->        /* PushSender.takeObeyed */
            if
            :: sentTo[AT(i, r)] != process -> cancel[AT(i, r)] = TAKEN  /* DemandReply.ends */
#ifdef ANY_ANSWER
            :: sentTo[AT(i, r)] == process -> cancel[AT(i, r)] = TAKEN
#endif
#ifdef EARLY_CLEAR
            :: sentTo[AT(i, r)] == process -> close(i); cancel[AT(i, r)] = TAKEN
#else
            :: sentTo[AT(i, r)] == process && !LEGS(i) -> close(i); cancel[AT(i, r)] = TAKEN
#endif
            :: else
            fi
        :: underWay[AT(i, r)] ->
            assert(owner == i + 1 && through[i] == pages && mapped);
            underWay[AT(i, r)] = false; told[AT(i, r)] = true;
            if :: !LEGS(i) -> closed[i] = true; through[i] = 0 :: else fi
        :: serving && fetched == 0 -> fetched = epoch; fetchedPages = pages
        :: fetched > 0 && !IN_FLIGHT ->
            loaded = fetched; loadedPages = fetchedPages; fetched = 0; fetchedPages = 0
        :: WANTED(i) && !closed[i] && !LEGS(i) && loaded > 0 ->
            if
            :: MAY_WRITE(i) ->
                through[i] = loadedPages; underWay[AT(i, 0)] = true; underWay[AT(i, 1)] = true
            :: !MAY_WRITE(i) && loaded > named[i] -> closed[i] = true   /* its pages are gone */
            :: else     /* P asks D again */
            fi
        :: restarts > 0 ->
            restarts--; process++;
            loaded = 0; loadedPages = 0; fetched = 0; fetchedPages = 0;
            for (i : 0 .. N - 1) {
                known[i] = 0; closed[i] = false; through[i] = 0;
                underWay[AT(i, 0)] = false; underWay[AT(i, 1)] = false;
                LOSE(AT(i, 0)); LOSE(AT(i, 1))
            };
            i = 0
        :: else
        fi; i = 0; r = 0 }
    od
}

init {
    atomic { run Decoder(); run Rank(0); run Rank(1); run Holder() }
}
