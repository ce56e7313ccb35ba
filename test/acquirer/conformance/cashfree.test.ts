import { cashfree } from './cashfree.ts'
import { conform } from './conform.ts'

conform('cashfree', cashfree)
