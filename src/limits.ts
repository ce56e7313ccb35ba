/**
 * Every time-out, size and count of the running service. A name ends in the unit; a number without a unit is a count.
 * `buildApp` and the modules accept the limits as an argument, so that a test can pass its own. A test compares the
 * table of limits in the operator's guide with this file.
 *
 * Limits that the interface promises, such as lengths of fields, are beside the fields. Limits that the operator sets
 * are in config.ts.
 */
export const LIMITS = {
  connections: {
    /** Longest time for a whole request to arrive. A slow sender gets 408; a connection without a byte is closed. */
    requestMs: 10_000,
    /**
     * Load balancers close an idle connection after 60 s. This time is longer, so that the load balancer closes first.
     */
    keepAliveMs: 75_000,
    /**
     * Time without a byte read or written after which a connection with a request in progress is closed. Node.js skips
     * the first period after a write, so closing takes 60 to 120 s. An open pay page receives a heartbeat every 20 s
     * and stays open.
     */
    stalledMs: 60_000,
    /** 10,000 for open pay pages, 2,000 for other clients. Each uses about 20 KB and an open file, see `ulimit -n`. */
    connections: 12_000,
    headersBytes: 16 * 1024,
    /**
     * Headers of one request; a request with more is rejected. Node.js would silently drop the rest, possibly an
     * Idempotency-Key. Browsers and proxies together send fewer.
     */
    headers: 100,
  },

  body: {
    /** Longest body. Every field at its maximum length fits, unless the redirect_url is long and mostly not ASCII. */
    bytes: 16 * 1024,
    /** Largest number of fields in a body, because parsing many fields blocks the event loop. */
    fields: 100,
  },

  response: {
    /**
     * Longest time from a complete request to the first byte of its response; after it, the response is 503. This limit
     * bounds the sum of the handler's waits for a batch, a connection and queries. With the earlier look-up of
     * credentials, the response takes less than 2 s.
     */
    ms: 1_100,
    /**
     * Longest time after `ms` for a refund or a cancellation whose commit was sent: the commit, and one look-up of
     * whether the change was stored. Each is limited to `queryTimeoutMs`.
     */
    commitMs: 1_800,
  },

  /**
   * checkPaymentStatus waits for a database that is briefly unavailable, since its callers treat a 503 as a final
   * result.
   */
  databaseWait: {
    /** Longest wait for the database. The public Android client waits 10 s for a response, the WooCommerce client 30 s. */
    ms: 8_000,
    /** Pause between two attempts to query the database. */
    pauseMs: 500,
    /**
     * Concurrently waiting requests, about 10 kB each: 250 a second during the 8 s. A further request gets 503
     * immediately.
     */
    waiting: 2_000,
  },

  /** Failures of a caller per minute. The operator limits requests with a valid key, see config.ts. */
  rates: {
    /** Wrong secrets per minute for one public key from one address. */
    wrongSecrets: 20,
    /**
     * Unknown public keys per minute from one address, which many merchants' servers share behind a load balancer; some may use a
     * revoked key.
     */
    unknownKeys: 100,
  },

  /** Look-ups that every request needs: its key, and whether a partner is linked to the merchant. */
  lookUps: {
    /** A revoked key or a removed link must take effect on every instance within 5 s. */
    cachedMs: 1_000,
    /** Cached results, including "not found". The least recently used result is dropped first. */
    cachedKeys: 10_000,
  },

  /** Every connection to the database, except those of the operator dashboard. */
  database: {
    /**
     * Longest wait for a free connection, and for a new connection. This limit and `queryTimeoutMs` bound how long dead
     * connections fill the pool: a request must succeed within a second after the database is available again.
     */
    connectTimeoutMs: 700,
    /**
     * Longest wait for a result, by the service's clock: over a silently interrupted network no result ever arrives.
     */
    queryTimeoutMs: 900,
  },

  /** Connections by kind of work, so that no kind waits for another. DATABASE_POOL_SIZE is the number for requests. */
  pools: {
    /** Connections for inserts of intents. One is best: while a batch is stored, the next one collects all intents that arrive. */
    creates: 1,
    /** Connections for look-ups of keys and of partners' links, which must not wait behind other requests. */
    keys: 2,
    /** Connections for reports of payments. After an outage, a bank sends hundreds of notifications within seconds. */
    reports: 3,
    /** Connections for jobs: webhooks, return-URL callbacks, status checks, expiries. */
    due: 3,
    /** Connections for customers' pages and their QR codes, which anyone can request. */
    pages: 3,
    /**
     * Settlement lists: this many connections to the primary, and as many to the replica if there is one. A slow reader
     * occupies a connection for as long as the list takes.
     */
    lists: 6,
    /** Connections for the operator dashboard and `/metrics`. */
    operator: 2,
  },

  /** Intents that arrive together are stored by one statement. */
  inserts: {
    /**
     * Longest wait of an intent for its batch. The caller receives 503 after 1.1 s: an intent stored later would be an
     * order that no client knows.
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
     * Open exceptions of one acquirer account, merchant and kind that notifications create. The first ones reveal a
     * failure of the acquirer's software; without the limit, the signer of one account could fill the disk and delay
     * every report. Exceptions that the operator has resolved are not included.
     */
    openOfAccount: 1_000,
    /**
     * Second payments of one order that are stored, because every report of an order reads them. Further ones are only
     * exceptions.
     */
    secondPaymentsOfOrder: 20,
    /** Signed notifications of one acquirer account that are processed concurrently: fewer than `pools.reports`. */
    concurrentOfAccount: 2,
    /** Time for which the count of these open exceptions is valid. */
    openCountedMs: 1_000,
  },

  /** Acquirers that create payment links, one before an intent is stored. */
  acquirers: {
    /** Longest time for all calls of a request: log-in and call, and both again if the token was rejected. */
    requestMs: 5_000,
    /** Pause between two look-ups, within `requestMs`, of an intent whose commit was lost. */
    lookUpPauseMs: 500,
    /** Longest time for the first of two acquirers to create a link. */
    firstLinkMs: 2_000,
    /** After a call without a response, the other one of two acquirers is tried first for this time. */
    unreachedMs: 10_000,
    /**
     * Concurrent calls to one acquirer from one instance. A further call is rejected immediately, so that an
     * unresponsive acquirer occupies 64 requests instead of all. Status checks are never rejected.
     */
    callsUnderWay: 64,
    /**
     * Refunds that are concurrently sent or checked at one acquirer, from one instance, and as many status checks of
     * payments. Half of `callsUnderWay` remains for requests. A merchant has a quarter, so that three with long queues
     * leave room for others.
     */
    concurrentJobs: 16,
  },

  /** Outgoing calls: webhooks and return-URL callbacks to addresses that merchants choose, and calls to acquirers. */
  outbound: {
    /** Longest time for a whole call: name resolution, connection and response. */
    merchantMs: 15_000,
    acquirerMs: 3_000,
    /** Longest time to connect to an acquirer. */
    acquirerConnectMs: 1_000,
    /** Characters of the receiver's response that `ops webhooks deliveries` shows. */
    shownCharacters: 200,
    /** Longest accepted Retry-After: a day. */
    retryAfterSeconds: 24 * 60 * 60,
  },

  /** Webhooks and return-URL callbacks. */
  webhooks: {
    /**
     * Interval between two polls for scheduled deliveries, status checks and expired orders. The first attempt of a
     * webhook must be sent within 2 s of the change.
     */
    lookIntervalMs: 1_000,
    /** Concurrent calls to one endpoint from one instance. */
    callsOfEndpoint: 4,
    /** Concurrent calls of one instance, each with a connection: half to endpoints that fail, half to others. */
    concurrentCalls: 1_000,
    /** Enabled webhooks of one merchant. For each of them, every payment of the merchant stores a row. */
    ofMerchant: 20,
    /** Endpoints that one poll for scheduled deliveries returns, and expired orders of a merchant in one statement. */
    lookedAt: 1_000,
    /** A claimed delivery is scheduled again after this time unless its outcome is stored: longer than a call. */
    visibilityMs: 40_000,
    /**
     * Longest time that a stopping instance waits for calls in progress; another instance repeats those that were cut
     * off.
     */
    stopMs: 2_000,
  },

  lists: {
    /** Rows of the longest list that is sent in one piece. A caller reads longer lists one at a time. */
    shortRows: 1_000,
    /**
     * Longer lists that are read concurrently, each by another caller. The pool has more connections, for short lists.
     */
    concurrentLong: 4,
    /** Longest time for one list, during which PostgreSQL retains every row deleted since the list began. */
    longestMs: 60 * 60 * 1000,
    /**
     * Average speed over `readerWindowMs` below which the reader of a long list is disconnected, because a reader
     * occupies a connection and a snapshot of the database. The slowest mobile links in use are faster.
     */
    slowestReaderBytesPerSecond: 16 * 1024,
    /** Long, because TCP reports the bytes read in portions: a full buffer of 6 MB opens when a sixteenth was read. */
    readerWindowMs: 60_000,
    /**
     * Interval between two checks of the reader's speed and permission. With `lookUps.cachedMs`, a reader who has lost
     * the permission is disconnected within 5 s.
     */
    readerCheckIntervalMs: 2_000,
  },

  /** Pay pages, their events and QR codes. */
  pages: {
    /** Open pages with events of one instance; each uses a connection. */
    open: 10_000,
    /** Open pages of one order: a client that knows its address must not use up the places of other customers. */
    openOfOrder: 20,
    /** Interval between two queries of the states of all open pages. */
    lookUpIntervalMs: 1_000,
    /** Cached QR images: 4,000 usual PNGs of 1.8 kB, or 500 usual SVGs of 14 kB. The longest SVG has 117 kB. */
    qrImagesBytes: 8 * 1024 * 1024,
  },

  /** Connections for the operator dashboard and `/metrics` alone, so that no request waits behind their queries. */
  operatorDatabase: {
    /** Limit after which PostgreSQL itself cancels a statement. One statement reads a whole day of orders. */
    statementTimeoutMs: 4_000,
  },

  /** The operator dashboard, which counts nothing until an operator opens it. */
  operatorPage: {
    days: 30,
    /** Longest wait for counts that are not cached. The page names missing counts and reloads. */
    waitMs: 300,
    /** Time until the page reloads; a tenth of this time while a count is missing. */
    refreshSeconds: 30,
    /**
     * Cache of the check whether yesterday's ledger balances. Long, because the check reads all payments of merchants.
     */
    balance: { cachedMs: 60_000, cachedKeys: 1 },
  },

  shutdown: {
    /**
     * Longest wait for requests in progress: a client may read a long list slowly. With the drain of 5 s, the shutdown
     * takes less than the 30 s after which container platforms kill a process.
     */
    closeMs: 20_000,
    /** npm delivers Ctrl-C twice; a second signal within this time is ignored. */
    repeatedSignalMs: 1_000,
  },
}

export type Limits = typeof LIMITS
