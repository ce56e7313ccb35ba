// What `npm run ops -- …` runs: the operator's command line, on the checkout's own database if no other is named.
import { bringDatabase, bringsDatabase } from './checkout-database.ts'

if (bringsDatabase()) await bringDatabase()
await import('../cli/ops.ts')
