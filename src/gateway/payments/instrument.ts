/** The kinds of account or credit that a customer pays with by UPI. Contracts with acquirers have a price for each kind. */
export const INSTRUMENTS = ['bank account', 'credit card', 'wallet', 'credit line'] as const
export type Instrument = (typeof INSTRUMENTS)[number]

/** The instrument that a report states; `unknown` if the report states it in a word that the service does not know. */
export type ReportedInstrument = Instrument | 'unknown'

/** The words of a source for each instrument. */
type InstrumentWords = Partial<Record<Instrument, RegExp>>

/** Reads the word of a source for an instrument. Returns undefined if the source states none. */
export function readInstrument(words: InstrumentWords, word: unknown): ReportedInstrument | undefined {
  if (word === undefined || word === null || word === '') return undefined
  return (typeof word === 'string' && INSTRUMENTS.find((one) => words[one]?.test(word))) || 'unknown'
}

/** Returns the instrument to store; undefined unless the report states one that the service knows. */
export const knownInstrument = ({ instrument }: { instrument?: ReportedInstrument | undefined }) =>
  instrument === 'unknown' ? undefined : instrument
