import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'

/**
 * Effect of a cut on connections. With `refused` and `reset` both sides notice immediately. With `held` neither side
 * notices, and data sent in the meantime is delivered late, as TCP does. With `swallowed` neither side notices, and
 * every connection from before or during the cut stays dead.
 */
export type Cut = 'refused' | 'reset' | 'held' | 'swallowed'

export type TcpProxy = { port: number; cut: (cut: Cut) => void; restore: () => Promise<void>; close: () => void }

type Pair = { near: Socket; far: Socket | undefined; dead: boolean }

/** A network between two programs that can be cut. */
export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<Pair>()
  let cut: Cut | undefined
  let server = await listen(0)
  const { port } = server.address() as AddressInfo

  function listen(onPort: number): Promise<Server> {
    const listening = createServer({ pauseOnConnect: true }, accept).listen(onPort, '127.0.0.1')
    return once(listening, 'listening').then(() => listening)
  }

  function accept(near: Socket) {
    const pair: Pair = { near, far: undefined, dead: false }
    pairs.add(pair)
    near.on('error', () => undefined).once('close', () => end(pair))
    if (cut === 'reset') near.resetAndDestroy()
    else if (cut === undefined) join(pair)
  }

  function join(pair: Pair) {
    const { near } = pair
    const far = connect(targetPort, '127.0.0.1')
    pair.far = far
    far.on('error', () => undefined).once('close', () => end(pair))
    near.on('data', (bytes) => far.write(bytes)).on('end', () => far.end())
    far.on('data', (bytes) => near.write(bytes)).on('end', () => near.end())
    near.resume()
  }

  /** A cut network does not tell one side that the other has disconnected. */
  function end(pair: Pair) {
    if (cut === 'held' || cut === 'swallowed' || pair.dead) return
    pairs.delete(pair)
    pair.near.destroy()
    pair.far?.destroy()
  }

  function resetAll() {
    for (const { near, far } of pairs) {
      near.resetAndDestroy()
      far?.resetAndDestroy()
    }
    pairs.clear()
  }

  return {
    port,
    cut(how) {
      cut = how
      if (how === 'refused') server.close()
      if (how === 'refused' || how === 'reset') return resetAll()
      for (const { near, far } of pairs) {
        near.pause()
        far?.pause()
      }
    },
    async restore() {
      const was = cut
      cut = undefined
      if (was === 'refused') server = await listen(port)
      for (const pair of pairs) {
        if (was === 'swallowed') pair.dead = true
        else if (pair.near.destroyed || pair.far?.destroyed) end(pair)
        else if (pair.far === undefined) join(pair)
        else {
          pair.near.resume()
          pair.far.resume()
        }
      }
    },
    close() {
      cut = undefined
      server.close()
      resetAll()
    },
  }
}
