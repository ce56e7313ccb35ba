import type { Queryable } from '../db/pool.ts'
import { toIstText } from '../ist.ts'
import type { Vitals } from './vitals.ts'

/** A process of the service. `instanceId` is random, for each start. */
export type InstanceName = { instanceId: string; host: string; version: string; startedAt: Date }

/** A process as it told of itself at `seenAt`. `stoppedAt` is null while it runs, and when it was killed. */
export type Instance = InstanceName &
  Pick<Vitals, 'refused' | 'acquirersAway'> & { seenAt: Date; stoppedAt: Date | null; lastNotificationAt: Date | null }

/** One that cannot stay up is started anew every few seconds. */
const LISTED = 1_000

/** The instances of the service. Each writes its own row. */
export function createInstances(db: Queryable) {
  return {
    /** Writes down that the instance runs, and what it knows; forgets those that were not seen since `forgetBefore`. */
    async beat(
      { instanceId, host, version, startedAt }: InstanceName,
      { refusedOn, refused, lastNotificationAt, acquirersAway }: Vitals,
      { now, forgetBefore }: { now: Date; forgetBefore: Date },
    ): Promise<void> {
      await db.query(
        `with forgotten as (
           delete from service_instances where seen_at < $10 and instance_id <> $1
         )
         insert into service_instances
           (instance_id, host, version, started_at, seen_at, refused_on, refused, last_notification_at, acquirers_away)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (instance_id) do update
            set seen_at = excluded.seen_at, refused_on = excluded.refused_on, refused = excluded.refused,
                last_notification_at = excluded.last_notification_at, acquirers_away = excluded.acquirers_away`,
        [
          instanceId,
          host,
          version,
          startedAt,
          now,
          refusedOn,
          refused,
          lastNotificationAt,
          acquirersAway,
          forgetBefore,
        ],
      )
    },

    /** Writes down that the instance has ended by itself. */
    async stop(instanceId: string, now: Date): Promise<void> {
      await db.query('update service_instances set stopped_at = $2 where instance_id = $1', [instanceId, now])
    },

    /** With what they refused on the Indian day of `now`; the one that was seen last comes first. */
    async list(now: Date): Promise<Instance[]> {
      const { rows } = await db.query<Instance>(
        `select instance_id as "instanceId", host, version, started_at as "startedAt", seen_at as "seenAt",
                stopped_at as "stoppedAt", case when refused_on = $1::date then refused else 0 end as refused,
                last_notification_at as "lastNotificationAt", acquirers_away as "acquirersAway"
           from service_instances
          order by seen_at desc, instance_id
          limit $2`,
        [toIstText(now).slice(0, 10), LISTED],
      )
      return rows
    },
  }
}

export type Instances = ReturnType<typeof createInstances>
