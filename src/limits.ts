/**
 * Every time-out, size and count of the running service. A name ends in the unit; a number without a unit is a count.
 * `buildApp` and the modules take the limits as an argument, so that a test can pass its own. A test compares the
 * table of limits in the operator's guide with this file.
 *
 * Limits that the interface promises, such as lengths of fields, stand beside the fields. Limits that the operator sets
 * stand in config.ts.
 */
export const LIMITS = {
  /** Connections of clients. */
  connections: {
    /** Longest time for a whole request to arrive. A slow sender gets 408; a connection without a byte is closed. */
    requestMs: 10_000,
    /** Load balancers close an idle connection after 60 s. This time is longer, so that the balancer closes first. */
    keepAliveMs: 75_000,
    /**
     * Time without a byte read or written after which a connection with a request under way is closed. Node.js skips
     * the first period after something was written, so closing takes 60 to 120 s. An open pay page gets a heartbeat
     * every 20 s and stays open.
     */
    stalledMs: 60_000,
    /** 10,000 for open pay pages, 2,000 for others. Each takes about 20 KB and an open file, see `ulimit -n`. */
    connections: 12_000,
    headersBytes: 16 * 1024,
    /**
     * Headers of one request; a request with more is refused. Node.js would silently drop the rest, perhaps an
     * Idempotency-Key. Browsers and proxies together send fewer.
     */
    headers: 100,
  },

  body: {
    /** Longest body. Every field at its longest fits, unless the redirect_url is long and mostly not ASCII. */
    bytes: 16 * 1024,
    /** Most fields of a body, because parsing many fields blocks the event loop. */
    fields: 100,
  },

  answer: {
    /**
     * Longest time from a complete request to the first byte of its answer; after it the answer is 503. This limit
     * bounds the sum of the handler's waits for a batch, a connection and queries. With the look-up of credentials,
     * which comes before, the answer stays below 2 s.
     */
    ms: 1_100,
    /**
     * Longest time after `ms` for a refund or a cancellation whose commit was sent: the commit, and one look-up of
     * whether the change was stored. Each ends after `queryTimeoutMs`.
     */
    commitMs: 1_800,
  },

  /** checkPaymentStatus waits for a database that is briefly away, since its callers take a 503 for a final answer. */
  patience: {
    /** Longest wait. The public Android client waits 10 s for an answer, the client for WooCommerce 30 s. */
    ms: 8_000,
    /** Pause between two queries. */
    pauseMs: 500,
    /** Requests that wait at once, about 10 kB each: 250 a second during the 8 s. One more gets 503 at once. */
    waiting: 2_000,
  },

  /** Failures of a caller in a minute. The operator limits requests with an accepted key, see config.ts. */
  rates: {
    /** Wrong secrets for one public key from one address. */
    wrongSecrets: 20,
    /** Unknown public keys from one address, which many shops share behind a balancer; some may use a revoked key. */
    unknownKeys: 100,
  },

  /** Look-ups that every request needs: its key, and whether a partner is linked to the merchant. */
  lookUps: {
    /** A revoked key or a cut link must take effect on every instance within 5 s. */
    cachedMs: 1_000,
    /** Cached results, "not found" among them. The least recently used result is dropped first. */
    cachedKeys: 10_000,
  },

  /** Every connection to the database, except those of the operator's page. */
  database: {
    /**
     * Longest wait for a free connection, and for a new connection. This limit and `queryTimeoutMs` bound how long dead
     * connections fill the pool: a request has to succeed within a second after the database's return.
     */
    connectTimeoutMs: 700,
    /** Longest wait for a result, by the service's clock: over a silently cut network no result ever comes. */
    queryTimeoutMs: 900,
  },

  /** Connections by kind of work, so that no kind waits for another. DATABASE_POOL_SIZE is the number for requests. */
  pools: {
    /** Inserts of intents. One is best: while a batch is stored, the next one gathers all intents that arrive. */
    creates: 1,
    /** Look-ups of keys and of partners' links, which must wait behind no other request. */
    keys: 2,
    /** Reports of payments. After an outage a bank sends hundreds of notifications at once. */
    reports: 3,
    /** Webhooks, return calls, queries to acquirers, expiries. */
    due: 3,
    /** Customers' pages and their QR codes, which anybody can request. */
    pages: 3,
    /**
     * Settlement lists: this many connections to the primary, and as many to the replica if there is one. A slow reader
     * holds a connection for as long as the list takes.
     */
    lists: 6,
    /** The operator's page and `/metrics`. */
    operator: 2,
  },

  /** Intents that arrive together are stored by one statement. */
  inserts: {
    /**
     * Longest wait of an intent for its batch. The caller receives 503 after 1.1 s: an intent that is stored later would
     * be an order that no client knows.
     */
    waitingMs: 1_000,
  },

  /** Reports of payments by a bank, the operator or the sandbox. */
  reports: {
    /**
     * Stored failed attempts of one order; further attempts are only counted, because every report of an order reads
     * all stored ones. An order's changes are numbered up to 32,767, so the limit leaves a number for its payment.
     */
    attemptsOfOrder: 300,
    /**
     * Open exceptions of one acquirer account, merchant and kind that come from notifications. The first ones show a
     * failure of the acquirer's software; without the limit, the signer of one account could fill the disk and delay every
     * report. Exceptions that the operator resolves are not counted.
     */
    openOfAccount: 1_000,
    /** Second payments of one order that are stored, because every report of an order reads them. Further ones are exceptions only. */
    secondPaymentsOfOrder: 20,
    /** Signed notifications of one acquirer account that are processed concurrently: less than `pools.reports`. */
    atOnceOfAccount: 2,
    /** Time for which the count of these open exceptions is valid. */
    openCountedMs: 1_000,
  },

  /** Acquirers that make payment links, one before an intent is stored. */
  acquirers: {
    /** Longest time for all calls of a request: log-in and call, and both again when the token was refused. */
    requestMs: 5_000,
    /** Pause between two look-ups, within `requestMs`, of an intent whose commit was lost. */
    lookUpPauseMs: 500,
    /** Longest time for the first of two acquirers to make a link. */
    firstLinkMs: 2_000,
    /** After a call without an answer, the other one of two acquirers is asked first for this time. */
    unreachedMs: 10_000,
    /**
     * Calls under way to one acquirer, from one instance. A further call is refused at once, so that a dead acquirer
     * holds 64 requests, not all. Queries of payments are never refused.
     */
    callsUnderWay: 64,
    /**
     * Refunds sent or queried at once at one acquirer, from one instance, and as many queries of payments. Half of
     * `callsUnderWay` is left to requests. A merchant has a quarter, so that three with long queues leave places free.
     */
    dueAtOnce: 16,
  },

  /** Calls of the service: webhooks and return calls to addresses that merchants choose, and calls to acquirers. */
  outbound: {
    /** Longest time for a whole call: name, connection and answer. */
    merchantMs: 15_000,
    acquirerMs: 3_000,
    /** Longest time to connect to an acquirer. */
    acquirerConnectMs: 1_000,
    /** Characters of the receiver's answer shown by `ops webhooks deliveries`. */
    shownCharacters: 200,
    /** Longest accepted Retry-After: a day. */
    retryAfterSeconds: 24 * 60 * 60,
  },

  /** Webhooks and return calls. */
  webhooks: {
    /**
     * Pause between two looks for due deliveries, queries to acquirers and expired orders. The first attempt of a
     * webhook has to come within 2 s of the change.
     */
    lookIntervalMs: 1_000,
    /** Calls under way to one endpoint, of one instance. */
    callsOfEndpoint: 4,
    /** Calls under way of one instance, each with a connection: half to endpoints that fail, half to others. */
    callsAtOnce: 1_000,
    /** Webhooks of one merchant that are on. For each of them every payment of the merchant stores a row. */
    ofMerchant: 20,
    /** Endpoints that one look for due deliveries returns, and expired orders of a merchant in one statement. */
    lookedAt: 1_000,
    /** A claimed delivery is due again after this time, unless its outcome is stored: longer than a call. */
    visibilityMs: 40_000,
    /** Longest wait of a stopping instance for calls under way; another instance repeats those that were cut off. */
    stopMs: 2_000,
  },

  /** Settlements. */
  lists: {
    /** Rows of the longest list that is sent in one piece. A caller reads longer lists one at a time. */
    shortRows: 1_000,
    /** Longer lists that are read at once, each by another caller. The pool has more connections, for short lists. */
    longAtOnce: 4,
    /** Longest time for one list, during which PostgreSQL keeps every row deleted since the list began. */
    longestMs: 60 * 60 * 1000,
    /**
     * Average speed over `readerWindowMs` below which the reader of a long list is cut off, because a reader holds a
     * connection and a snapshot of the database. The slowest mobile links in use are faster.
     */
    slowestReaderBytesPerSecond: 16 * 1024,
    /** Long, because TCP reports the bytes read in portions: a full buffer of 6 MB opens when a sixteenth was read. */
    readerWindowMs: 60_000,
    /**
     * Pause between two checks of the reader's speed and permission. With `lookUps.cachedMs`, a reader who has lost the
     * permission is cut off within 5 s.
     */
    readerCheckIntervalMs: 2_000,
  },

  /** Pay pages, their events and QR codes. */
  pages: {
    /** Pages with events that are open at once in one instance; each holds a connection. */
    open: 10_000,
    /** Open pages of one order: someone who knows its address must not use up the places of other customers. */
    openOfOrder: 20,
    /** Pause between two queries of the states of all open pages. */
    lookUpIntervalMs: 1_000,
    /** Cached QR images: 4,000 usual PNGs of 1.8 kB, or 500 usual SVGs of 14 kB. The longest SVG has 117 kB. */
    qrImagesBytes: 8 * 1024 * 1024,
  },

  /** Connections only for the operator's page and `/metrics`, so that no request waits behind their queries. */
  operatorDatabase: {
    /** PostgreSQL itself ends a statement after this time. A day of orders is counted by one statement. */
    statementTimeoutMs: 4_000,
  },

  /** The operator's page, which counts nothing until somebody opens it. */
  operatorPage: {
    days: 30,
    /** Longest wait for counts that are not cached. The page names missing counts and loads again. */
    waitMs: 300,
    /** Time until the page loads again; a tenth of this time while a count is missing. */
    refreshSeconds: 30,
    /** Cache of the check whether yesterday's books balance. Long, because the check reads all payments of merchants. */
    balance: { cachedMs: 60_000, cachedKeys: 1 },
  },

  shutdown: {
    /**
     * Longest wait for requests under way: a client may read a long list slowly. With the drain of 5 s the shutdown
     * stays below the 30 s after which container platforms kill a process.
     */
    closeMs: 20_000,
    /** npm delivers Ctrl-C twice; a second signal within this time is ignored. */
    repeatedSignalMs: 1_000,
  },
}

export type Limits = typeof LIMITS
