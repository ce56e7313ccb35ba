// Preloaded into the service by the fault "clock": each SIGUSR2 moves its wall clock, as a wrong time server would.
const HOUR_MS = 3_600_000
const SHIFTS_MS = [HOUR_MS, -HOUR_MS, 0]

const RealDate = Date
let shiftMs = 0
let next = 0
process.on('SIGUSR2', () => {
  shiftMs = SHIFTS_MS[next++ % SHIFTS_MS.length]
})

class ShiftedDate extends RealDate {
  constructor(...parts) {
    if (parts.length === 0) super(RealDate.now() + shiftMs)
    else super(...parts)
  }
  static now() {
    return RealDate.now() + shiftMs
  }
}
globalThis.Date = ShiftedDate
