/**
 * Every time limit, size limit and count limit of the running service. A name ends in the unit; a number without a unit
 * is a count. `buildApp` and the modules accept the limits as an argument, so that a test can pass its own limits. A
 * test compares the table of limits in the operator's guide with this file.
 *
 * Limits that the interface promises, such as the lengths of fields, are defined with the fields. Limits that the
 * operator sets are in config.ts.
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
    /**
     * Connections: 10,000 for open pay pages and 2,000 for other clients. Each connection uses about 20 KB and an open
     * file, see `ulimit -n`.
     */
    connections: 12_000,
    headersBytes: 16 * 1024,
    /**
     * Largest number of headers in one request; a request with more headers is rejected. Node.js would silently drop
     * the excess headers, which may include an Idempotency-Key. Browsers and proxies together send fewer headers.
     */
    headers: 100,
  },

  body: {
    /**
     * Largest number of bytes in a request body. The limit allows every field at its maximum length, unless the
     * redirect_url is long and mostly not ASCII.
     */
    bytes: 16 * 1024,
    /** Largest number of fields in a body, because parsing many fields blocks the event loop. */
    fields: 100,
  },

  response: {
    /**
     * Longest time from a complete request to the first byte of its response. After this time, the response is 503.
     * This limit applies to the sum of the handler's waits for a batch, a connection and queries. Including the earlier
     * look-up of credentials, a response takes less than 2 s.
     */
    ms: 1_100,
    /**
     * Longest time after `ms` for a refund or a cancellation whose commit was sent: the commit, and one look-up of
     * whether the change was stored. Commit and look-up are each limited to `queryTimeoutMs`.
     */
    commitMs: 1_800,
  },

  /**
   * checkPaymentStatus waits while the database is briefly unavailable, because the callers of checkPaymentStatus treat
   * a 503 as a final result.
   */
  databaseWait: {
    /** Longest wait for the database. The public Android client waits 10 s for a response, the WooCommerce client 30 s. */
    ms: 8_000,
    /** Pause between two attempts to query the database. */
    pauseMs: 500,
    /**
     * Largest number of concurrently waiting requests: 250 a second during the 8 s, about 10 kB each. A further request
     * gets 503 immediately.
     */
    waiting: 2_000,
  },

  /**
   * Failed requests of a caller per minute. The operator sets the limit for requests with a valid key, see config.ts.
   */
  rates: {
    /** Largest number of wrong secrets per minute for one public key from one address. */
    wrongSecrets: 20,
    /**
     * Largest number of unknown public keys per minute from one address. Behind a load balancer, many merchants'
     * servers share one address, and some of these servers may use a revoked key.
     */
    unknownKeys: 100,
  },

  /** Look-ups that every request needs: the API key, and whether a partner is linked to the merchant. */
  lookUps: {
    /** A revoked or expired key or a removed link must take effect on every instance within 5 s. */
    cachedMs: 1_000,
    /**
     * Largest number of cached results, including the result "not found". The least recently used result is dropped
     * first.
     */
    cachedKeys: 10_000,
  },

  /** All connections to the database, except the connection for `/metrics`. */
  database: {
    /**
     * Longest wait for a free connection, and for a new connection. This limit and `queryTimeoutMs` limit the time for
     * which dead connections fill the pool, because a request must succeed within a second after the database is
     * available again.
     */
    connectTimeoutMs: 700,
    /**
     * Longest wait for a result, measured by the service, because no result ever arrives over a silently interrupted
     * network.
     */
    queryTimeoutMs: 900,
  },

  /** Connections by kind of work, so that no kind waits for another. DATABASE_POOL_SIZE is the number for requests. */
  pools: {
    /**
     * Connections for inserts of intents. A single connection is best, because while one batch is stored, the next
     * batch collects all intents that arrive.
     */
    creates: 1,
    /**
     * Connections for look-ups of API keys and of links between partners and merchants, because these look-ups must not
     * wait behind other requests.
     */
    keys: 2,
    /** Connections for reports of payments. After an outage, a bank sends hundreds of notifications within seconds. */
    reports: 3,
    /** Connections for jobs: webhooks, return-URL callbacks, status checks, expiries. */
    due: 3,
    /** Connections for customers' pay pages, QR codes and logos, which anyone can request. */
    pages: 3,
    /**
     * Connections for settlement lists: this number to the primary, and the same number to the replica if a replica is
     * configured. A slow reader occupies a connection for as long as the list takes.
     */
    lists: 6,
    /** Connections for `/metrics`. */
    operator: 1,
  },

  /** Intents that arrive concurrently: one statement stores them together. */
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
     * Largest number of failed attempts that are stored for one order. Further attempts are only counted, because every
     * report about an order reads all stored attempts. An order's changes are numbered up to 32,767, so the limit
     * leaves a number for the order's payment.
     */
    attemptsOfOrder: 300,
    /**
     * Largest number of open exceptions that notifications create for one acquirer account, merchant and kind. The
     * first exceptions reveal a failure of the acquirer's software. Without the limit, the signer of one account could
     * fill the disk and delay every report. Exceptions that the operator has resolved are not included.
     */
    openOfAccount: 1_000,
    /**
     * Largest number of second payments that are stored for one order, because every report about an order reads these
     * payments. Further payments are stored only as exceptions.
     */
    secondPaymentsOfOrder: 20,
    /**
     * Largest number of exceptions `unknown order` with the UTR of a stored payment. These exceptions are resolved when
     * they are stored, so `openOfAccount` does not limit them.
     */
    unknownOrdersOfUtr: 20,
    /**
     * Number of signed notifications from one acquirer account that are processed concurrently. The number is less than
     * `pools.reports`. Payments that wait for their batch are not included, because a batch of all accounts uses one
     * connection.
     */
    concurrentOfAccount: 2,
    /** Time for which the count of open exceptions is cached. */
    openCountedMs: 1_000,
  },

  /** Calls to acquirers that create payment links. Such a call precedes the storing of an intent. */
  acquirers: {
    /** Longest time for all acquirer calls in a request: log-in and call, and both again if the token was rejected. */
    requestMs: 5_000,
    /**
     * Pause between two look-ups of an intent after the response to its commit was lost. The look-ups end within
     * `requestMs`.
     */
    lookUpPauseMs: 500,
    /** Longest time for the first of two acquirers to create a link. */
    firstLinkMs: 2_000,
    /** Time for which the other of two acquirers is tried first, after a call to one acquirer got no response. */
    unreachedMs: 10_000,
    /**
     * Largest number of concurrent calls from one instance to one acquirer. A further call is rejected immediately, so
     * that an unresponsive acquirer occupies 64 requests instead of all requests. Status checks are never rejected.
     */
    callsUnderWay: 64,
    /**
     * Number of refunds that one instance sends or checks concurrently at one acquirer, and equally the number of
     * concurrent status checks of payments. Half of `callsUnderWay` remains for requests. Each merchant gets a quarter
     * of the jobs, so that three merchants with long queues leave room for other merchants.
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
    /** Number of characters from the receiver's response that `ops webhooks deliveries` shows. */
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
    /** Largest number of concurrent calls from one instance to one endpoint. */
    callsOfEndpoint: 4,
    /**
     * Largest number of concurrent calls from one instance, each on its own connection. Half of the calls may go to
     * failing endpoints, and half to other endpoints.
     */
    concurrentCalls: 1_000,
    /**
     * Largest number of enabled webhooks per merchant. For each webhook, every payment of the merchant stores a row.
     */
    ofMerchant: 20,
    /**
     * Largest number of endpoints that one poll for scheduled deliveries returns, and of a merchant's expired orders
     * that one statement reads.
     */
    lookedAt: 1_000,
    /**
     * Time after which a claimed delivery is scheduled again unless its outcome is stored. The time is longer than the
     * longest call.
     */
    visibilityMs: 40_000,
    /**
     * Longest time that a stopping instance waits for calls in progress; another instance repeats the calls that were
     * cut off.
     */
    stopMs: 2_000,
  },

  lists: {
    /** Largest number of rows in a list that is sent in one piece. A caller can read only one longer list at a time. */
    shortRows: 1_000,
    /**
     * Largest number of rows that a filter reads for such a list, so that a filter that few rows satisfy does not occupy
     * a connection for short lists.
     */
    filteredRows: 10_000,
    /**
     * Number of longer lists that are read concurrently, each by a different caller. The pool has further connections
     * for short lists.
     */
    concurrentLong: 4,
    /** Number of these lists that have a filter, because each may occupy a processor of PostgreSQL without finding a row. */
    concurrentFiltered: 2,
    /**
     * Time after which a list of paid or of failed orders begins before a record is found, so that the caller does not
     * receive 503 after `response.ms`.
     */
    firstRecordMs: 400,
    /** Longest time for one list, during which PostgreSQL retains every row deleted since the list began. */
    longestMs: 60 * 60 * 1000,
    /**
     * Average speed over `readerWindowMs` below which the reader of a long list is disconnected, because a reader
     * occupies a connection and a snapshot of the database. The slowest mobile links in use are faster.
     */
    slowestReaderBytesPerSecond: 16 * 1024,
    /**
     * Length of the period over which the speed is measured. The period is long, because TCP reports the bytes that
     * were read in portions: a full buffer of 6 MB opens only after a sixteenth was read.
     */
    readerWindowMs: 60_000,
    /**
     * Interval between two checks of the reader's speed and permission. Together with `lookUps.cachedMs`, the interval
     * ensures that a reader who has lost the permission is disconnected within 5 s.
     */
    readerCheckIntervalMs: 2_000,
  },

  /** Pay pages, their events, QR codes and logos. */
  pages: {
    /** Largest number of open pages that receive events from one instance. Each page uses a connection. */
    open: 10_000,
    /**
     * Largest number of open pages for one order, so that a client that knows the page's address cannot use up the
     * places for other customers.
     */
    openOfOrder: 20,
    /** Interval between two queries of the states of all open pages. */
    lookUpIntervalMs: 1_000,
    /**
     * Total size of the cached QR images: about 4,000 usual PNGs of 1.8 kB, or 500 usual SVGs of 14 kB. The longest SVG
     * has 117 kB.
     */
    qrImagesBytes: 8 * 1024 * 1024,
    /** Cached logos: 256 of the largest, 32 KiB. */
    logosBytes: 8 * 1024 * 1024,
  },

  /** Queries of `/metrics`, and of the balance that `ops today` shows. */
  operatorDatabase: {
    /** Time after which PostgreSQL itself cancels a statement. */
    statementTimeoutMs: 4_000,
  },

  /** `ops today`, on the command line and in the console. */
  today: {
    /**
     * Cache of `--watch` for the balance and the payouts of the last month. The cache time is long, because the balance
     * reads all payments of merchants.
     */
    books: { cachedMs: 60_000, cachedKeys: 1 },
    /** Time until the console's page reloads. */
    refreshSeconds: 30,
    /** Cache of the console's page, with and without merchants. */
    page: { cachedMs: 10_000, cachedKeys: 2 },
  },

  /** The operator console, `ops console`. */
  console: {
    /** Time for which an operator may confirm a change after its form was shown. */
    confirmationMs: 15 * 60_000,
    /** Connections for sign-in and the counts of the navigation, apart from those of pages. */
    signIn: { size: 2, queryTimeoutMs: 2_000 },
    /** Connections for pages and downloads, apart from those of changes. PostgreSQL limits their statements by the role. */
    reads: { size: 7, queryTimeoutMs: 0 },
    /** Connections for pages that may read for minutes, so that they leave processors to payments. Others wait for them. */
    longReads: { size: 2, queryTimeoutMs: 0, connectTimeoutMs: 120_000 },
    /** Time for which a page waits for the end of an import or a close, before it shows the progress. */
    workMs: 1_000,
    /** Cache for the counts of open items in the navigation. */
    counts: { cachedMs: 5_000, cachedKeys: 1 },
    /** Largest number of bytes of an uploaded file. */
    uploadBytes: 64 * 1024 * 1024,
    /** Longest time for a whole request to arrive: 64 MB at 2 Mbit/s. Its headers have `connections.requestMs`. */
    requestMs: 5 * 60_000,
    /** Largest number of rows of a table on a page. The command line lists all rows. */
    rows: 500,
  },

  shutdown: {
    /**
     * Longest wait for requests in progress, because a client may read a long list slowly. Together with the drain of 5
     * s, the shutdown takes less than the 30 s after which container platforms kill a process.
     */
    closeMs: 20_000,
    /** npm delivers Ctrl-C twice; a second signal within this time is ignored. */
    repeatedSignalMs: 1_000,
  },
}

export type Limits = typeof LIMITS
