/** Reads the service's metric of database connections, by pool and state. */
export async function poolConnections(opsUrl: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${opsUrl}/metrics`)).text()
  const found = text.matchAll(/^database_pool_connections\{pool="(\w+)",state="(\w+)"\} (\d+)/gm)
  return Object.fromEntries([...found].map(([, pool, state, count]) => [`${pool} ${state}`, Number(count)]))
}
