/**
 * Every time-out, size and count of the running service, each with its unit in its name. A number without a unit is a
 * count. `buildApp` and the modules take them as an argument, so that a test of a limit hands in its own. The
 * operator's guide has a table of them, which a test compares with this file.
 *
 * Two kinds stand elsewhere: limits that the interface promises, such as lengths of fields, beside the fields; limits
 * that the operator sets, in config.ts.
 */
export const LIMITS = {
  /** Connections of clients. */
  connections: {
    /** Longest time for all of a request to arrive. A slow sender gets 408; a connection that never sends a byte is closed. */
    requestMs: 10_000,
    /** Load balancers usually close an idle connection after 60 s. Ours is longer, so that it is always they who close it. */
    keepAliveMs: 75_000,
    /**
     * Time without a byte read or written after which a connection with a request under way is closed: its reader takes
     * nothing. Node.js lets the first such period pass if something was written before it, so closing takes 60 to 120
     * s. An open pay page is never closed so: it gets a heartbeat every 20 s.
     */
    stalledMs: 60_000,
    /** 10,000 open pay pages, and 2,000 for all others. Each takes about 20 KB, and an open file, which `ulimit -n` must allow. */
    connections: 12_000,
    headersBytes: 16 * 1024,
    /**
     * Headers of one request; more are refused. Browsers and proxies together send fewer. Without the refusal Node.js
     * would silently drop the rest, perhaps an Idempotency-Key.
     */
    headers: 100,
  },

  body: {
    /** Every field at its longest fits, unless the redirect_url is long and mostly not ASCII. */
    bytes: 16 * 1024,
    /** 150,000 fields in 1 MiB blocked the event loop for 387 ms. */
    fields: 100,
  },

  answer: {
    /**
     * Longest time from a complete request to the first byte of its answer; then it is 503. A handler may wait for a place
     * in a batch, for a connection and for several queries, each with a limit of its own: this one bounds their sum. The
     * look-up of credentials comes before it; together they stay below 2 s.
     */
    ms: 1_100,
    /**
     * Longest time after that for a refund or a cancellation whose commit was sent before: the commit, and one look-up whether it
     * was stored. Each ends after `queryTimeoutMs`.
     */
    commitMs: 1_800,
  },

  /** Mean delay of timers in a second. A longer one means that more requests come than can be served: new ones get 503. */
  lateness: {
    operationsMs: 250,
    /** Pay pages are refused first: anyone who knows an address can ask for them, and they ask again by themselves. */
    pagesMs: 100,
  },

  /** checkPaymentStatus waits for a database that is briefly away, since its callers take a 503 for a final answer. */
  patience: {
    /** The public Android client waits 10 s for an answer, WooCommerce's 30 s. */
    ms: 8_000,
    /** Pause between two questions to the database. */
    pauseMs: 500,
    /** Requests that wait at once, about 10 kB each: 250 a second for all of the 8 s. One more gets 503 at once. */
    waiting: 2_000,
  },

  /** What a caller may do in a minute; requests with an accepted key are the operator's to limit, see config.ts. */
  rates: {
    /** Wrong secrets for one public key from one address. */
    wrongSecrets: 20,
    /** Unknown public keys from one address. Many shops can share it behind a balancer, and some may use a revoked key. */
    unknownKeys: 100,
  },

  /** Look-ups that every request needs: its key, and whether a partner is linked to the merchant. */
  lookUps: {
    /** How long a result is reused: a revoked key or a cut link must be known everywhere within 5 s. */
    cachedMs: 1_000,
    /** Results cached at once, "not found" among them; the one that was used the longest ago is forgotten first. */
    cachedKeys: 10_000,
  },

  /** Every connection to the database, but those of the operator's page. */
  database: {
    /**
     * Longest wait for a free connection, and for a new one to be made. Together with `queryTimeoutMs` it also bounds
     * how long dead connections fill the pool: within a second after the database's return a request has to succeed.
     */
    connectTimeoutMs: 700,
    /** Longest wait for a result, by our own clock: over a silently cut network nothing ever comes. */
    queryTimeoutMs: 900,
  },

  /**
   * Connections of each kind of work, so that no kind waits for the connections of another. The operator sets the
   * number for requests: DATABASE_POOL_SIZE.
   */
  pools: {
    /**
     * Connections that insert new intents. One is best: while a batch is stored, the next one gathers all that arrive.
     * With two, batches were smaller and each create cost a seventh more.
     */
    creates: 1,
    /** Look-ups of keys and of partners' links, so that they wait behind no other request. */
    keys: 2,
    /** A bank that sends again what an outage held up sends hundreds at once. */
    reports: 3,
    /** Webhooks, return calls, questions to acquirers, expiries. */
    due: 3,
    /** Customers' pages and their QR codes, which anybody can ask for. */
    pages: 3,
    /**
     * Settlement lists: as many connections to the primary as to the replica, if there is one. A slow reader holds one
     * for as long as the list takes.
     */
    lists: 6,
    /** The operator's page and `/metrics`. */
    operator: 2,
  },

  /** Intents that arrive together are stored by one statement. */
  inserts: {
    /**
     * Longest wait of an intent for its batch. After 1.1 s the caller has received 503: storing the intent then would
     * create an order that no client knows about.
     */
    waitingMs: 1_000,
  },

  /** Reports of payments by a bank, the operator or the sandbox. */
  reports: {
    /**
     * Failed attempts of one order that are stored; further ones are only counted. A customer makes a few, and every
     * report of an order reads all of them. An order's changes are numbered up to 32,767, so the limit leaves a number
     * for its payment.
     */
    attemptsOfOrder: 300,
    /**
     * Signed notifications that could not be read and are kept. Anyone who can sign could fill the disk with them; a fault of the
     * acquirer's software shows in the first ones.
     */
    unreadableKept: 1_000,
  },

  /** Acquirers that make their own links, and are asked for one before an intent is stored. */
  acquirers: {
    /** Longest wait for all that a request needs: a log-in, the call, and both again when the token was refused. */
    requestMs: 5_000,
    /**
     * Calls under way to one acquirer, from one instance. One more is refused at once, so that a dead acquirer holds 64
     * requests, not all. Questions about payments are never refused.
     */
    callsUnderWay: 64,
    /**
     * Refunds that are sent or asked about at once at one acquirer, from one instance, and as many questions about payments. A
     * merchant has a quarter, so that three with long queues leave places free; half of `callsUnderWay` is left to others.
     */
    dueAtOnce: 16,
  },

  /**
   * Calls that the service makes: webhooks and return calls to addresses that merchants choose, and calls to acquirers.
   */
  outbound: {
    /** Longest time for all of a call: name, connection and answer. */
    merchantMs: 15_000,
    acquirerMs: 3_000,
    /** Characters of the receiver's answer shown by `ops webhooks deliveries`. */
    shownCharacters: 200,
    /** Longest Retry-After that is believed: a day. */
    retryAfterSeconds: 24 * 60 * 60,
  },

  /** Webhooks and return calls. */
  webhooks: {
    /**
     * How often deliveries, questions to acquirers and expired orders that are due are looked for. The first attempt of a
     * webhook has to come within 2 s of the change.
     */
    lookIntervalMs: 1_000,
    /** Calls under way to one endpoint, of one instance. */
    callsOfEndpoint: 4,
    /** Calls under way of one instance, each a connection: half of them are for endpoints that fail, half for the others. */
    callsAtOnce: 1_000,
    /** Webhooks of one merchant that are on. Each costs every payment of the merchant a row. */
    ofMerchant: 20,
    /**
     * Endpoints that one look for due deliveries returns, and expired orders of a merchant that one statement handles.
     */
    lookedAt: 1_000,
    /** A delivery that was taken is due again after this time, unless its outcome is stored: longer than a call. */
    visibilityMs: 40_000,
    /** Longest wait of a stopping instance for calls under way: their receivers get them again from another one. */
    stopMs: 2_000,
  },

  /** Settlements. */
  lists: {
    /** Longest list that is answered in one piece. A caller reads longer ones one at a time. */
    shortRows: 1_000,
    /**
     * Longer lists that are read at once, each by another caller. The pool has more connections, so that short lists
     * go on.
     */
    longAtOnce: 4,
    /**
     * Longest time for one list; then it is cut off. While it is read, PostgreSQL keeps every row deleted since it
     * began.
     */
    longestMs: 60 * 60 * 1000,
    /**
     * A reader of a long list holds a connection and a snapshot of the database. It is cut off when it takes less
     * than this, on average over the window: the slowest mobile links in use carry it.
     */
    slowestReaderBytesPerSecond: 16 * 1024,
    /**
     * Window of that average. It is long because TCP reports taken bytes in portions: a full buffer of 6 MB opens when
     * a sixteenth of it was read.
     */
    readerWindowMs: 60_000,
    /**
     * How often the reader's speed and permission are checked. With the 1 s for which look-ups are remembered, a reader
     * who may not read any more is cut off within 5 s.
     */
    readerCheckIntervalMs: 2_000,
  },

  /** Pay pages, their events and QR codes. */
  pages: {
    /** Pages with events that are open at once in one instance; each holds a connection. */
    open: 10_000,
    /** Open pages of one order: someone who knows its address must not use up the places of all other customers. */
    openOfOrder: 20,
    /** How often open pages are looked up, all of them in one query. */
    lookUpIntervalMs: 1_000,
    /** QR images remembered: 4,000 usual PNGs of 1.8 kB, or 500 usual SVGs of 14 kB. The longest link makes an SVG of 117 kB. */
    qrImagesBytes: 8 * 1024 * 1024,
  },

  /** Connections of the operator's page and of `/metrics`: of their own, so that no request waits behind them. */
  operatorDatabase: {
    /** Then PostgreSQL itself ends a statement. A day of orders is counted by one statement: 14,000 take about 10 ms. */
    statementTimeoutMs: 4_000,
  },

  /** The operator's page. Nothing is counted unless somebody opens it. */
  operatorPage: {
    days: 30,
    /** Longest wait for what is not counted yet; the page says what is missing and asks again. */
    waitMs: 300,
    /** How often the page asks again; ten times as often while something is not counted yet. */
    refreshSeconds: 30,
    /** Whether yesterday balances is remembered for longer: a merchant's payments of it take 35 µs each. */
    balance: { cachedMs: 60_000, cachedKeys: 1 },
  },

  shutdown: {
    /**
     * Longest wait for requests under way: a client may read a long list slowly. With the drain of 5 s it stays below
     * the 30 s after which container platforms kill.
     */
    closeMs: 20_000,
  },
}

export type Limits = typeof LIMITS
