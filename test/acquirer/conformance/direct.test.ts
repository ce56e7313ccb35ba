import { conform } from './conform.ts'
import { direct } from './direct.ts'

conform('direct', direct)
