// Makes the log readable for people, a line for each request. Imported before the service if stdout is a terminal;
// otherwise the log stays JSON.
import { pino } from 'pino'
import pretty from 'pino-pretty'

const lines = pretty({
  // Synchronous writes keep log lines and other output in order.
  sync: true,
  translateTime: 'SYS:HH:MM:ss',
  // These fields are part of messageFormat.
  ignore: 'id,method,route,status,durationMs,publicKey,mid',
  messageFormat: (line, messageKey) => {
    const { method, route, status, durationMs, publicKey, id } = line
    if (line[messageKey] !== 'Request completed') return `${line[messageKey]}${id === undefined ? '' : ` ${id}`}`
    const who = publicKey === undefined ? '' : ` ${publicKey}`
    return `${method} ${route} ${status} in ${durationMs} ms${who} ${id}`
  },
})

Object.assign(pino, { destination: () => Object.assign(lines, { flush: () => undefined }) })
