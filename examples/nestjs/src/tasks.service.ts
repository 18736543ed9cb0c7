import { Injectable } from '@nestjs/common'
import { Cron, Interval } from '@nestjs/schedule'
import { report } from './report.js'

/** How often everything here runs. */
const seconds = Number(process.env['EVERY_SECONDS'] ?? 10)
const often = `*/${seconds} * * * * *`

/** Jobs as they were before: nothing here knows of Leasehold. */
@Injectable()
export class TasksService {
  @Cron(often)
  async sendDigests() {
    await report('sendDigests')
  }

  @Cron(often, { name: 'close-orders', timeZone: 'Europe/Paris' })
  async closeOrders() {
    await report('close-orders')
  }

  @Cron(often)
  async refreshRates() {
    await report('refreshRates')
  }

  @Interval(seconds * 1_000)
  async pollInbox() {
    await report('pollInbox')
  }
}
