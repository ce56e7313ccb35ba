import { conform } from './conform.ts'
import { razorpay } from './razorpay.ts'

conform('razorpay', razorpay)
