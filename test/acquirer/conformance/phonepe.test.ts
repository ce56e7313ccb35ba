import { conform } from './conform.ts'
import { phonepe } from './phonepe.ts'

conform('phonepe', phonepe)
