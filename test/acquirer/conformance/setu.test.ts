import { conform } from './conform.ts'
import { setu } from './setu.ts'

conform('setu', setu)
