// Imported before the service is, when somebody watches it in a terminal: each request is one line for people. Whatever
// else reads the log, and every installation, gets JSON: the service itself knows nothing of this.
import { pino } from 'pino'
import pretty from 'pino-pretty'

const lines = pretty({
  // Synchronous, so that log lines and other output appear in the order in which they were written.
  sync: true,
  translateTime: 'SYS:HH:MM:ss',
  // Fields that the message already shows.
  ignore: 'id,method,route,status,durationMs,publicKey,mid',
  messageFormat: (line, messageKey) => {
    const { method, route, status, durationMs, publicKey, id } = line
    if (line[messageKey] !== 'request') return `${line[messageKey]}${id === undefined ? '' : ` ${id}`}`
    const who = publicKey === undefined ? '' : ` ${publicKey}`
    return `${method} ${route} ${status} in ${durationMs} ms${who} ${id}`
  },
})

Object.assign(pino, { destination: () => Object.assign(lines, { flush: () => undefined }) })
